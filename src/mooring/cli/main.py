"""The `mooring` command: what it can do, and how it ends.

Exit code 0 on success, 1 on a stated failure, 2 on bad input; what went wrong is one line on standard error.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from mooring.cli.bench.command import bench
from mooring.cli.capacity.command import capacity
from mooring.cli.dashboard.command import dashboard
from mooring.cli.explain.command import explain
from mooring.cli.failures import describe_failure
from mooring.cli.queues.command import queues
from mooring.cli.rebalance.command import rebalance
from mooring.cli.recommend.command import recommend
from mooring.cli.run.command import RunCommand
from mooring.cli.run.command import run as run_command
from mooring.cli.schedule.command import schedule
from mooring.cli.shadow.command import shadow
from mooring.cli.simulate.command import simulate
from mooring.cli.snapshot.command import snapshot
from mooring.cli.up.command import up

app = typer.Typer(
    name="mooring",
    help="A scheduler suite for large Kubernetes clusters that run AI and ML work.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(short_help="Decide offline: manifests in, placements out.")(schedule)
app.command(short_help="Why a pod is where it is, or what would make it fit.")(explain)
app.command(short_help="Who has quota, who waits, and who would have to give back.")(queues)
app.command(short_help="Which running pods to move, where, why, and what it is worth.")(rebalance)
app.command(short_help="What containers need, by what they used, and what would change.")(recommend)
app.command(short_help="Which nodes to buy, and which could go.")(capacity)
app.command(short_help="What is read of a cluster, as a file.")(snapshot)
app.command(name="run", cls=RunCommand, short_help="Schedule a real cluster.")(run_command)
app.add_typer(shadow, short_help="How a shadow compares with the present scheduler.")
app.command(short_help="A cluster to try: control plane, simulated nodes, Mooring.")(up)
app.command(short_help="A cluster in virtual time: policies side by side.")(simulate)
app.command(short_help="Pages: nodes, queues, why pods wait, and what a change would do.")(dashboard)
app.command(short_help="How fast the engine decides, workload by workload.")(bench)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mooring {version()}")
        raise typer.Exit


def version() -> str:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("mooring")
    except PackageNotFoundError:
        return "(not installed)"


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A scheduler suite for large Kubernetes clusters that run AI and ML work."""


def run(arguments: Sequence[str]) -> int:
    """Run one command; return its exit code."""
    try:
        code = app(list(arguments), prog_name="mooring", standalone_mode=False)
    except typer.Exit as request:
        return request.exit_code
    except BrokenPipeError:
        # Whoever read our output has had enough. What is still buffered has nowhere to go, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, typer.Abort):
        print("error: interrupted", file=sys.stderr)
        return 1
    except Exception as error:
        failure = describe_failure(error)
        if failure is None:
            raise
        if failure.message:
            print(f"error: {failure.message}", file=sys.stderr)
        return failure.exit_code
    return code if isinstance(code, int) else 0


def collect_less_often() -> None:
    """Let the cyclic collector run after 50,000 new objects instead of 700.

    A cluster is a million objects that stay, in hardly any cycles: to walk them again and again finds nothing.
    """
    gc.set_threshold(50_000, 20, 20)


def main() -> None:
    collect_less_often()
    sys.exit(run(sys.argv[1:]))
