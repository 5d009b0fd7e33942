"""`mooring dashboard`: see a cluster, ask why, and try a change before making it."""

from typing import Annotated

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
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.2, help="How often a cluster is read again.")] = 5.0,
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
      mooring dashboard --kubeconfig ~/.kube/config --every 10
    """
    from mooring.dashboard.picture import Source
    from mooring.dashboard.serving import Serving

    inputs = make_inputs(
        filename,
        files,
        kubeconfig,
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
    serving = Serving(address)
    source = Source(inputs)
    with ProgressBar(quiet=quiet) as progress:
        first = source.take(progress)
    warn(first.loaded.warnings, quiet=quiet)
    remark_ignored(first.loaded.manifests.ignored, first.loaded.remarks, quiet=quiet)
    typer.echo(f"dashboard: {serving.link}")
    serving.run(source, first, every)
