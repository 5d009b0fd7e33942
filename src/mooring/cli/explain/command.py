"""`mooring explain`: why a pod is where it is, or what would make it fit."""

from pathlib import Path
from typing import Annotated

import typer

from mooring.cli.inputs import make_inputs
from mooring.cli.options import (
    Cluster,
    Config,
    Context,
    Files,
    Format,
    Metrics,
    MoreFiles,
    Namespace,
    Now,
    Output,
    PluginFiles,
    Quiet,
    Seed,
    TakenOn,
    Then,
    Validate,
)
from mooring.cli.output import make_console, print_data, remark_ignored, warn
from mooring.cli.progress import ProgressBar


def explain(
    pod: Annotated[
        str, typer.Argument(metavar="POD", help="name or namespace/name of a pod, or a workload such as job/train")
    ],
    filename: Files = None,
    files: MoreFiles = None,
    output: Output = Format.TABLE,
    config: Config = None,
    plugin: PluginFiles = None,
    seed: Seed = 0,
    every: Annotated[bool, typer.Option("--all", "-a", help="Show every node, not just the foremost.")] = False,
    then: Then = None,
    now: Now = None,
    metrics: Metrics = None,
    taken_on: TakenOn = None,
    validate: Validate = "strict",
    kubeconfig: Cluster = None,
    context: Context = None,
    namespace: Namespace = "",
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Show what a decision log says of it, a pod, workload or job, instead (mooring run --decision-log).",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Say why a pod gets its node, or what keeps it waiting and which single change would make it fit.

    A pod that gets a node is shown as the scheduler met it in queue order, with the pods before it in their places; a
    pod that waits, as things stand at the end. What would help is computed from the plugins' answers: on the nodes
    listed, nothing but that one change is missing. With --then, it is explained as things stand after the last step.

    \b
    Example:
      mooring explain web-3 -f examples/zone-spread
      mooring explain research/pretrain-7 -f examples/ai-platform -o json
      mooring explain web-3 -f cluster.yaml --then 10m:finished.yaml
      mooring explain web-3 --kubeconfig ~/.kube/config
      mooring explain web-3 --log decisions.jsonl
    """
    from mooring.drivers.offline.explain import explain_pod
    from mooring.drivers.offline.reading import read
    from mooring.model.loading.manifests import collector_paused

    if log is not None:
        from mooring.cli.explain.history import print_history

        print_history(log, pod, output)
        return
    inputs = make_inputs(
        filename,
        files,
        kubeconfig,
        config=config,
        plugin=plugin,
        seed=seed,
        then=then,
        now=now,
        metrics=metrics,
        taken_on=taken_on,
        validate=validate,
        context=context,
        namespace=namespace,
    )
    with collector_paused():
        with ProgressBar(quiet=quiet) as progress:
            loaded = read(inputs, progress)
            found = explain_pod(loaded, pod, progress)
        if output is Format.TABLE:
            from mooring.cli.explain.table import print_explanation

            print_explanation(make_console(), found, every=every)
        else:
            print_data(found, output, "Explanation")
        warn(loaded.warnings, quiet=quiet)
        remark_ignored(loaded.manifests.ignored, loaded.remarks, quiet=quiet)
