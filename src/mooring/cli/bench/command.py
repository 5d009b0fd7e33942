"""`mooring bench`: how fast the engine decides, workload by workload, each in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mooring.cli.bench.table import print_comparison, print_figures, print_workloads
from mooring.cli.options import Format, Output, Quiet
from mooring.cli.progress import ProgressBar

if TYPE_CHECKING:
    from mooring.testing.workloads import Workload

Workloads = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        "-w",
        metavar="NAME",
        help="A workload, by name or file; may be repeated. Default: all but those that take minutes.",
    ),
]


def bench(
    workload: Workloads = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, show_default=False, help="How many nodes. Default: the workload's own number.")
    ] = None,
    pods: Annotated[
        int | None,
        typer.Option(min=1, show_default=False, help="How many pods come. Default: the workload's own number."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Measure also the workloads that take minutes.")] = False,
    list_only: Annotated[bool, typer.Option("--list", help="Say what workloads there are, and measure none.")] = False,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="CHECKOUT",
            show_default=False,
            help="Say how many times as fast this is as another checkout.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="With --against: how often each of the two is measured.")] = 5,
    output: Output = Format.TABLE,
    quiet: Quiet = False,
    alone: Annotated[bool, typer.Option("--alone", hidden=True)] = False,
) -> None:
    """Measure how fast the engine decides, from the queue to the decision: on pods, gangs, preemptions, admissions.

    Every node is scored, all default plugins are on, and what was decided is verified: nothing over-allocated,
    constraints kept, gangs whole, quotas kept, victims of lower priority. Each workload runs in a process of its own,
    so that its peak memory is its own.

    \b
    Example:
      mooring bench --list
      mooring bench --workload basic --workload mix
      mooring bench --workload gang --nodes 1000 --pods 5000 -o json
      mooring bench --workload basic --against ../mooring-before
    """
    from mooring.cli.bench.against import compare, sources
    from mooring.testing.workloads import load_workload

    found = [(path, load_workload(path)) for path in _paths(workload)]
    if list_only:
        _print([_summary(one) for _, one in found], output)
        return
    chosen = [(path, one) for path, one in found if workload or everything or not one.long]
    theirs = None if against is None else sources(against)
    results = []
    with ProgressBar(quiet=quiet) as progress:
        for index, (path, one) in enumerate(chosen):
            if alone:
                results.append(_measure_here(one, nodes, pods, progress))
            else:
                progress.phase(f"{one.name} ({index + 1} of {len(chosen)})", total=len(chosen))
                progress.reached(index)
                sizes = _size_options(nodes, pods)
                results.append(_measure_apart(path, sizes) if theirs is None else compare(path, theirs, runs, sizes))
    _print(results, output)


def _print(results: list[dict[str, Any]], output: Format) -> None:
    if output is Format.JSON:
        typer.echo(json.dumps(results, indent=2))
    elif output is Format.YAML:
        import yaml

        typer.echo(yaml.safe_dump(results, sort_keys=False), nl=False)
    elif results and "description" in results[0]:
        print_workloads(results)
    elif results and "times" in results[0]:
        print_comparison(results)
    else:
        print_figures(results)


def _summary(workload: "Workload") -> dict[str, Any]:
    return {
        "workload": workload.name,
        "nodes": workload.sizes.nodes,
        "pods": workload.sizes.pods,
        "long": workload.long,
        "description": workload.description,
    }


def _paths(names: list[str] | None) -> list[Path]:
    from mooring.config.scheduler import suggestion
    from mooring.errors import ConfigError
    from mooring.testing.workloads import bench_folder

    known = {path.stem: path for path in sorted(bench_folder().glob("*.yaml"), key=lambda path: path.stem)}
    if not names:
        return list(known.values())
    paths = []
    for name in names:
        path = known.get(name, Path(name))
        if not path.is_file():
            hint = suggestion(name, known) or f" ({', '.join(known)})"
            raise ConfigError("--workload", "", expected=f"a workload{hint}", found=f'"{name}"')
        paths.append(path)
    return paths


def _measure_here(workload: "Workload", nodes: int | None, pods: int | None, progress: ProgressBar) -> dict[str, Any]:
    import msgspec

    from mooring.testing.measure import measure

    def report(phase: str, done: int, total: int) -> None:
        progress.phase(f"{workload.name}: {phase}", total=total or None)
        progress.reached(done)

    found: dict[str, Any] = msgspec.to_builtins(measure(workload, nodes, pods, report))
    return found


def _size_options(nodes: int | None, pods: int | None) -> list[str]:
    sizes = (("--nodes", nodes), ("--pods", pods))
    return [text for name, size in sizes if size is not None for text in (name, str(size))]


def _measure_apart(path: Path, sizes: list[str]) -> dict[str, Any]:
    """Measure in a fresh interpreter: what another workload left behind would count as this one's memory."""
    from mooring.errors import MooringError

    options = ["--workload", str(path), "-o", "json", "-q", "--alone", *sizes]
    done = subprocess.run([sys.executable, "-m", "mooring", "bench", *options], capture_output=True, text=True)
    if done.returncode:
        raise MooringError(done.stderr.strip().removeprefix("error: ") or f"{path.stem} ended with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)[0]
    return found
