"""`mooring schedule`: decide offline, manifests in, placements out."""

from typing import Annotated

import typer

from mooring.cli.options import Config, Files, Format, MoreFiles, Output, PluginFiles, Quiet, Seed, Then
from mooring.cli.output import make_console, print_data
from mooring.cli.progress import ProgressBar
from mooring.drivers.offline.driver import Inputs, read, remark_ignored


def schedule(
    filename: Files,
    files: MoreFiles = None,
    output: Output = Format.TABLE,
    config: Config = None,
    plugin: PluginFiles = None,
    seed: Seed = 0,
    pool_label: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The node label that names a node's pool; guessed if not given."),
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", "-w", help="List every pod in the table, not every workload.")
    ] = False,
    fail_on_waiting: Annotated[
        bool,
        typer.Option("--fail-on-waiting", help="Exit with 1 if any pod waits for want of a node, or is forbidden."),
    ] = False,
    then: Then = None,
    quiet: Quiet = False,
) -> None:
    """Place all pending pods of some manifests, in queue order, each seeing the ones before.

    Says for each pod that waits why, in kube-scheduler's words. That a pod waits is an answer, not a failure: the exit
    code is 0, unless you ask for 1 by --fail-on-waiting.

    \b
    Example:
      mooring schedule -f examples/ai-platform
      kubectl get nodes,pods -A -o json | mooring schedule -f - -o json
      mooring schedule -f cluster.yaml --then 10m:finished.yaml
    """
    from mooring.model.loading.manifests import collector_paused
    from mooring.report.placements import make_result
    from mooring.report.pools import pool_names

    inputs = Inputs([*filename, *(files or ())], config, tuple(plugin or ()), seed)
    if then:
        waits = _tell(inputs, then, output, pool_label, wide=wide, quiet=quiet)
        raise typer.Exit(1 if fail_on_waiting and waits else 0)
    with collector_paused():
        with ProgressBar(quiet=quiet) as progress:
            loaded = read(inputs, progress)
            progress.phase("taking in the cluster")
            offline = loaded.start()
            decisions = offline.decide(progress)
            progress.phase("asking why the others wait")
            pool_of = pool_names(offline.scheduler.cluster, pool_label)
            result = make_result(offline.scheduler, loaded.manifests, decisions, pool_of)
        if output is Format.TABLE:
            from mooring.cli.schedule.table import print_result

            print_result(make_console(), result, pool_of, wide=wide)
        else:
            print_data(result, output)
        remark_ignored(loaded.manifests, quiet=quiet)
    if fail_on_waiting and (result.waiting or result.summary.forbidden):
        raise typer.Exit(1)


def _tell(inputs: Inputs, then: list[str], output: Format, pool_label: str | None, *, wide: bool, quiet: bool) -> bool:
    """Print what is decided at each step; tell whether anybody waits at the end."""
    from mooring.cli.schedule.story_table import print_story
    from mooring.drivers.offline.story import parse_step, tell

    steps = [parse_step(text) for text in then]
    with ProgressBar(quiet=quiet) as progress:
        story, pools = tell(inputs, steps, progress, pool_label)
    if output is Format.TABLE:
        print_story(make_console(), story, pools, wide=wide)
    else:
        print_data(story, output)
    last = story.steps[-1].result
    return bool(last.waiting or last.forbidden)
