"""Tables without lines, in kubectl's manner: upper-case headers, columns held apart by spaces.

Also what several commands print: the heading of a step, and what was decided on workloads.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mooring.report.admissions import Admitted, Noticed, Suspended
from mooring.report.amounts import amounts_text
from mooring.report.story import StepResult

ENDLESS = 1 << 20
MOST_ADMITTED = 40
"""Workloads that a table lists before it refers to json."""


def make_table(*headers: str, low_headers: bool = False) -> Table:
    """A table with these columns; `>` before a header aligns its column to the right, `=` keeps its lines whole.

    Headers of several lines look better when they stand on their columns (`low_headers`), long cells when they do not.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        table.add_column(
            header.removeprefix(">").removeprefix("="),
            justify="right" if header.startswith(">") else "left",
            no_wrap=header.startswith("="),
            overflow="fold",
            vertical="bottom" if low_headers else "top",
        )
    return table


def natural_width(console: Console, table: Table) -> int:
    """How many columns of text a table takes if nothing is broken over lines."""
    return table.__rich_measure__(console, console.options.update(max_width=ENDLESS)).maximum


def print_table(console: Console, table: Table) -> None:
    """Print a table, without the blanks that fill its last column; lines that are to be whole may exceed the width."""
    width = console.width
    if any(column.no_wrap for column in table.columns):
        console.width = max(width, natural_width(console, table))
    with console.capture() as captured:
        console.print(table)
    console.width = width
    console.file.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def pool_policy(policy: str, reserved_percent: int, *, moves_back: bool) -> str:
    """`Dedicated`, `Reserved 25%`, `Shared, moves back`; `-` for a pool without one."""
    reserve = f" {reserved_percent}%" if reserved_percent else ""
    return f"{policy or '-'}{reserve}{', moves back' if moves_back else ''}"


def count(number: int, noun: str) -> str:
    """`1 pod`, `40 pods`, `12,000 pods`"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def print_heading(console: Console, number: int, step: StepResult[Any], *, with_time: bool) -> None:
    """Which step it is, counted from 0, when it happens, and what its file says of it."""
    if number:
        console.print()
    when = "at first" if not number else f"{_in_words(step.after_seconds)} later"
    time = f", {step.now}" if with_time else ""
    console.print(Text(f"STEP {number + 1}, {when}{time}: {step.file}", style="bold reverse"), soft_wrap=True)
    for line in textwrap.wrap(step.said, console.width):
        console.print(Text(line, style="italic"))
    console.print()


def _in_words(seconds: float) -> str:
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


# What was decided on workloads.


def print_admissions(
    console: Console, admitted: Sequence[Admitted], suspended: Sequence[Suspended], notices: Sequence[Noticed]
) -> None:
    if admitted:
        console.print()
        console.print("ADMITTED", style="bold")
        _print_admitted(console, admitted)
    if suspended:
        console.print()
        console.print("SUSPENDED", style="bold")
        for found in suspended:
            _print_suspended(console, found)
    if notices:
        console.print()
        console.print("NOTICE", style="bold")
        for told in notices:
            line = Text(f"{told.namespace} {told.owner}", style="bold yellow")
            line.append(f" at {told.at}: {told.message}", style="default not bold")
            console.print(line, soft_wrap=True)


def _print_admitted(console: Console, admitted: Sequence[Admitted]) -> None:
    table = make_table("NAMESPACE", "WORKLOAD", "PODS", "FLAVORS", "=QUEUE")
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
