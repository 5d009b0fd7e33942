"""`mooring rebalance`: which pods that run would be moved, where to, why, and what that is worth."""

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
    Validate,
)
from mooring.cli.output import make_console, print_data, remark_ignored, warn
from mooring.cli.progress import ProgressBar


def rebalance(
    policy: Annotated[
        Path,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="A DeschedulerPolicy (descheduler/v1alpha2), or a ConfigMap with one; a RebalancePolicy may follow.",
        ),
    ],
    filename: Files = None,
    files: MoreFiles = None,
    output: Output = Format.TABLE,
    compatible: Annotated[
        bool,
        typer.Option(
            "--compatible", help="What the descheduler itself would evict: without knowing where pods go, or the gain."
        ),
    ] = False,
    config: Config = None,
    plugin: PluginFiles = None,
    seed: Seed = 0,
    now: Now = None,
    metrics: Metrics = None,
    taken_on: TakenOn = None,
    validate: Validate = "strict",
    kubeconfig: Cluster = None,
    context: Context = None,
    namespace: Namespace = "",
    quiet: Quiet = False,
) -> None:
    """Plan what to move, and change nothing: every step with its target, its reason, its gain and its cost.

    Pods that wait are placed first. Then the strategies of the policy choose pods, and each is moved only if the
    scheduler, with all its plugins and scores, would put it on another node, if that is worth a restart, and if budgets
    let it go. What an earlier strategy moves is where it goes to for the later ones.

    \b
    Example:
      mooring rebalance -f examples/ai-platform --policy examples/rebalance/policy.yaml
      mooring rebalance -f cluster.yaml --policy policy.yaml --compatible -o json
      mooring rebalance -f cluster.yaml --policy policy.yaml --metrics metrics.yaml
      mooring rebalance --kubeconfig ~/.kube/config --policy policy.yaml
    """
    from mooring.drivers.offline.rebalance import plan_rebalance
    from mooring.model.loading.manifests import collector_paused
    from mooring.report.namespaces import within
    from mooring.report.rebalance import make_rebalance_result

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
        namespace=namespace,
    )
    with collector_paused():
        with ProgressBar(quiet=quiet) as progress:
            found = plan_rebalance(inputs, policy, compatible=compatible, progress=progress)
        result = make_rebalance_result(
            found.plan,
            found.loaded.manifests,
            found.running,
            strategies=found.strategies,
            placed_first=found.placed_first,
            compatible=found.compatible,
        )
        if namespace:
            result = within(result, namespace)
        if output is Format.TABLE:
            from mooring.cli.rebalance.table import print_rebalance

            print_rebalance(make_console(), result)
        else:
            print_data(result, output, "Rebalance")
        warn(found.loaded.warnings, quiet=quiet)
        remark_ignored(found.loaded.manifests.ignored, found.loaded.remarks, quiet=quiet)
