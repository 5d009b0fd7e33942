"""The report of a shadow as tables."""

from typing import TYPE_CHECKING

from mooring.cli.tables import count, make_table, print_table
from mooring.observe.shadow_log import Outcome
from mooring.report.shadow import Delays, ShadowReport, SideCounts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_MEANINGS = {
    Outcome.SAME: "the same node",
    Outcome.TIE: "another node that scored equally",
    Outcome.OTHER: "another node",
    Outcome.BEFORE_US: "bound before Mooring decided",
    Outcome.UNSCHEDULABLE: "bound, and Mooring found no node",
    Outcome.PREEMPTION: "bound, and Mooring was about to evict others",
    Outcome.UNCONFIRMED: "not bound yet, and Mooring chose a node",
}


def print_report(console: "Console", report: ShadowReport) -> None:
    schedulers = ", ".join(report.schedulers) or "a scheduler that the log does not name"
    console.print(f"{count(report.pods, 'pod')} of {schedulers} in {report.seconds:,.0f} s", soft_wrap=True)
    for text in _agreement(report):
        console.print(text, soft_wrap=True)
    console.print()
    _print_outcomes(console, report)
    _print_reasons(console, report)
    _print_delays(console, report)
    _print_sides(console, report)
    _print_examples(console, report)


def _agreement(report: ShadowReport) -> list[str]:
    if report.agreement is None or report.same_state_agreement is None:
        return []
    lines = [
        f"agreement on the same state: {report.same_state_agreement:.1%}",
        f"agreement at the moment of the decision: {report.agreement:.1%}",
    ]
    if report.decided_agreement is not None and report.decided < report.pods:
        lines[1] += f", {report.decided_agreement:.1%} of the {report.decided:,} pods that Mooring decided on in time"
    return lines


def _print_outcomes(console: "Console", report: ShadowReport) -> None:
    table = make_table("OUTCOME", ">PODS", ">PART", "MEANING")
    for outcome, meaning in _MEANINGS.items():
        pods = report.outcomes[outcome.value]
        if not pods and outcome not in (Outcome.SAME, Outcome.TIE, Outcome.OTHER):
            continue
        if outcome is Outcome.BEFORE_US:
            parts = ", ".join(f"{number:,} {name}" for name, number in report.hindsight.items())
            meaning += f"; its node beside the one that Mooring would choose: {parts}" if parts else ""
        if outcome is Outcome.OTHER and report.drift:
            meaning += f"; {report.drift:,} explained by earlier decisions that differ"
        table.add_row(outcome.value, f"{pods:,}", f"{pods / report.pods:.1%}" if report.pods else "-", meaning)
    print_table(console, table)


def _print_reasons(console: "Console", report: ShadowReport) -> None:
    if not report.reasons:
        return
    console.print()
    if report.median_difference is not None:
        console.print(f"median difference of the scores: {report.median_difference:g}")
    table = make_table("PLUGIN", "BY", ">PODS")
    for reason in report.reasons:
        table.add_row(reason.plugin, reason.what, f"{reason.pods:,}")
    print_table(console, table)


def _print_delays(console: "Console", report: ShadowReport) -> None:
    console.print()
    table = make_table("DELAY", ">PODS", ">MEDIAN", ">P99", ">LONGEST")
    _add_delays(table, "Mooring: the cycle that decided", report.deciding)
    _add_delays(table, "Mooring: from seen to decided", report.ours)
    _add_delays(table, "present scheduler: from seen to bound", report.theirs)
    print_table(console, table)


def _add_delays(table: "Table", title: str, delays: Delays | None) -> None:
    if delays is not None:
        values = [_seconds(value) for value in (delays.median, delays.p99, delays.longest)]
        table.add_row(title, f"{delays.pods:,}", *values)


def _print_sides(console: "Console", report: ShadowReport) -> None:
    rows = [("pods evicted for others", report.preemptions), ("workloads admitted", report.admissions)]
    rows = [(title, counts) for title, counts in rows if counts != SideCounts()]
    if rows:
        console.print()
        table = make_table("DECISION", ">BOTH", ">MOORING ALONE", ">PRESENT SCHEDULER ALONE")
        for title, counts in rows:
            table.add_row(title, f"{counts.both:,}", f"{counts.ours:,}", f"{counts.theirs:,}")
        print_table(console, table)
    if report.other_flavors:
        console.print(f"{count(report.other_flavors, 'workload')} admitted by both with other flavors")
    for kind, number in report.other_decisions.items():
        console.print(f"Mooring alone: {kind} {number:,}")


def _print_examples(console: "Console", report: ShadowReport) -> None:
    if report.examples:
        console.print()
        table = make_table("POD", "MOORING", "BOUND TO", "WHY")
        for each in report.examples:
            table.add_row(each.pod, each.node or "-", each.bound or "-", each.why)
        print_table(console, table)
    for text in (*report.preempted_examples, *report.admitted_examples):
        console.print(text, soft_wrap=True)


def _seconds(value: float) -> str:
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"
