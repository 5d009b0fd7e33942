"""What `mooring bench` found out, as tables: one for placing pods, one for decisions of other kinds."""

import sys
from typing import Any

import typer

REFERENCE = {
    "basic": (789, 108),
    "distinct": (649, 100),
    "hard-spread": (296, 79),
    "required-anti-affinity": (204, 70),
    "preferred-affinity": (205, 60),
}
"""kube-scheduler v1.37's own engine on 2 cores with 5,000 nodes (scheduling cycle, assume and snapshot, no API calls),
pods a second: as it comes, looking at a tenth of the nodes, and with all nodes scored."""

OTHER_DECISIONS = {
    "gangs_per_second": "gangs/s",
    "preemptions_per_second": "preemptions/s",
    "admissions_per_second": "admissions/s",
    "binds_per_second": "binds/s",
    "trials_per_second": "trials/s",
    "passes_per_second": "passes/s",
    "loops_per_second": "loops/s",
    "plans_per_second": "plans/s",
}
"""What is counted besides pods: the field, and how to say it."""


def print_figures(results: list[dict[str, Any]]) -> None:
    others = [result for result in results if _rate(result)]
    pods = [result for result in results if not _rate(result)]
    if pods:
        _print_pods(pods)
    if pods and others:
        typer.echo()
    if others:
        _print_others(others)


def print_workloads(workloads: list[dict[str, Any]]) -> None:
    """One line a workload: its sizes if nobody asks for others, and what it is."""
    from mooring.cli.tables import make_table

    table = make_table("WORKLOAD", ">NODES", ">PODS", "=WHAT IT IS")
    for found in workloads:
        mark = "*" if found["long"] else ""
        table.add_row(found["workload"] + mark, f"{found['nodes']:,}", f"{found['pods']:,}", found["description"])
    _show(table)
    if any(found["long"] for found in workloads):
        typer.echo("\n* takes minutes, and is measured only if it is named, or with --all")


def print_comparison(results: list[dict[str, Any]]) -> None:
    """One line a workload: the least CPU seconds of each, and how many times as fast this Mooring is."""
    from mooring.cli.tables import make_table

    table = make_table("WORKLOAD", ">NODES", ">PODS", ">THEIRS s", ">OURS s", ">TIMES", ">BY MEDIAN", "DECISIONS")
    for found in results:
        table.add_row(
            found["workload"],
            f"{found['nodes']:,}",
            f"{found['pods']:,}",
            f"{min(found['their_cpu_seconds']):.2f}",
            f"{min(found['our_cpu_seconds']):.2f}",
            f"{found['times']:.2f}",
            f"{found['times_by_median']:.2f}",
            "as many" if found["same_counts"] else "differ",
        )
    _show(table)
    runs = len(results[0]["our_cpu_seconds"])
    typer.echo(
        f"\nCPU seconds in cycles, the least of {runs} runs each in turn; TIMES is theirs over ours, BY MEDIAN that of "
        "the\nmedians. DECISIONS says whether both placed, evicted and admitted as many."
    )


def _print_pods(results: list[dict[str, Any]]) -> None:
    from mooring.cli.tables import make_table

    table = make_table(
        "WORKLOAD", ">NODES", ">PODS", ">PODS/S", ">P50 µs", ">P99 µs", ">MiB", ">DEFAULT", ">ALL NODES", ">TIMES"
    )
    for result in results:
        default, every = REFERENCE.get(result["workload"], (0, 0))
        times = f"{result['pods_per_second'] / every:.0f}x" if every and result["nodes"] == 5_000 else ""
        table.add_row(
            *_common(result),
            f"{default}/s" if default else "",
            f"{every}/s" if every else "",
            times,
        )
    _show(table)
    typer.echo(
        "\nDEFAULT and ALL NODES are kube-scheduler v1.37's own engine with 5,000 nodes on 2 cores, pods a second: "
        "as it\ncomes, looking at a tenth of the nodes, and scoring all of them, as Mooring does. "
        "TIMES is ours over the latter."
    )


def _print_others(results: list[dict[str, Any]]) -> None:
    from mooring.cli.tables import make_table

    table = make_table("WORKLOAD", ">NODES", ">PODS", ">PODS/S", ">P50 µs", ">P99 µs", ">MiB", ">DECISIONS", ">WAITING")
    for result in results:
        table.add_row(*_common(result), _rate(result), f"{result['waiting']:,}")
    _show(table)
    typer.echo(
        "\nP50 and P99 are microseconds a decision: a whole gang, a preemption from the arrival to the victims, "
        "or a whole\ncycle of admission; of binds, what the client sees of one over HTTPS; of trials, one "
        "that is\nundone. "
        "WAITING pods had their decision, and no node."
    )
    for result in results:
        if "update_cpu_seconds" in result:
            update, advise = result["update_cpu_seconds"], result["estimate_cpu_seconds"]
            typer.echo(
                f"{result['workload']}: a sample of each of {result['pods']:,} containers takes {update:.2f} CPU "
                f"seconds, a recommendation for all {advise:.2f};\n"
                f"the peak of memory is {result['peak_rss_mib']:,} MiB."
            )
        if "gangs_placed" in result and "moves" in result:
            typer.echo(
                f"{result['workload']}: {result['gangs_placed']:,} gangs have their places after {result['moves']:,} "
                f"moves, decided in {result['plan_seconds']:.2f} s ({result['plan_cpu_seconds']:.2f} of CPU)."
            )
        elif "plan_seconds" in result:
            moves, stays = result["moves"], result["stays"]
            typer.echo(
                f"{result['workload']}: the first plan took {result['plan_seconds']:.2f} s "
                f"({result['plan_cpu_seconds']:.2f} of CPU): {moves:,} pods move, {stays:,} that were chosen stay."
            )


def _common(result: dict[str, Any]) -> list[str]:
    return [
        result["workload"],
        f"{result['nodes']:,}",
        f"{result['pods']:,}",
        f"{result['pods_per_second']:,.0f}",
        f"{result['p50_us']:,.1f}",
        f"{result['p99_us']:,.1f}",
        f"{result['peak_rss_mib']:,}",
    ]


def _rate(result: dict[str, Any]) -> str:
    """How many decisions a second, if they are not of pods: `311 gangs/s`"""
    for field, unit in OTHER_DECISIONS.items():
        if field in result:
            rate = result[field]
            return f"{rate:,.0f} {unit}" if rate >= 10 else f"{rate:.2g} {unit}"
    return ""


def _show(table: Any) -> None:
    from rich.console import Console

    from mooring.cli.tables import print_table

    print_table(Console(width=None if sys.stdout.isatty() else 120), table)
