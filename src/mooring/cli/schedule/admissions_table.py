"""Workloads that were given quota, and those that had to give it back, for people."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from mooring.cli.tables import count, make_table, print_table
from mooring.report.admissions import Admitted, Suspended
from mooring.report.amounts import amounts_text

MOST_ADMITTED = 40
"""Workloads that a table lists before it refers to json."""


def print_admissions(console: Console, admitted: Sequence[Admitted], suspended: Sequence[Suspended]) -> None:
    if admitted:
        console.print()
        console.print("ADMITTED", style="bold")
        _print_admitted(console, admitted)
    if suspended:
        console.print()
        console.print("SUSPENDED", style="bold")
        for found in suspended:
            _print_suspended(console, found)


def _print_admitted(console: Console, admitted: Sequence[Admitted]) -> None:
    table = make_table("NAMESPACE", "WORKLOAD", "PODS", "FLAVORS", "QUEUE")
    for found in admitted[:MOST_ADMITTED]:
        flavors = ", ".join(dict.fromkeys(name for names in found.flavors.values() for name in names))
        table.add_row(found.namespace, found.owner, _pods(found), flavors, _queue(found))
    print_table(console, table)
    if len(admitted) > MOST_ADMITTED:
        more = count(len(admitted) - MOST_ADMITTED, "more workload")
        console.print(f"... and {more}; -o json lists them all", style="dim")


def _pods(found: Admitted) -> str:
    return f"{found.pods:,}" if found.pods >= found.asked_pods else f"{found.pods:,} of {found.asked_pods:,}"


def _queue(found: Admitted) -> str:
    words = [f"borrows {amounts_text(found.borrowed)}"] if found.borrowed else []
    if found.pending_checks:
        words.append(f"waits for admission checks: {', '.join(found.pending_checks)}")
    return f"{found.cluster_queue} ({'; '.join(words)})" if words else found.cluster_queue


def _print_suspended(console: Console, found: Suspended) -> None:
    """One line, not broken up: the message is Kueue's, and somebody may look for it."""
    line = Text(f"{found.namespace} {found.owner}", style="bold yellow")
    if found.preemptor:
        namespace = found.preemptor.partition("/")[0]
        line.append(f" for {namespace} {found.preemptor_owner}", style="default not bold")
    line.append(f": {found.reason}: {found.message}", style="default not bold")
    console.print(line, soft_wrap=True)
