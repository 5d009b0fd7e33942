"""Check gangs after the fact, from the pods themselves: each whole or absent, and where it asked to be."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mooring.model.gangs.gang import Gang
from mooring.model.gangs.membership import membership
from mooring.model.topology.requests import TopologyRequest, tier_of
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord


@dataclass(frozen=True, slots=True)
class Member:
    """A member that has a node."""

    record: PodRecord
    role: str
    rank: int


def broken_gangs(cluster: Cluster) -> Iterator[str]:
    """What is wrong with gangs, one line each.

    Levels of HyperNodes are not looked at: they are not written on nodes.
    """
    present = _present(cluster)
    declared = {key: found.gang for key, found in cluster.gangs.records.items() if found.gang is not None}
    whole = {key for key, gang in declared.items() if not gang.of_gangs and not _missing(gang, present[key], cluster)}
    for key, gang in declared.items():
        if gang.of_gangs:
            parts = [part for part, found in declared.items() if found.parent == key]
            running = sum(part in whole and bool(present[part]) for part in parts)
            if 0 < running < gang.minimum:
                yield f"gang {gang.name}: {running} of at least {gang.minimum} gangs run"
        elif present[key] and key not in whole:
            yield f"gang {gang.name}: {_missing(gang, present[key], cluster)}"
        yield from (f"gang {gang.name}: {problem}" for problem in _misplaced(cluster, gang, present[key]))


def _present(cluster: Cluster) -> dict[str, list[Member]]:
    """The members with a node by gang, in order of rank."""
    found: dict[str, list[Member]] = defaultdict(list)
    for record in cluster.pods.records.values():
        named = membership(record.pod) if record.row >= 0 else None
        if named is not None:
            found[named.gang].append(Member(record, named.role, named.rank or 0))
    for members in found.values():
        members.sort(key=lambda member: member.rank)
    return found


def _missing(gang: Gang, members: Sequence[Member], cluster: Cluster) -> str:
    record = cluster.gangs.records[gang.key]
    if gang.once_satisfied and record.has_started():
        return ""
    done = record.done
    if len(members) + len(done) < gang.minimum:
        return f"{len(members)} of at least {gang.minimum} members run"
    by_role = Counter([*(member.role for member in members), *done.values()])
    for role in gang.roles:
        if by_role[role.name] < role.minimum:
            return f"{by_role[role.name]} of at least {role.minimum} members of role {role.name} run"
    return ""


def _misplaced(cluster: Cluster, gang: Gang, members: Sequence[Member]) -> Iterator[str]:
    if gang.topology_request is not None:
        yield from _apart(cluster, gang.topology_request, members)
    topology_request_of = {role.name: role.topology_request for role in gang.roles}
    for role in dict.fromkeys(member.role for member in members):
        own = [member for member in members if member.role == role]
        topology_request = topology_request_of.get(role)
        if topology_request is not None:
            yield from _apart(cluster, topology_request, own)
        sliced = topology_request or gang.topology_request
        if sliced is not None and sliced.has_slices:
            yield from _torn(cluster, sliced, own)
    for group in gang.role_groups:
        yield from _apart(cluster, group.topology_request, [member for member in members if member.role in group.roles])


def _apart(cluster: Cluster, topology_request: TopologyRequest, members: Sequence[Member]) -> Iterator[str]:
    if topology_request.required is None or tier_of(topology_request.required) is not None:
        return
    domains = {_domain(cluster, topology_request, topology_request.required, member) for member in members}
    if len(domains) > 1:
        yield f"its members are in {len(domains)} domains of {topology_request.required}"
    if None in domains:
        yield f"some of its members are in no domain of {topology_request.required}"


def _torn(cluster: Cluster, topology_request: TopologyRequest, members: Sequence[Member]) -> Iterator[str]:
    """Slices that are in several domains; they are counted by rank, within a role."""
    assert topology_request.slice_level is not None
    if tier_of(topology_request.slice_level) is not None:
        return
    size = topology_request.slice_size
    for start in range(0, len(members), size):
        domains = {
            _domain(cluster, topology_request, topology_request.slice_level, member)
            for member in members[start : start + size]
        }
        if len(domains) > 1 or None in domains:
            yield f"slice {start // size} is in {len(domains)} domains of {topology_request.slice_level}"


def _domain(cluster: Cluster, topology_request: TopologyRequest, level: str, member: Member) -> tuple[str, ...] | None:
    """The domain of a level that a member's node is in, told by all levels down to it; None if it is in none."""
    keys = _levels(cluster, topology_request)
    labels = cluster.nodes.node(member.record.row).metadata.labels or {}
    values = [labels.get(key) for key in keys[: keys.index(level) + 1]]
    return None if None in values else tuple(value for value in values if value is not None)


def _levels(cluster: Cluster, topology_request: TopologyRequest) -> tuple[str, ...]:
    topologies = cluster.related.topologies
    for name in [topology_request.topology] if topology_request.topology else sorted(topologies):
        if name in topologies:
            keys = tuple(level.node_label for level in topologies[name].spec.levels)
            if set(topology_request.levels) <= set(keys):
                return keys
    return topology_request.levels
