"""The results of simulations as tables: a column a policy, a row a metric."""

from typing import TYPE_CHECKING

from mooring.cli.tables import make_table, print_table
from mooring.report.simulation.metrics import JobTimes, Metrics
from mooring.report.simulation.summary import Summary
from mooring.report.simulation.texts import at_least, duration_text, key_figures

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def print_summary(console: "Console", summary: Summary, *, wide: bool) -> None:
    if summary.policies:
        _print_policies(console, summary)
    for run in summary.runs if wide else ():
        _print_run(console, run)


def _print_policies(console: "Console", summary: Summary) -> None:
    figures = key_figures(summary)
    console.print(figures.caption)
    first, *policies = figures.headers
    table = make_table(first.upper(), *(f">{policy}" for policy in policies))
    for row in figures.rows:
        table.add_row(*row)
    print_table(console, table)


def _print_run(console: "Console", run: Metrics) -> None:
    console.print(f"\n{run.policy}, seed {run.seed}")
    table = make_table("RESOURCE", "MODEL", ">ALLOCATED", ">USED")
    for use in run.resources:
        table.add_row(use.resource, use.model, f"{use.allocation:.2%}", f"{use.utilisation:.2%}")
    print_table(console, table)
    for title, rows in (("QUEUE", run.queues), ("GPUS", run.size_classes), ("PRIORITY", run.priorities)):
        print_table(console, _times_table(title, rows))


def _times_table(title: str, rows: list[JobTimes]) -> "Table":
    table = make_table(title, ">JOBS", ">FINISHED", ">WAITING", ">QUEUED", ">P95", ">P99", ">COMPLETED", ">SLOWDOWN")
    for row in rows:
        queueing, completion = row.queueing, row.completion
        table.add_row(
            row.name,
            f"{row.jobs:,}",
            f"{row.finished:,}",
            f"{row.waiting:,}",
            at_least(duration_text(queueing.mean), queueing.censored),
            *(duration_text(value) for value in (queueing.p95, queueing.p99)),
            at_least(duration_text(completion.mean), completion.censored),
            at_least(f"{row.slowdown.mean:.2f}", row.slowdown.censored),
        )
    return table
