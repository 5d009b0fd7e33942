"""`mooring queues`: who has quota, who waits for whom, and what each queue's share is."""

from typing import Annotated

import typer

from mooring.cli.options import Config, Files, Format, MoreFiles, Output, PluginFiles, Quiet, Seed, Then
from mooring.cli.output import make_console, print_data
from mooring.cli.progress import ProgressBar
from mooring.drivers.offline.driver import Inputs, read, remark_ignored


def queues(
    filename: Files,
    files: MoreFiles = None,
    output: Output = Format.TABLE,
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show one queue only: a ClusterQueue, a LocalQueue as namespace/name, or a Queue of Volcano.",
        ),
    ] = None,
    config: Config = None,
    plugin: PluginFiles = None,
    seed: Seed = 0,
    then: Then = None,
    quiet: Quiet = False,
) -> None:
    """Decide as `mooring schedule` does, then show how the queues stand.

    For each cohort and ClusterQueue: quotas, what is used, borrowed and lent, fair shares, and whether it is active.
    For each workload that waits: its place, what it asks for, why it waits, and who would have to give what back for it
    to start, even where policies do not allow that to be taken. Volcano's queues are shown with their shares.

    \b
    Example:
      mooring queues -f examples/tenants/two-teams/1-cluster.yaml
      mooring queues -f cluster.yaml --queue research -o json
      mooring queues -f cluster.yaml --then 10m:more.yaml
    """
    from mooring.model.loading.manifests import collector_paused
    from mooring.report.queues.report import make_queues_result
    from mooring.report.queues.selection import check_queue_name, narrow

    inputs = Inputs([*filename, *(files or ())], config, tuple(plugin or ()), seed)
    if then:
        _tell(inputs, then, output, queue, quiet=quiet)
        return
    with collector_paused():
        with ProgressBar(quiet=quiet) as progress:
            loaded = read(inputs, progress)
            progress.phase("taking in the cluster")
            offline = loaded.start()
            decisions = offline.decide(progress)
            progress.phase("asking what the others wait for")
            result = make_queues_result(offline.scheduler, decisions)
        if queue is not None:
            check_queue_name([result], queue)
            result = narrow(result, queue)
        if output is Format.TABLE:
            from mooring.cli.queues.table import print_queues

            print_queues(make_console(), result, everyone=queue is not None)
        else:
            print_data(result, output)
        remark_ignored(loaded.manifests, quiet=quiet)


def _tell(inputs: Inputs, then: list[str], output: Format, queue: str | None, *, quiet: bool) -> None:
    """Show how the queues stand after each step."""
    from mooring.cli.schedule.story_table import print_heading
    from mooring.drivers.offline.story import moments, parse_step
    from mooring.report.queues.data import QueuesStep, QueuesStory
    from mooring.report.queues.report import make_queues_result
    from mooring.report.queues.selection import check_queue_name, narrow

    steps = [parse_step(text) for text in then]
    told: list[QueuesStep] = []
    with ProgressBar(quiet=quiet) as progress:
        for moment in moments(inputs, steps, progress):
            result = make_queues_result(moment.offline.scheduler, moment.decisions)
            told.append(QueuesStep(moment.step.file, moment.step.after, moment.said, result))
    if queue is not None:
        check_queue_name([step.result for step in told], queue)
        for step in told:
            step.result = narrow(step.result, queue)
    if output is not Format.TABLE:
        print_data(QueuesStory(told), output)
        return
    from mooring.cli.queues.table import print_queues

    console = make_console()
    for number, step in enumerate(told):
        print_heading(console, number, step.file, step.after_seconds, step.said)
        print_queues(console, step.result, everyone=queue is not None)
