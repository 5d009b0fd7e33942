"""What a pod set asks of the topology, as Kueue's `topologyRequest` has it."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from mooring.model.api.kueue_workload import TopologyRequest


class SliceLayer(NamedTuple):
    """Every so many pods share one domain of a level."""

    level: str
    size: int


@dataclass(frozen=True, slots=True)
class PodSetTopologyRequest:
    """One domain of `required`, rather one of `preferred`, or anywhere; in slices of one domain each."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool = False
    layers: tuple[SliceLayer, ...] = ()
    """Slices inside slices, the outermost first."""
    group: str = ""
    """Pod sets of one group are placed together: a leader and its workers."""

    @property
    def is_explicit(self) -> bool:
        """Whether anything of the topology is asked for; a group alone is not."""
        return bool(self.required or self.preferred or self.unconstrained or self.layers)

    @property
    def is_free(self) -> bool:
        """Whether any domains will do, and those with least room are taken first."""
        return not (self.required or self.preferred)

    @property
    def slice_size(self) -> int:
        return self.layers[0].size if self.layers else 1

    def searched_level(self, levels: tuple[str, ...]) -> str:
        """The level at which one domain is looked for first, among those of a topology, coarse to fine."""
        return self.required or self.preferred or levels[0 if self.layers else -1]

    def is_within(self, levels: tuple[str, ...]) -> bool:
        """Whether a topology has every level that is asked for."""
        named = [self.required, self.preferred, *(layer.level for layer in self.layers)]
        return all(level in levels for level in named if level)

    def implied(self) -> "PodSetTopologyRequest":
        """What is placed of a pod set that asks for nothing, in a queue all of whose flavors have a topology."""
        return replace(self, unconstrained=True)


NO_REQUEST = PodSetTopologyRequest()


def compile_request(found: TopologyRequest | None) -> PodSetTopologyRequest:
    """Read a pod set's `topologyRequest`."""
    if found is None:
        return NO_REQUEST
    given = found.podset_slice_required_topology_constraints or ()
    layers = tuple(SliceLayer(layer.topology, layer.size) for layer in given)
    if not layers and found.pod_set_slice_required_topology:
        layers = (SliceLayer(found.pod_set_slice_required_topology, found.pod_set_slice_size or 1),)
    return PodSetTopologyRequest(
        required=found.required,
        preferred=found.preferred,
        unconstrained=bool(found.unconstrained),
        layers=layers,
        group=found.pod_set_group_name or "",
    )
