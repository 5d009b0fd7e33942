"""`mooring up`: a cluster to try, in one process, with nothing to install."""

import logging
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from mooring.cli.options import Config

if TYPE_CHECKING:
    from mooring.kubeapi.cluster import Cluster
    from mooring.kubeapi.up import UpSettings
    from mooring.model.capacity.provider import Catalogue

USUAL_PORT = 7440
USUAL_PAGES = "127.0.0.1:8010"
USUAL_DATA = Path("mooring.db")
LONGEST_NAME = 64
"""Of a user: what a certificate has room for."""


def up(
    nodes: Annotated[
        int | None,
        typer.Option(min=0, show_default=False, help="How many simulated nodes. Default: 5, if no manifest has any."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes any that is free.")
    ] = USUAL_PORT,
    host: Annotated[
        str, typer.Option(help="The address to listen at; others than this machine can then reach it.")
    ] = "127.0.0.1",
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"Where the cluster is kept. Default: {USUAL_DATA}.")
    ] = None,
    in_memory: Annotated[bool, typer.Option("--in-memory", help="Keep the cluster in memory only.")] = False,
    config: Config = None,
    catalogue: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="An InstanceTypeCatalogue: what nodes NodePools can have, and how they come. Default: a built-in one.",
            show_default=False,
        ),
    ] = None,
    filename: Annotated[
        list[str] | None,
        typer.Option("--filename", "-f", metavar="FILE", help="Manifests to start with; may be repeated."),
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the kubeconfig. Default: beside the data.")
    ] = None,
    users: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            metavar="NAME[=GROUP,...]",
            help="A user without rights of its own, with a context of that name in the kubeconfig; may be repeated.",
        ),
    ] = None,
    scheduler: Annotated[
        bool, typer.Option("--scheduler/--no-scheduler", help="Whether Mooring schedules the cluster.")
    ] = True,
    dashboard: Annotated[
        bool, typer.Option("--dashboard/--no-dashboard", help="Whether the dashboard is served.")
    ] = True,
    dashboard_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            show_default=False,
            help=f"Where. Default: {USUAL_PAGES}, or another port of this machine if that is taken.",
        ),
    ] = None,
) -> None:
    """Start a Kubernetes control plane with simulated nodes, and let Mooring schedule it.

    kubectl and client libraries work against it. Pods are placed, start, run and end as on a cluster; only their
    containers do not exist. It ends with Ctrl-C; what is kept in a file is there again next time.

    \b
    Example:
      mooring up
      mooring up --nodes 100 --in-memory --port 7441
      mooring up -f examples/ai-platform --config scheduler.yaml
      mooring up --as alice=team-a && kubectl --context alice auth whoami
    """
    from mooring.errors import ConfigError
    from mooring.kubeapi.cluster import Place
    from mooring.kubeapi.up import UpSettings

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    if in_memory and data is not None:
        raise ConfigError("--in-memory", "", expected="--in-memory or --data, not both", found=f"--data {data}")
    if config is not None:
        _check_config(config, schedules=scheduler)
    if dashboard_address is not None and not dashboard:
        expected = "--dashboard-address or --no-dashboard, not both"
        raise ConfigError("--dashboard-address", "", expected=expected, found=dashboard_address)
    kept = None if in_memory else (data or USUAL_DATA)
    where = kubeconfig or (kept or USUAL_DATA).with_suffix(".kubeconfig")
    sold, file = _catalogue(catalogue, config)
    pages = _listen(dashboard_address) if dashboard else None
    with ExitStack() as opened:
        log = _decision_log(opened) if pages is not None and scheduler else None
        _run(
            UpSettings(
                Place(kept, host, port),
                where.resolve(),
                nodes,
                tuple(filename or ()),
                config,
                schedules=scheduler,
                catalogue=sold,
                catalogue_file=file,
                users=_read_users(users or ()),
                decision_log=log,
                pages=pages,
                dashboard=_dashboard(pages, where.resolve()) if pages is not None and not scheduler else (),
            ),
            where,
            kept,
        )


def _run(settings: "UpSettings", where: Path, kept: Path | None) -> None:
    from mooring.kubeapi.up import run

    code = run(settings, lambda cluster: _tell(cluster, where, kept, settings.pages))
    if code:
        raise typer.Exit(code)


def _listen(address: str | None) -> socket.socket:
    """Take the port of the dashboard: the one that was named, the usual one, or any that is free."""
    from mooring.drivers.live.dashboard_process import listen
    from mooring.errors import InputError

    if address is not None:
        return listen(address, "--dashboard-address")
    try:
        return listen(USUAL_PAGES, "--dashboard-address")
    except InputError:
        return listen("127.0.0.1:0", "--dashboard-address")


def _decision_log(opened: ExitStack) -> Path:
    """A file that lasts as long as the cluster does: the dashboard shows the decisions of any time."""
    return Path(opened.enter_context(TemporaryDirectory(prefix="mooring-up-"))) / "decisions.jsonl"


def _dashboard(pages: socket.socket, kubeconfig: Path) -> list[str]:
    from mooring.drivers.live.dashboard_process import dashboard_command

    return dashboard_command(pages, kubeconfig)


def _read_users(texts: Iterable[str]) -> dict[str, list[str]]:
    """Users with their groups: alice, or alice=team-a,team-b."""
    from mooring.errors import ConfigError

    found: dict[str, list[str]] = {}
    for text in texts:
        name, _, groups = text.partition("=")
        if not 0 < len(name) <= LONGEST_NAME or name in found or name.startswith("mooring"):
            expected = f"the name of another user, of at most {LONGEST_NAME} letters"
            raise ConfigError("--as", "", expected=expected, found=f'"{text}"')
        found[name] = [group for group in groups.split(",") if group]
    return found


def _catalogue(given: Path | None, config: Path | None) -> "tuple[Catalogue, Path | None]":
    """What is sold, and the file to tell the scheduler of: the one given, what the configuration has, or our own."""
    from mooring.config.catalogue import BUILT_IN, load_whole_catalogue
    from mooring.config.settings import load_settings
    from mooring.errors import ConfigError

    configured = load_settings(config).catalogue if config is not None else None
    if configured is None:
        path = (given or BUILT_IN).resolve()
        return load_whole_catalogue(path), path
    if given is not None:
        found = f"an InstanceTypeCatalogue in {config} as well"
        raise ConfigError("--catalogue", "", expected="one catalogue", found=found)
    return configured, None


def _check_config(config: Path, *, schedules: bool) -> None:
    """The scheduler reads its configuration in a process of its own: what is wrong with it is said before that."""
    from mooring.assembly import assemble
    from mooring.errors import ConfigError

    if not schedules:
        raise ConfigError("--config", "", expected="a scheduler to configure", found="--no-scheduler")
    assemble(config)


def _tell(cluster: "Cluster", kubeconfig: Path, data: Path | None, pages: socket.socket | None) -> None:
    """Say where it is and what to try."""
    kept = f"kept in {data}" if data is not None else "kept in memory"
    typer.echo(f"The cluster is up at {cluster.url} ({kept}).\n")
    typer.echo(f"  export KUBECONFIG={kubeconfig.resolve()}\n")
    typer.echo("Try:")
    typer.echo("  kubectl get nodes")
    typer.echo("  kubectl create deployment web --image=nginx --replicas=3")
    typer.echo("  kubectl get pods --watch")
    if pages is not None:
        host, port = pages.getsockname()[:2]
        typer.echo(f"\nThe dashboard: http://{f'[{host}]' if ':' in host else host}:{port}/")
    typer.echo("\nCtrl-C ends it.")
