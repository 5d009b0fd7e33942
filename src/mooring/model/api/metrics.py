"""Kinds of metrics.k8s.io: what metrics-server measured."""

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, Resources

METRICS_GROUP = "metrics.k8s.io"


class NodeMetrics(KubeObject):
    api_version: str = f"{METRICS_GROUP}/v1beta1"
    kind: str = "NodeMetrics"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    timestamp: str | None = None
    window: str = ""
    usage: Resources = msgspec.field(default_factory=dict)


class ContainerMetrics(KubeObject):
    name: str = ""
    usage: Resources = msgspec.field(default_factory=dict)


class PodMetrics(KubeObject):
    api_version: str = f"{METRICS_GROUP}/v1beta1"
    kind: str = "PodMetrics"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    timestamp: str | None = None
    window: str = ""
    containers: list[ContainerMetrics] = msgspec.field(default_factory=list)
