"""Queues that share the cluster, for people: whose share is how large, and what of each resource that means."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.text import Text

from mooring.cli.tables import count, make_table, print_table
from mooring.report.amounts import amount_text
from mooring.report.queues.data import QueuesResult, SharedQueueStatus, VolcanoQueueStatus

INDENT = "  "

Status = VolcanoQueueStatus | SharedQueueStatus


def count_shares(result: QueuesResult) -> list[str]:
    """How many queues of each kind there are."""
    parts = [count(len(result.volcano_queues), "Volcano queue")] if result.volcano_queues else []
    return parts + [count(len(queues), kind) for kind, queues in _by_kind(result)]


def print_shares(console: Console, result: QueuesResult) -> None:
    """Print Volcano's queues, then those of the others, each kind in tables of its own."""
    if result.volcano_queues:
        _print_volcano(console, result.volcano_queues)
    for kind, queues in _by_kind(result):
        _print_shared(console, kind.upper(), queues)


def _by_kind(result: QueuesResult) -> Iterator[tuple[str, list[SharedQueueStatus]]]:
    for kind, queues in groupby(result.shared_queues, key=lambda queue: queue.kind):
        yield kind, list(queues)


def _print_volcano(console: Console, queues: Sequence[VolcanoQueueStatus]) -> None:
    names = _names(queues)
    console.print()
    headers = ("VOLCANO QUEUE", ">WEIGHT", ">SHARE", "OF THE CLUSTER", ">RUNNING", ">WAITING", "RECLAIMABLE", "STATE")
    table = make_table(*headers)
    for queue in queues:
        reclaimable = "yes" if queue.reclaimable else "no"
        table.add_row(names[queue.name], f"{queue.weight}", *_standing(queue), reclaimable, queue.state)
    print_table(console, table)
    amounts = [(queue.deserved, queue.allocated, queue.demand, queue.guarantee, queue.capability) for queue in queues]
    _print_resources(console, ("VOLCANO QUEUE", ">GUARANTEE", ">CAPABILITY"), names, amounts)
    _print_reasons(console, queues)


def _print_shared(console: Console, title: str, queues: Sequence[SharedQueueStatus]) -> None:
    names = _names(queues)
    console.print()
    table = make_table(title, ">SHARE", "OF THE CLUSTER", ">RUNNING", ">WAITING")
    for queue in queues:
        table.add_row(names[queue.name], *_standing(queue))
    print_table(console, table)
    amounts = [(queue.deserved, queue.allocated, queue.demand, queue.capability) for queue in queues]
    _print_resources(console, (title, ">CAPABILITY"), names, amounts)
    _print_reasons(console, queues)


def _standing(queue: Status) -> tuple[str, str, str, str]:
    part = f"{queue.dominant_share:.1%} of {queue.dominant_resource}" if queue.dominant_resource else "nothing"
    return f"{queue.share:g}", part, f"{queue.running_pods:,}", f"{queue.waiting_pods:,}"


def _names(queues: Sequence[Status]) -> dict[str, str]:
    """Each name at its depth in the tree; parents come before their children."""
    depth: dict[str, int] = {}
    for queue in queues:
        depth[queue.name] = depth[queue.parent] + 1 if queue.parent in depth else 0
    return {name: INDENT * deep + name for name, deep in depth.items()}


def _print_resources(
    console: Console,
    titles: tuple[str, ...],
    names: Mapping[str, str],
    amounts: Sequence[tuple[Mapping[str, float], ...]],
) -> None:
    """What each queue deserves, holds and asks for, and what its limits are, a line for each resource."""
    console.print()
    first, *limits = titles
    table = make_table(first, "RESOURCE", ">DESERVED", ">ALLOCATED", ">DEMAND", *limits)
    for name, parts in zip(names.values(), amounts, strict=True):
        shown = name
        for resource in sorted({found for part in parts for found in part}):
            table.add_row(shown, resource, *(_amount_cell(part, resource) for part in parts))
            shown = ""
    if table.row_count:
        print_table(console, table)


def _amount_cell(amounts: Mapping[str, float], resource: str) -> str:
    return amount_text(resource, amounts[resource]) if resource in amounts else "-"


def _print_reasons(console: Console, queues: Sequence[Status]) -> None:
    for queue in queues:
        if not queue.waiting_reasons:
            continue
        console.print()
        console.print(f"WAITING in {queue.name}", style="bold")
        for why in queue.waiting_reasons:
            line = Text(count(why.pods, "pod"), style="bold yellow")
            line.append(f": {why.message}", style="default not bold")
            console.print(line, soft_wrap=True)
