"""A node that could be there: what a cloud provider, or an administrator, has on offer."""

from dataclasses import dataclass

from msgspec.structs import replace

from mooring.model.api.devices import ResourceSlice
from mooring.model.api.karpenter import NodeClaim
from mooring.model.api.nodes import Node

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, eq=False, slots=True)
class NodeOffer:
    """A kind of node, of which any number can be had."""

    node: Node
    """What such a node would be like; its name is the beginning of the names of the nodes."""
    slices: tuple[ResourceSlice, ...] = ()
    """Its devices: pools that are on the node alone."""
    claim: NodeClaim | None = None
    """What a provider is asked for, where it may choose among several instance types; the name is not given yet."""

    def node_named(self, name: str) -> Node:
        """A node of this kind, with a name and a host name of its own."""
        metadata = self.node.metadata
        labels = {**(metadata.labels or {}), HOSTNAME: name}
        return replace(self.node, metadata=replace(metadata, name=name, labels=labels))

    def slices_named(self, name: str) -> list[ResourceSlice]:
        """The devices of the node of this kind that has this name."""
        made = []
        for each in self.slices:
            spec = replace(each.spec, node_name=name, pool=replace(each.spec.pool, name=pool_name(name, each)))
            metadata = replace(each.metadata, name=f"{name}-{each.metadata.name}")
            made.append(replace(each, metadata=metadata, spec=spec))
        return made


def pool_name(node: str, found: ResourceSlice) -> str:
    """The name of a pool of a node on offer: no other node has one of that name."""
    return f"{node}/{found.spec.pool.name}"
