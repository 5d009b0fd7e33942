"""NodeMetric of Koordinator as a report of load."""

from mooring.model.api.koordinator import NodeMetric
from mooring.model.api.meta import timestamp_seconds
from mooring.model.keys import PodKey
from mooring.model.load.reports import REPORT_INTERVAL, Aggregate, NodeReport, PodUsage, to_amounts
from mooring.model.values.durations import parse_duration


def from_node_metric(metric: NodeMetric) -> NodeReport:
    """What koordlet measured on a node; without a status, that it told nothing."""
    policy, found = metric.spec.metric_collect_policy, metric.status.node_metric
    seconds = policy.report_interval_seconds if policy is not None else None
    aggregated = () if found is None else found.aggregated_node_usages or ()
    return NodeReport(
        metric.metadata.name,
        timestamp_seconds(metric.status.update_time),
        interval_seconds=float(seconds) if seconds else REPORT_INTERVAL,
        usage=None if found is None else to_amounts(found.node_usage.resources),
        system={} if found is None else to_amounts(found.system_usage.resources),
        aggregates=tuple(
            Aggregate(
                parse_duration(one.duration) or 0.0,
                {kind: to_amounts(usage.resources) for kind, usage in (one.usage or {}).items() if usage.resources},
            )
            for one in aggregated
        ),
        pods={
            PodKey(f"{pod.namespace}/{pod.name}"): PodUsage(to_amounts(pod.pod_usage.resources), pod.priority)
            for pod in metric.status.pods_metric or ()
        },
    )
