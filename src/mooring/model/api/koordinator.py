"""Koordinator's kinds, as far as placement reads them: what nodes and pods were measured to use."""

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, Resources

SLO_GROUP = "slo.koordinator.sh"


class ResourceMap(KubeObject):
    resources: Resources | None = None


class AggregatedUsage(KubeObject):
    usage: dict[str, ResourceMap] | None = None
    """By aggregation: avg, p50, p90, p95, p99."""
    duration: str = ""


class NodeUsage(KubeObject):
    node_usage: ResourceMap = msgspec.field(default_factory=ResourceMap)
    aggregated_node_usages: list[AggregatedUsage] | None = None
    system_usage: ResourceMap = msgspec.field(default_factory=ResourceMap)


class PodMetric(KubeObject):
    name: str = ""
    namespace: str = ""
    pod_usage: ResourceMap = msgspec.field(default_factory=ResourceMap)
    priority: str = ""
    qos: str = ""


class HostApplicationMetric(KubeObject):
    """What something uses that runs on the node outside of pods."""

    name: str = ""
    usage: ResourceMap = msgspec.field(default_factory=ResourceMap)
    priority: str = ""


class ReclaimableMetric(KubeObject):
    resource: ResourceMap = msgspec.field(default_factory=ResourceMap)


class NodeMetricStatus(KubeObject):
    update_time: str | None = None
    node_metric: NodeUsage | None = None
    pods_metric: list[PodMetric] | None = None
    host_application_metric: list[HostApplicationMetric] | None = None
    prod_reclaimable_metric: ReclaimableMetric | None = None
    """What pods of class prod are predicted not to need of what they asked for."""


class MetricCollectPolicy(KubeObject):
    report_interval_seconds: int | None = None


class NodeMetricSpec(KubeObject):
    metric_collect_policy: MetricCollectPolicy | None = None


class NodeMetric(KubeObject):
    """What koordlet measured on a node."""

    api_version: str = f"{SLO_GROUP}/v1alpha1"
    kind: str = "NodeMetric"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeMetricSpec = msgspec.field(default_factory=NodeMetricSpec)
    status: NodeMetricStatus = msgspec.field(default_factory=NodeMetricStatus)
