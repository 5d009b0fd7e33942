"""Another place for the pods of one node that has failed; all others of the workload stay where they are.

Pods that have to share a domain with others go where these are: into the same domain of the required level, or into the
domain of a slice that has become incomplete.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mooring.actions.admit.topology.assigner import PodSetNeed, TopologyAssigner
from mooring.actions.admit.topology.flavor import FlavorTopology
from mooring.actions.admit.topology.usage import domain_key
from mooring.model.decisions import PodSetFlavors, TopologyAssignment, TopologyDomain

Path = tuple[str, ...]


def replace_node(
    assigner: TopologyAssigner, needs: Iterable[PodSetNeed], pod_sets: Sequence[PodSetFlavors], failed: str
) -> tuple[PodSetFlavors, ...] | None:
    """The pod sets with other domains in place of a node; None if there is no such place."""
    assigned = {found.name: found.topology for found in pod_sets if found.topology is not None}
    search = _Replacement(assigner, [need for need in needs if need.name in assigned], assigned, failed)
    found = search.run()
    if found is None:
        return None
    return tuple(replace(given, topology=found.get(given.name, given.topology)) for given in pod_sets)


class _Replacement:
    """One search, for all pod sets of a workload that had pods on the node."""

    def __init__(
        self,
        assigner: TopologyAssigner,
        needs: list[PodSetNeed],
        assigned: dict[str, TopologyAssignment],
        failed: str,
    ) -> None:
        self._assigner, self._needs, self._assigned, self._failed = assigner, needs, assigned, failed

    def run(self) -> dict[str, TopologyAssignment] | None:
        """By pod set that had pods there, all its domains from now on."""
        hit = [need for need in self._needs if self._lost(need.name)]
        asked = [again for need in hit if (again := self._near_the_others(need)) is not None]
        found = self._assigner.find(asked)
        if not hit or len(asked) < len(hit) or not found.is_complete:
            return None
        return {need.name: self._merged(need, found.assignments[need.name]) for need in hit}

    def _lost(self, name: str) -> int:
        """How many pods were assigned the node."""
        domains = self._assigned[name].domains
        return sum(domain.count for domain in domains if domain.values[-1] == self._failed)

    def _near_the_others(self, need: PodSetNeed) -> PodSetNeed | None:
        """What is looked for of a pod set: as many pods, near those that stay; None if that cannot be said."""
        levels, request = self._assigner.flavors[need.flavor].levels, need.request
        kept = dict(self._kept(need))
        only_in: Path = ()
        if request.layers:
            of_slices: dict[Path, int] = {}
            for path, count in kept.items():
                above = path[: levels.index(request.layers[0].level) + 1]
                of_slices[above] = of_slices.get(above, 0) + count
            incomplete = [path for path, count in of_slices.items() if count % request.slice_size]
            if len(incomplete) > 1 or len(request.layers) > 1:
                return None
            if incomplete:
                only_in, request = incomplete[0], replace(request, layers=(), required=request.layers[0].level)
        if kept and request.required and not only_in:
            only_in = next(iter(kept))[: levels.index(request.required) + 1]
        return replace(need, count=self._lost(need.name), request=request, only_in=only_in)

    def _kept(self, need: PodSetNeed) -> Iterator[tuple[Path, int]]:
        """The whole path of each other domain that its pods, or those of its group, have, and how many have it."""
        flavor, group = self._assigner.flavors[need.flavor], need.request.group
        for other in self._needs:
            if other is need or (group and other.request.group == group):
                for domain in self._assigned[other.name].domains:
                    leaf = self._leaf(flavor, domain)
                    if domain.values[-1] != self._failed and leaf is not None:
                        yield flavor.values[leaf], domain.count

    def _leaf(self, flavor: FlavorTopology, domain: TopologyDomain) -> int | None:
        levels = flavor.levels[-len(domain.values) :]
        return flavor.leaf_of.get(self._assigner.usage.index(domain_key(flavor.flavor, levels, domain.values)))

    def _merged(self, need: PodSetNeed, found: TopologyAssignment) -> TopologyAssignment:
        """The domains that stay and those that were found, in the order of their paths."""
        flavor, before = self._assigner.flavors[need.flavor], self._assigned[need.name]
        total: dict[Path, int] = {}
        for domain in (*before.domains, *found.domains):
            if domain.values[-1] != self._failed:
                total[domain.values] = total.get(domain.values, 0) + domain.count
        domains = [TopologyDomain(values, count) for values, count in total.items()]
        return TopologyAssignment(
            before.levels, tuple(sorted(domains, key=lambda domain: self._leaf(flavor, domain) or 0))
        )
