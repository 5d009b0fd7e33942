"""`mooring queues`: who has quota, who waits for whom, and what each queue's share is."""

from typing import Annotated

import typer

from mooring.cli.inputs import make_inputs
from mooring.cli.options import (
    Cluster,
    Config,
    Context,
    Files,
    Format,
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


def queues(
    filename: Files = None,
    files: MoreFiles = None,
    output: Output = Format.TABLE,
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show one queue only: a ClusterQueue, a LocalQueue as namespace/name, or one that shares the cluster.",
        ),
    ] = None,
    config: Config = None,
    plugin: PluginFiles = None,
    seed: Seed = 0,
    then: Then = None,
    now: Now = None,
    taken_on: TakenOn = None,
    validate: Validate = "strict",
    kubeconfig: Cluster = None,
    context: Context = None,
    namespace: Namespace = "",
    quiet: Quiet = False,
) -> None:
    """Decide as `mooring schedule` does, then show how the queues stand.

    For each cohort and ClusterQueue: quotas, what is used, borrowed and lent, fair shares, and whether it is active.
    For each workload that waits: its place, what it asks for, why it waits, and who would have to give what back for it
    to start, even where policies do not allow that to be taken. Queues of Volcano, KAI and YuniKorn and ElasticQuotas
    are shown with their shares.

    \b
    Example:
      mooring queues -f examples/tenants/two-teams/1-cluster.yaml
      mooring queues -f cluster.yaml --queue research -o json
      mooring queues -f cluster.yaml --then 10m:more.yaml
    """
    from mooring.drivers.offline.reading import read
    from mooring.drivers.offline.story import moments
    from mooring.model.api.meta import timestamp_text
    from mooring.model.loading.manifests import collector_paused
    from mooring.report.namespaces import within
    from mooring.report.queues.report import make_queues_result
    from mooring.report.queues.selection import check_queue_name, narrow
    from mooring.report.story import StepResult, Story

    inputs = make_inputs(
        filename,
        files,
        kubeconfig,
        config=config,
        plugin=plugin,
        seed=seed,
        then=then,
        now=now,
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
                result = make_queues_result(moment.offline.scheduler, moment.decisions, moment.offline.now)
                at = timestamp_text(moment.offline.now)
                told.append(StepResult(moment.step.file, moment.step.after, at, moment.said, result))
        if queue is not None:
            check_queue_name([step.result for step in told], queue)
            for step in told:
                step.result = narrow(step.result, queue)
        if namespace:
            for step in told:
                step.result = within(step.result, namespace)
        if output is Format.TABLE:
            from mooring.cli.queues.table import print_queues
            from mooring.cli.tables import print_heading

            console = make_console()
            for number, step in enumerate(told):
                if inputs.then:
                    print_heading(console, number, step, with_time=loaded.tells_time)
                print_queues(console, step.result, everyone=queue is not None)
        else:
            print_data(
                Story(told) if inputs.then else told[-1].result, output, "QueuesStory" if inputs.then else "Queues"
            )
        warn(loaded.warnings, quiet=quiet)
        remark_ignored(loaded.manifests.ignored, loaded.remarks, quiet=quiet)
