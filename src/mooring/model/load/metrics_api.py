"""What metrics-server measured, as reports of load."""

from collections.abc import Iterable, Iterator

from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.metrics import NodeMetrics, PodMetrics
from mooring.model.keys import PodKey
from mooring.model.load.reports import NodeReport, PodUsage, to_amounts


def from_metrics_api(nodes: Iterable[NodeMetrics], pods: Iterable[PodMetrics]) -> Iterator[NodeReport]:
    """A report a node. Each has all pods: those that are not on the node are not looked for."""
    usage = {PodKey(f"{pod.metadata.namespace}/{pod.metadata.name}"): _usage(pod) for pod in pods}
    for node in nodes:
        yield NodeReport(
            node.metadata.name, timestamp_seconds(node.timestamp), usage=to_amounts(node.usage), pods=usage
        )


def _usage(pod: PodMetrics) -> PodUsage:
    total: dict[str, int] = {}
    for container in pod.containers:
        for name, amount in to_amounts(container.usage).items():
            total[name] = total.get(name, 0) + amount
    return PodUsage(total)
