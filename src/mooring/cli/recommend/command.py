"""`mooring recommend`: what containers need, by what they were measured to use, and what would change."""

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
from mooring.errors import InputError


def recommend(
    filename: Files = None,
    files: MoreFiles = None,
    metrics: Metrics = None,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Take a history in which samples are missing as it is.")
    ] = False,
    output: Output = Format.TABLE,
    config: Config = None,
    plugin: PluginFiles = None,
    seed: Seed = 0,
    now: Now = None,
    taken_on: TakenOn = None,
    validate: Validate = "strict",
    kubeconfig: Cluster = None,
    context: Context = None,
    namespace: Namespace = "",
    quiet: Quiet = False,
) -> None:
    """Recommend CPU and memory for the containers of every VerticalPodAutoscaler (autoscaling.k8s.io/v1).

    --metrics names files with PodMetrics (metrics.k8s.io) of many moments: the history that recommendations are made
    of. For each container: lower bound, target, upper bound, and the target before policies, LimitRanges and the
    largest node that the pod may use cap it. For each pod: whether it would be resized in place, evicted, or stay as it
    is by the update mode, and why. Files with metrics of DCGM exporter add what pods need of the whole GPUs that they
    have, and what that would save. Nothing is changed.

    \b
    Example:
      mooring recommend -f examples/rightsizing/cluster.yaml --metrics examples/rightsizing/usage.yaml
      mooring recommend -f cluster.yaml --metrics usage.yaml -o json
    """
    from mooring.drivers.load.gpu_usage import read_gpu_usage
    from mooring.drivers.load.usage import read_usage
    from mooring.drivers.offline.reading import read
    from mooring.drivers.offline.recommend import recommend as decide
    from mooring.model.loading.manifests import collector_paused
    from mooring.report.recommendations import gpu_advice

    if not metrics:
        raise InputError("Missing option '--metrics': expected a file with PodMetrics (see mooring recommend --help)")
    inputs = make_inputs(
        filename,
        files,
        kubeconfig,
        config=config,
        plugin=plugin,
        seed=seed,
        then=None,
        now=now,
        taken_on=taken_on,
        validate=validate,
        context=context,
        namespace=namespace,
        metrics=metrics,
    )
    with collector_paused():
        with ProgressBar(quiet=quiet) as progress:
            samples = read_usage(inputs.metrics, allow_gaps=allow_gaps)
            loaded = read(inputs, progress)
            result = decide(loaded, samples, progress)
            result.gpus = gpu_advice(read_gpu_usage(inputs.metrics))
        if namespace:
            result.gpus = [found for found in result.gpus if found.pod.startswith(f"{namespace}/")]
            result.autoscalers = [found for found in result.autoscalers if found.namespace == namespace]
        if output is Format.TABLE:
            from mooring.cli.recommend.table import print_recommendations

            print_recommendations(make_console(), result)
        else:
            print_data(result, output, "Recommendations")
        warn(loaded.warnings, quiet=quiet)
        remark_ignored(loaded.manifests.ignored, loaded.remarks, quiet=quiet)
