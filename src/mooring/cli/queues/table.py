"""How queues stand, for people: a tree of cohorts and queues, their quotas, and who waits for whom."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from mooring.cli.queues.shares_table import count_shares, print_shares
from mooring.cli.tables import count, make_table, print_admissions, print_table
from mooring.report.amounts import amount_text, amounts_text
from mooring.report.queues.data import (
    CohortStatus,
    GivenBack,
    LocalQueueStatus,
    QueuesResult,
    QueueStatus,
    QuotaStatus,
    WaitingWorkload,
)
from mooring.report.queues.tree import TreeRow, tree_rows

INDENT = "  "
MOST_WAITING = 10
"""Workloads of one queue that are listed before the rest is only counted."""
MOST_GIVING = 8
"""Workloads that would have to give back, listed before the rest is only counted."""


def print_queues(console: Console, result: QueuesResult, *, everyone: bool = False) -> None:
    """Print all of it; `everyone` lists each workload that waits, however many they are."""
    console.print(_summary(result), soft_wrap=True)
    print_admissions(console, result.admitted, result.suspended, result.notices)
    lines = list(tree_rows(result))
    if lines:
        _print_states(console, lines)
        _print_quotas(console, lines)
    _print_local_queues(console, result.local_queues)
    _print_inactive(console, result)
    _print_waiting(console, result, everyone=everyone)
    print_shares(console, result)


def _summary(result: QueuesResult) -> Text:
    if not result.queues and not result.volcano_queues and not result.shared_queues:
        return Text("no queues", style="bold")
    parts = []
    if result.queues:
        where = f" in {count(len(result.cohorts), 'cohort')}" if result.cohorts else ""
        parts.append(f"{count(len(result.queues), 'ClusterQueue')}{where}")
    parts += count_shares(result)
    text = Text(", ".join(parts), style="bold")
    if result.queues:
        admitted = sum(queue.admitted for queue in result.queues)
        waiting = sum(queue.waiting for queue in result.queues) + len(result.without_queue)
        text.append(f": {count(admitted, 'workload')} admitted", style="bold green")
        words = f"{waiting:,} {'waits' if waiting == 1 else 'wait'}"
        text.append(", ", style="default not bold").append(words, style="bold yellow" if waiting else "bold green")
    return text


def _name(row: TreeRow) -> str:
    cohort = "" if isinstance(row.found, QueueStatus) else "cohort "
    return f"{INDENT * row.depth}{cohort}{row.found.name}"


# The tables.


def _print_states(console: Console, lines: Sequence[TreeRow]) -> None:
    console.print()
    table = make_table("QUEUE", ">WEIGHT", ">SHARE", ">ADMITTED", ">WAITING", "STRATEGY", "STATE")
    for line in lines:
        found = line.found
        share = "endless" if found.weighted_share is None else f"{math.ceil(found.weighted_share):,}"
        cells = ["", "", "", ""]
        if isinstance(found, QueueStatus):
            admitted = f"{found.admitted:,}" + (f" + {found.reserved:,}" if found.reserved else "")
            cells = [admitted, f"{found.waiting:,}", found.strategy, "active" if found.active else "inactive"]
        table.add_row(_name(line), f"{found.weight:g}", share, *cells)
    print_table(console, table)


def _print_quotas(console: Console, lines: Sequence[TreeRow]) -> None:
    console.print()
    table = make_table("QUEUE", "FLAVOR", "RESOURCE", ">NOMINAL", ">USED", ">BORROWED", ">LENT", ">FREE")
    for line in lines:
        name = _name(line)
        has_parent = bool(line.found.parent if isinstance(line.found, CohortStatus) else line.found.cohort)
        for quota in line.found.quotas:
            table.add_row(name, quota.flavor, quota.resource, *_quota_cells(quota, has_parent=has_parent))
            name = ""
    print_table(console, table)


def _quota_cells(quota: QuotaStatus, *, has_parent: bool) -> tuple[str, str, str, str, str]:
    def shown(number: float) -> str:
        return amount_text(quota.resource, number)

    borrowed = lent = ""
    if has_parent:
        limit = "" if quota.borrowing_limit is None else f" of {shown(quota.borrowing_limit)}"
        borrowed = f"{shown(quota.borrowed)}{limit}"
        least, most = shown(quota.lent_at_least), shown(quota.lent_at_most)
        lent = f"{least if least == most else f'{least}-{most}'} of {shown(quota.idle)}"
    return shown(quota.nominal), shown(quota.used), borrowed, lent, shown(quota.available)


def _print_local_queues(console: Console, local_queues: Sequence[LocalQueueStatus]) -> None:
    if not local_queues:
        return
    console.print()
    table = make_table("NAMESPACE", "LOCAL QUEUE", "QUEUE", ">ADMITTED", ">WAITING", "STATE")
    for found in local_queues:
        state = "active" if found.active else "inactive"
        counts = (f"{found.admitted:,}", f"{found.waiting:,}")
        table.add_row(found.namespace, found.name, found.cluster_queue, *counts, state)
    print_table(console, table)


def _print_inactive(console: Console, result: QueuesResult) -> None:
    """Why queues admit nobody, a line each, not broken up."""
    reasons = [(queue.name, queue.inactive_reason) for queue in result.queues if not queue.active]
    known = {name for name, _ in reasons}
    reasons += [
        (f"{found.namespace}/{found.name}", found.inactive_reason)
        for found in result.local_queues
        if not found.active and found.cluster_queue not in known
    ]
    if not reasons:
        return
    console.print()
    console.print("INACTIVE", style="bold")
    for name, reason in reasons:
        console.print(Text(name, style="bold yellow").append(f": {reason}", style="default not bold"), soft_wrap=True)


# Who waits, in order: what it asks for, why it waits, and who would have to give back.


def _print_waiting(console: Console, result: QueuesResult, *, everyone: bool) -> None:
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
