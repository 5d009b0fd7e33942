"""NodeResourceTopology (topology.node.k8s.io): what a node has and has left, NUMA zone by NUMA zone."""

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, QuantityText

GROUP = "topology.node.k8s.io"


class ZoneCost(KubeObject):
    name: str = ""
    value: int = 0


class ZoneResource(KubeObject):
    name: str
    capacity: QuantityText = "0"
    allocatable: QuantityText = "0"
    available: QuantityText = "0"


class Attribute(KubeObject):
    name: str
    value: str = ""


class Zone(KubeObject):
    name: str
    type: str = ""
    parent: str = ""
    costs: list[ZoneCost] | None = None
    attributes: list[Attribute] | None = None
    resources: list[ZoneResource] | None = None


class NodeResourceTopology(KubeObject):
    """Named as its node."""

    api_version: str = f"{GROUP}/v1alpha2"
    kind: str = "NodeResourceTopology"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    topology_policies: list[str] | None = None
    zones: list[Zone] | None = None
    attributes: list[Attribute] | None = None
