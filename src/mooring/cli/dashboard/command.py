"""`mooring dashboard`: see a cluster, ask why, and try a change before making it."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from mooring.cli.inputs import make_inputs
from mooring.cli.options import (
    Cluster,
    Config,
    Context,
    Files,
    Metrics,
    MoreFiles,
    Now,
    PluginFiles,
    Quiet,
    Seed,
    TakenOn,
    Validate,
)
from mooring.cli.output import remark_ignored, warn
from mooring.cli.progress import ProgressBar
from mooring.errors import InputError


def dashboard(
    filename: Files = None,
    files: MoreFiles = None,
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Where to serve the pages. For other machines, the link that is printed has the token they need.",
        ),
    ] = "127.0.0.1:8010",
    access: Annotated[
        Literal["token", "cluster"] | None,
        typer.Option(
            help="Who may open them: who has the token of the link, or users of the cluster, by their tokens there, "
            "each what the cluster lets them list. Default: on a loopback address everybody, else by the token.",
        ),
    ] = None,
    every: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            help="How long to wait at least before what waits in a cluster is decided on again.",
        ),
    ] = 0.3,
    decision_log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The decision log of the cluster's scheduler, shown on the page of times."),
    ] = None,
    in_cluster: Annotated[
        bool, typer.Option("--in-cluster", help="Follow the cluster that this runs in, as a pod of it.")
    ] = False,
    plans_from_stdin: Annotated[bool, typer.Option("--plans-from-stdin", hidden=True)] = False,
    config: Config = None,
    plugin: PluginFiles = None,
    seed: Seed = 0,
    now: Now = None,
    metrics: Metrics = None,
    taken_on: TakenOn = None,
    validate: Validate = "strict",
    kubeconfig: Cluster = None,
    context: Context = None,
    quiet: Quiet = False,
) -> None:
    """Serve pages over manifests, a snapshot or a cluster: nodes, queues, pods with the reasons why they wait, and what
    manifests would bring about. Nothing is changed.

    \b
    Example:
      mooring dashboard -f examples/ai-platform
      mooring snapshot > cluster.json; mooring dashboard -f cluster.json
      mooring dashboard --kubeconfig ~/.kube/config --address :8010 --access cluster
    """
    from mooring.dashboard.picture import IN_CLUSTER, take_picture
    from mooring.dashboard.serving import Serving
    from mooring.dashboard.watching import Watching
    from mooring.drivers.offline.reading import read

    if in_cluster and kubeconfig is not None:
        raise InputError("--in-cluster: expected no --kubeconfig with it, found one")
    inputs = make_inputs(
        filename,
        files,
        IN_CLUSTER if in_cluster else kubeconfig,
        config=config,
        plugin=plugin,
        seed=seed,
        then=None,
        now=now,
        metrics=metrics,
        taken_on=taken_on,
        validate=validate,
        context=context,
    )
    if inputs.kubeconfig is None and access == "cluster":
        raise InputError("--access: expected token over manifests, which have no users, found cluster")
    serving = Serving(address, access, decision_log)
    if inputs.kubeconfig is not None:
        serving.run_following(inputs, every, _tell, has_plans=plans_from_stdin)
        return
    with ProgressBar(quiet=quiet) as progress:
        loaded = read(inputs, progress)
        first = take_picture(1, ", ".join(inputs.files), loaded, progress)
    warn(loaded.warnings, quiet=quiet)
    remark_ignored(loaded.manifests.ignored, loaded.remarks, quiet=quiet)
    _tell(serving.link)
    serving.run(Watching(first))


def _tell(link: str) -> None:
    typer.echo(f"dashboard: {link}")
