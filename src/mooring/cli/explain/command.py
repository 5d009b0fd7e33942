"""`mooring explain`: why a pod is where it is, or what would make it fit."""

from typing import Annotated

import typer

from mooring.cli.options import (
    Config,
    Files,
    Format,
    MoreFiles,
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
    filename: Files,
    files: MoreFiles = None,
    output: Output = Format.TABLE,
    config: Config = None,
    plugin: PluginFiles = None,
    seed: Seed = 0,
    every: Annotated[bool, typer.Option("--all", "-a", help="Show every node, not just the foremost.")] = False,
    then: Then = None,
    now: Now = None,
    taken_on: TakenOn = None,
    validate: Validate = "strict",
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
    """
    from mooring.drivers.offline.explain import explain_pod
    from mooring.drivers.offline.reading import Inputs, parse_now, parse_step, read
    from mooring.model.loading.manifests import collector_paused

    steps = tuple(parse_step(text) for text in then or ())
    at_first = parse_now(now) if now is not None else None
    inputs = Inputs(
        [*filename, *(files or ())], config, tuple(plugin or ()), seed, steps, at_first, tuple(taken_on or ()), validate
    )
    with collector_paused():
        with ProgressBar(quiet=quiet) as progress:
            loaded = read(inputs, progress)
            found = explain_pod(loaded, pod, progress)
        if output is Format.TABLE:
            from mooring.cli.explain.table import print_explanation

            print_explanation(make_console(), found, every=every)
        else:
            print_data(found, output)
        warn(loaded.warnings, quiet=quiet)
        remark_ignored(loaded.manifests.ignored, loaded.remarks, quiet=quiet)
