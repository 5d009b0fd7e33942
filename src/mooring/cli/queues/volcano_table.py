"""Volcano's queues for people: whose share is how large, and what of each resource that means."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from mooring.cli.tables import count, make_table, print_table
from mooring.report.amounts import amount_text
from mooring.report.queues.data import VolcanoQueueStatus

INDENT = "  "


def print_volcano(console: Console, queues: Sequence[VolcanoQueueStatus]) -> None:
    if not queues:
        return
    names = _names(queues)
    console.print()
    headers = ("VOLCANO QUEUE", ">WEIGHT", ">SHARE", "OF THE CLUSTER", ">RUNNING", ">WAITING", "RECLAIMABLE", "STATE")
    table = make_table(*headers)
    for queue in queues:
        part = f"{queue.dominant_share:.1%} of {queue.dominant_resource}" if queue.dominant_resource else "nothing"
        pods = (f"{queue.running_pods:,}", f"{queue.waiting_pods:,}")
        reclaimable = "yes" if queue.reclaimable else "no"
        table.add_row(names[queue.name], f"{queue.weight}", f"{queue.share:g}", part, *pods, reclaimable, queue.state)
    print_table(console, table)
    _print_resources(console, queues, names)
    _print_reasons(console, queues)


def _names(queues: Sequence[VolcanoQueueStatus]) -> dict[str, str]:
    """Each name at its depth in the tree; parents come before their children."""
    depth: dict[str, int] = {}
    for queue in queues:
        depth[queue.name] = depth[queue.parent] + 1 if queue.parent in depth else 0
    return {name: INDENT * deep + name for name, deep in depth.items()}


def _print_resources(console: Console, queues: Sequence[VolcanoQueueStatus], names: Mapping[str, str]) -> None:
    console.print()
    table = make_table("VOLCANO QUEUE", "RESOURCE", ">DESERVED", ">ALLOCATED", ">DEMAND", ">GUARANTEE", ">CAPABILITY")
    for queue in queues:
        name = names[queue.name]
        parts = (queue.deserved, queue.allocated, queue.demand, queue.guarantee, queue.capability)
        for resource in sorted({found for amounts in parts for found in amounts}):
            table.add_row(name, resource, *(_cell(amounts, resource) for amounts in parts))
            name = ""
    if table.row_count:
        print_table(console, table)


def _cell(amounts: Mapping[str, float], resource: str) -> str:
    return amount_text(resource, amounts[resource]) if resource in amounts else "-"


def _print_reasons(console: Console, queues: Sequence[VolcanoQueueStatus]) -> None:
    for queue in queues:
        if not queue.waiting_reasons:
            continue
        console.print()
        console.print(f"WAITING in {queue.name}", style="bold")
        for why in queue.waiting_reasons:
            line = Text(count(why.pods, "pod"), style="bold yellow")
            line.append(f": {why.message}", style="default not bold")
            console.print(line, soft_wrap=True)
