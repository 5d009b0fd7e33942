"""The gangs of Grove: those that a PodGang declares, and those that a PodCliqueSet would be grouped into."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mooring.model.api.meta import timestamp_seconds
from mooring.model.gangs.dialects.grove import (
    ClusterTopologyBinding,
    ConstraintGroup,
    GangTopologyConstraint,
    GroveTopologyConstraint,
    PodCliqueSet,
    PodGang,
)
from mooring.model.gangs.dialects.grove_pods import BASE_GANG, Clique, cliques_of
from mooring.model.gangs.gang import Gang, Role, RoleGroup, gang_key
from mooring.model.gangs.membership import GROVE_KIND
from mooring.model.keys import NO_GANG
from mooring.model.places import show
from mooring.model.topology.requests import TopologyRequest
from mooring.model.validation.terms import Subject
from mooring.model.values.durations import parse_duration

DEFAULT_DELAY_SECONDS = 4 * 3600.0
"""For how long a gang may lack members before Grove starts it anew."""
_WELL_KNOWN = {
    "region": "topology.kubernetes.io/region",
    "zone": "topology.kubernetes.io/zone",
    "host": "kubernetes.io/hostname",
}
"""Domains whose label is the same everywhere, for sets whose binding is not at hand."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """The levels of each ClusterTopologyBinding, broad to narrow: domain -> node label key."""

    by_name: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def levels(self, name: str) -> Mapping[str, str] | None:
        """The levels of a binding; of the only one there is where none is named."""
        if not name and len(self.by_name) == 1:
            return next(iter(self.by_name.values()))
        return self.by_name.get(name)


def bindings_of(found: Iterable[ClusterTopologyBinding]) -> Bindings:
    return Bindings({item.metadata.name: {level.domain: level.key for level in item.spec.levels} for item in found})


def pod_gang_gang(found: PodGang) -> Gang:
    spec, metadata = found.spec, found.metadata
    base = (metadata.labels or {}).get(BASE_GANG, "")
    groups = ((config.pod_group_names, _pack(config.topology_constraint)) for config in _group_configs(found))
    return Gang(
        key=gang_key(GROVE_KIND, metadata.namespace, metadata.name),
        name=f"{metadata.namespace}/{metadata.name}",
        minimum=max(1, sum(group.min_replicas or 0 for group in spec.podgroups)),
        roles=tuple(
            Role(group.name, group.min_replicas or 0, _pack(group.topology_constraint)) for group in spec.podgroups
        ),
        role_groups=tuple(
            RoleGroup(tuple(names), topology_request)
            for names, topology_request in groups
            if topology_request is not None
        ),
        created=timestamp_seconds(metadata.creation_timestamp),
        topology_request=_pack(spec.topology_constraint),
        timeout_seconds=DEFAULT_DELAY_SECONDS,
        after=gang_key(GROVE_KIND, metadata.namespace, base) if base else NO_GANG,
    )


def _group_configs(found: PodGang) -> list[ConstraintGroup]:
    return found.spec.topology_constraint_group_configs or []


def _pack(constraint: GangTopologyConstraint | None) -> TopologyRequest | None:
    pack = constraint.pack_constraint if constraint is not None else None
    if pack is None or not (pack.required or pack.preferred):
        return None
    return TopologyRequest(required=pack.required or None, preferred=pack.preferred or None)


def clique_set_gangs(subject: Subject, found: PodCliqueSet, bindings: Bindings) -> Iterator[Gang]:
    """The gangs of all replicas, each base before what is scaled beyond it."""
    _check_domains(subject, found, bindings)
    packing = _Packing(found, bindings)
    metadata, delay = found.metadata, found.spec.template.termination_delay
    for replica in range(found.spec.replicas):
        by_gang: dict[str, list[Clique]] = {}
        for clique in cliques_of(found, replica):
            by_gang.setdefault(clique.gang, []).append(clique)
        for name, cliques in by_gang.items():
            base = cliques[0].base
            roles = tuple(Role(clique.name, clique.template.spec.minimum, packing.of(clique)) for clique in cliques)
            yield Gang(
                key=gang_key(GROVE_KIND, metadata.namespace, name),
                name=f"{metadata.namespace}/{name}",
                minimum=max(1, sum(role.minimum for role in roles)),
                roles=roles,
                role_groups=() if base else packing.of_groups(cliques),
                created=timestamp_seconds(metadata.creation_timestamp),
                topology_request=packing.of_gang(cliques[0]),
                timeout_seconds=DEFAULT_DELAY_SECONDS if delay is None else parse_duration(delay),
                after=gang_key(GROVE_KIND, metadata.namespace, base) if base else NO_GANG,
            )


class _Packing:
    """Topology requests out of a set's constraints: of the set, of a scaling group, of a clique. Names come down."""

    def __init__(self, found: PodCliqueSet, bindings: Bindings) -> None:
        self._whole = found.spec.template.topology_constraint
        self._bindings = bindings

    def of_gang(self, clique: Clique) -> TopologyRequest | None:
        """What is scaled beyond the base has its group's place as a whole, or else the set's: and that it shares with
        the base anyway, as whatever starts after another gang does."""
        if clique.base and clique.group is not None and clique.group.topology_constraint is not None:
            return self._topology_request(clique.group.topology_constraint, self._whole)
        return self._topology_request(self._whole)

    def of_groups(self, cliques: Iterable[Clique]) -> tuple[RoleGroup, ...]:
        """In the base, each replica of a scaling group has a place of its own."""
        by_replica: dict[str, list[Clique]] = {}
        for clique in cliques:
            if clique.group is not None and clique.group.topology_constraint is not None:
                by_replica.setdefault(clique.scaled_with, []).append(clique)
        groups = []
        for members in by_replica.values():
            group = members[0].group
            topology_request = self._topology_request(group.topology_constraint if group else None, self._whole)
            if topology_request is not None:
                groups.append(RoleGroup(tuple(clique.name for clique in members), topology_request))
        return tuple(groups)

    def of(self, clique: Clique) -> TopologyRequest | None:
        group = clique.group.topology_constraint if clique.group is not None else None
        return self._topology_request(clique.template.topology_constraint, group, self._whole)

    def _topology_request(
        self, own: GroveTopologyConstraint | None, *above: GroveTopologyConstraint | None
    ) -> TopologyRequest | None:
        if own is None:
            return None
        name = _topology_name(own, *above)
        levels = self._bindings.levels(name)
        # A binding that is named and not at hand is for the scheduler to miss; nothing stands in for it.
        missing = name if levels is None else ""
        known = _WELL_KNOWN if levels is None else levels
        # A domain that nobody has bound to a label stands for itself: the gang waits until some node has it.
        required, preferred = (known.get(domain, domain) or None for domain in (own.required, own.preferred))
        return TopologyRequest(required=required, preferred=preferred, topology=missing)


def _topology_name(*constraints: GroveTopologyConstraint | None) -> str:
    return next((found.topology_name for found in constraints if found is not None and found.topology_name), "")


def _check_domains(subject: Subject, found: PodCliqueSet, bindings: Bindings) -> None:
    """Refuse domains that their topology lacks, and parts that ask for a broader place than the whole they are in."""
    template = found.spec.template
    whole = template.topology_constraint
    _check_domain(subject, "spec.template.topologyConstraint", bindings, whole)
    groups = template.pod_clique_scaling_groups or []
    group_of = {name: group.topology_constraint for group in groups for name in group.clique_names}
    for index, group in enumerate(groups):
        path = f"spec.template.podCliqueScalingGroups[{index}].topologyConstraint"
        _check_domain(subject, path, bindings, group.topology_constraint, whole)
    for index, clique in enumerate(template.cliques):
        path = f"spec.template.cliques[{index}].topologyConstraint"
        _check_domain(subject, path, bindings, clique.topology_constraint, group_of.get(clique.name), whole)


def _check_domain(
    subject: Subject,
    path: str,
    bindings: Bindings,
    own: GroveTopologyConstraint | None,
    *above: GroveTopologyConstraint | None,
) -> None:
    levels = None if own is None else bindings.levels(_topology_name(own, *above))
    if own is None or levels is None:
        return
    order = list(levels)
    field = f"{path}.packDomain" if own.pack_domain else f"{path}.pack.required"
    for where, domain in ((field, own.required), (f"{path}.pack.preferred", own.preferred)):
        if domain and domain not in levels:
            subject.refuse(where, expected=f"a domain of the topology ({', '.join(order)})", found=show(domain))
    for outer in above:
        same = outer is not None and bindings.levels(_topology_name(outer, *above)) is levels
        if outer is not None and same and outer.required and own.required:
            _check_narrower(subject, field, order, own.required, outer.required)
    if own.required and own.preferred:
        _check_narrower(subject, f"{path}.pack.preferred", order, own.preferred, own.required)


def _check_narrower(subject: Subject, path: str, order: list[str], domain: str, outer: str) -> None:
    if outer in order and order.index(domain) < order.index(outer):
        subject.refuse(path, expected=f"{outer} or a narrower domain", found=show(domain))
