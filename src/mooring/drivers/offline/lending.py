"""Nodes offer batch and mid resources by what was measured on them, as Koordinator's manager writes it."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from mooring.config.colocation import ColocationConfig
from mooring.model.api.koordinator import NodeMetric
from mooring.model.api.meta import Resources
from mooring.model.api.node_resource_topology import NodeResourceTopology
from mooring.model.api.pods import Pod
from mooring.model.colocation.node_sync import LENT, Observed, sync_node
from mooring.model.loading.manifests import Manifests


def lend(picture: Manifests, metrics: Iterable[NodeMetric], config: ColocationConfig, now: float) -> None:
    """Give the nodes of a picture what they lend at this time; of nodes that nobody measured it is taken away."""
    by_name = {metric.metadata.name: metric for metric in metrics}
    topologies = {found.metadata.name: found for found in picture.of(NodeResourceTopology)}
    pods: dict[str, list[Pod]] = {}
    for pod in picture.pods:
        if pod.spec.node_name:
            pods.setdefault(pod.spec.node_name, []).append(pod)
    for node in picture.nodes:
        seen = Observed(node, by_name.get(node.name), pods.get(node.name, ()), topologies.get(node.name))
        status = sync_node(config, seen, now).status
        if status is not None:
            node.status = replace(
                node.status,
                allocatable=_with(node.status.allocatable, status),
                capacity=_with(node.status.capacity, status),
            )


def _with(resources: Resources | None, lent: Mapping[str, int]) -> Resources:
    kept = {name: amount for name, amount in (resources or {}).items() if name not in LENT}
    return kept | {name: str(amount) for name, amount in lent.items()}
