"""Who waits in which queue, in order: what it asks for, why it waits, and who would have to give back."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from mooring.cli.tables import count
from mooring.report.amounts import amounts_text
from mooring.report.queues.data import GivenBack, QueuesResult, WaitingWorkload

MOST_WAITING = 10
"""Workloads of one queue that are listed before the rest is only counted."""
MOST_GIVING = 8
"""Workloads that would have to give back, listed before the rest is only counted."""


def print_waiting(console: Console, result: QueuesResult, *, everyone: bool) -> None:
    for queue in result.queues:
        _print_line(console, f"WAITING in {queue.name}", queue.waiting_workloads, everyone=everyone)
    _print_line(console, "WAITING without a queue", result.without_queue, everyone=everyone)


def _print_line(console: Console, title: str, waiting: Sequence[WaitingWorkload], *, everyone: bool) -> None:
    if not waiting:
        return
    console.print()
    console.print(title, style="bold")
    shown = waiting if everyone else waiting[:MOST_WAITING]
    for found in shown:
        _print_workload(console, found)
    if len(shown) < len(waiting):
        more = count(len(waiting) - len(shown), "more workload")
        console.print(f"... and {more}; --queue NAME or -o json lists them all", style="dim")


def _print_workload(console: Console, found: WaitingWorkload) -> None:
    place = f"{found.position}." if found.position is not None else "-"
    line = Text(f"{place} {found.namespace} {found.owner}", style="bold yellow")
    asks = f"asks for {amounts_text(found.asks)} in {_pods(found)}"
    line.append(f", priority {found.priority}, {asks}", style="default not bold")
    console.print(line, soft_wrap=True)
    indent = " " * (len(place) + 1)
    said = f"{found.reason}: {found.message}" if found.reason and found.message else found.reason or found.message
    for words in (said, found.outlook):
        if words:
            console.print(Text(f"{indent}{words}"), soft_wrap=True)
    if found.gives_back:
        _print_giving(console, found, indent)


def _pods(found: WaitingWorkload) -> str:
    least = f", or at least {found.least_pods:,}" if found.least_pods is not None else ""
    return f"{count(found.pods, 'pod')}{least}"


def _print_giving(console: Console, found: WaitingWorkload, indent: str) -> None:
    start = "to start" if found.starts_with is None else f"to start with {count(found.starts_with, 'pod')}"
    console.print(Text(f"{indent}for it {start}, these would have to give back:"), soft_wrap=True)
    for given in found.gives_back[:MOST_GIVING]:
        console.print(Text(f"{indent}  {_giving(given)}"), soft_wrap=True)
    if len(found.gives_back) > MOST_GIVING:
        more = count(len(found.gives_back) - MOST_GIVING, "more workload")
        console.print(Text(f"{indent}  and {more}"), soft_wrap=True)


def _giving(given: GivenBack) -> str:
    who = f"{given.namespace} {given.owner} of queue {given.cluster_queue}: {amounts_text(given.amounts)}"
    if given.forbidden_by:
        return f"{who}; not taken, because {given.forbidden_by}"
    return f"{who}; taken when its turn comes"
