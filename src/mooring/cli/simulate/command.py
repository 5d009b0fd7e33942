"""`mooring simulate`: a scenario in virtual time, policies side by side."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from mooring.cli.options import Format, Output, Quiet
from mooring.cli.output import make_console, print_data
from mooring.cli.progress import ProgressBar
from mooring.errors import InputError


def simulate(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="A file of kind Simulation.", show_default=False)
    ],
    output: Output = Format.TABLE,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAME", help="Only this policy of the scenario; may be repeated."),
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(
            "--seed", min=0, max=2**32 - 1, help="This seed instead of the scenario's; may be repeated.", metavar="N"
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with charts of the results: one HTML file, and nothing else."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write raw results here; runs that are there already are not run again."),
    ] = None,
    raw: Annotated[
        Literal["csv", "parquet"], typer.Option("--format", help="What raw results are written as.")
    ] = "csv",
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="How many runs at a time. Default: one a core."),
    ] = None,
    backend: Annotated[
        Literal["loky", "threading", "dask", "ray"],
        typer.Option(help="What runs are spread by: processes here, threads here, or a cluster of Dask or Ray."),
    ] = "loky",
    scheduler: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Of that cluster: Dask's scheduler, such as tcp://10.0.0.7:8786; Ray's head, such as 10.0.0.7:6379.",
        ),
    ] = "",
    wide: Annotated[
        bool, typer.Option("--wide", "-w", help="Tables by queue, size class and priority as well.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run a cluster in virtual time under one policy or several, and compare what became of its jobs.

    The same scenario and seed give the same results, bit for bit, on one core or on many machines. If a run fails, the
    others go on and the exit code is 1; given again with --results, the command takes up what is missing.

    \b
    Example:
      mooring simulate examples/simulations/two-teams.yaml --report out.html
      mooring simulate scenario.yaml --policy packing --seed 7 -o json
      mooring simulate scenario.yaml --results out --format parquet
      mooring simulate scenario.yaml --backend dask --scheduler tcp://10.0.0.7:8786
    """
    from mooring.drivers.sim.experiment import Where, run_all
    from mooring.drivers.sim.reading import choose_policies, read_scenario
    from mooring.report.simulation.files import write_tables
    from mooring.report.simulation.metrics import metrics_of
    from mooring.report.simulation.summary import make_summary
    from mooring.report.simulation.texts import key_figures

    if (backend in ("dask", "ray")) != bool(scheduler):
        raise InputError("--scheduler: expected it together with --backend dask or ray, found one without the other")
    if report is not None and (report.is_dir() or not report.absolute().parent.is_dir()):
        raise InputError(f"--report: expected a file in a folder that is there, found {report}")
    with ProgressBar(quiet=quiet) as progress:
        progress.phase("reading the scenario")
        prepared = read_scenario(scenario)
        policies = choose_policies(prepared, policy or ())
        seeds = list(dict.fromkeys(seed or prepared.seeds))
        runs, failed = run_all(prepared, policies, seeds, Where(jobs or -1, backend, scheduler), results, progress)
        progress.phase("measuring")
        summary = make_summary(prepared.name, [metrics_of(run) for run in runs], failed)
        for run in runs if results is not None else ():
            assert results is not None
            write_tables(run, results / run.policy / f"seed-{run.seed}", raw)
        if report is not None:
            from mooring.report.simulation.page.page import Told, simulation_page

            progress.phase("drawing the report")
            told = Told(prepared.name, _to_repeat(scenario, policy, seed, report), key_figures(summary))
            report.write_text(simulation_page(told, runs), encoding="utf-8")
    if output is Format.TABLE:
        from mooring.cli.simulate.table import print_summary

        print_summary(make_console(), summary, wide=wide)
    else:
        print_data(summary, output)
    for each in failed:
        typer.echo(f"error: policy {each.policy}, seed {each.seed}: {each.message}", err=True)
    if failed:
        raise typer.Exit(1)


def _to_repeat(scenario: Path, policies: list[str] | None, seeds: list[int] | None, report: Path) -> str:
    """The command that gives the same results; how many processes ran it, and where, does not change them."""
    words = ["mooring", "simulate", str(scenario)]
    for name in policies or ():
        words += ["--policy", name]
    for number in seeds or ():
        words += ["--seed", str(number)]
    return shlex.join([*words, "--report", str(report)])
