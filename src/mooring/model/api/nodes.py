"""Nodes, as far as scheduling reads them."""

import msgspec

from mooring.model.api.meta import Condition, KubeObject, ObjectMeta, Resources


class Taint(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, frozen=True):
    """Frozen, unlike other KubeObjects: sets of taints are interned."""

    key: str
    value: str = ""
    effect: str = ""


class NodeSpec(KubeObject):
    unschedulable: bool = False
    taints: list[Taint] | None = None
    provider_id: str = msgspec.field(default="", name="providerID")


class ContainerImage(KubeObject):
    names: list[str] = []
    size_bytes: int = 0


class NodeStatus(KubeObject):
    capacity: Resources | None = None
    allocatable: Resources | None = None
    images: list[ContainerImage] | None = None
    conditions: list[Condition] | None = None
    declared_features: list[str] | None = None


class Node(KubeObject):
    api_version: str = "v1"
    kind: str = "Node"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_ready(self) -> bool:
        """A node that says nothing of its conditions, as in a manifest, is taken to be ready."""
        conditions = self.status.conditions
        return conditions is None or any(found.type == "Ready" and found.status == "True" for found in conditions)
