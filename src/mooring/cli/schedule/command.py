"""`mooring schedule`: decide offline, manifests in, placements out."""

from typing import Annotated

import typer

from mooring.cli.inputs import cluster_of, make_inputs
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
from mooring.errors import InputError


def schedule(
    filename: Files = None,
    files: MoreFiles = None,
    output: Output = Format.TABLE,
    config: Config = None,
    plugin: PluginFiles = None,
    seed: Seed = 0,
    pool_label: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="The node label that names a node's pool; else NodePools say, or it is guessed.",
        ),
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", "-w", help="List every pod in the table, not every workload.")
    ] = False,
    fail_on_waiting: Annotated[
        bool,
        typer.Option("--fail-on-waiting", help="Exit with 1 if any pod waits for want of a node, or is forbidden."),
    ] = False,
    then: Then = None,
    now: Now = None,
    metrics: Metrics = None,
    taken_on: TakenOn = None,
    validate: Validate = "strict",
    kubeconfig: Cluster = None,
    context: Context = None,
    namespace: Namespace = "",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Change nothing, which is always so: with --kubeconfig, say that you know."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Place all pending pods of some manifests, in queue order, each seeing the ones before.

    Says for each pod that waits why, in kube-scheduler's words. That a pod waits is an answer, not a failure: the exit
    code is 0, unless you ask for 1 by --fail-on-waiting.

    \b
    Example:
      mooring schedule -f examples/ai-platform
      mooring snapshot | mooring schedule -f - -o json
      mooring schedule -f cluster.yaml --then 10m:finished.yaml
      mooring schedule --kubeconfig ~/.kube/config --dry-run
    """
    from mooring.drivers.offline.reading import read
    from mooring.drivers.offline.story import moments
    from mooring.model.api.meta import timestamp_text
    from mooring.model.loading.manifests import collector_paused
    from mooring.report.namespaces import within
    from mooring.report.schedule import make_result
    from mooring.report.story import StepResult, Story

    if cluster_of(kubeconfig, [*(filename or ()), *(files or ())]) is not None and not dry_run:
        raise InputError("--kubeconfig: expected --dry-run with it (mooring run schedules a cluster), found none")
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
    told = []
    with collector_paused():
        with ProgressBar(quiet=quiet) as progress:
            loaded = read(inputs, progress)
            for moment in moments(loaded, progress):
                offline, step = moment.offline, moment.step
                result = make_result(
                    offline.scheduler,
                    moment.picture,
                    moment.decisions,
                    pool_label,
                    moment.ran,
                    offline.lost,
                    offline.ended,
                    offline.resized,
                )
                told.append(StepResult(step.file, step.after, timestamp_text(offline.now), moment.said, result))
        if namespace:
            for shown in told:
                shown.result = within(shown.result, namespace)
        last = told[-1].result
        if output is Format.TABLE:
            from mooring.cli.schedule.table import print_result
            from mooring.cli.tables import print_heading

            console = make_console()
            for number, shown in enumerate(told):
                if inputs.then:
                    print_heading(console, number, shown, with_time=loaded.tells_time)
                print_result(console, shown.result, wide=wide, with_time=loaded.tells_time)
        else:
            print_data(Story(told) if inputs.then else last, output, "ScheduleStory" if inputs.then else "Schedule")
        warn(loaded.warnings, quiet=quiet)
        remark_ignored(loaded.manifests.ignored, loaded.remarks, quiet=quiet)
    if fail_on_waiting and (last.waiting or last.summary.forbidden):
        raise typer.Exit(1)
