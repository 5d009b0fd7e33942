"""NodePools as templates of nodes: requirements, the instance types they leave, and what daemons take of each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mooring.actions.capacity.karpenter.memo import Memo, tolerations_of
from mooring.actions.capacity.karpenter.shapes import (
    PREFER_NO_SCHEDULE,
    HostPort,
    host_ports,
    ports_conflict,
    requests_of,
)
from mooring.actions.capacity.karpenter.situation import BEST_EFFORT, KarpenterSettings
from mooring.actions.capacity.karpenter.type_columns import Mask, ResourceNames, Rows, TypeColumns, Units
from mooring.model.api.karpenter import NodePool
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Pod
from mooring.model.capacity.labels import INITIALIZED, NODE_POOL, REGISTERED, WELL_KNOWN
from mooring.model.capacity.requirements import Requirements, from_labels, from_selector


@dataclass(frozen=True, slots=True, eq=False)
class DaemonGroup:
    """Instance types on which the same daemons would run."""

    types: Mask
    overhead: Units
    ports: tuple[HostPort, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A NodePool that new nodes can be planned from."""

    pool: NodePool
    columns: TypeColumns
    requirements: Requirements
    number: int
    """Of the requirements."""
    taints: tuple[Taint, ...]
    options: Rows
    groups: tuple[DaemonGroup, ...]
    room: Units
    """By type and resource: what is left for pods once the daemons run."""

    @property
    def name(self) -> str:
        return self.pool.name

    def has_free_ports(self, ports: tuple[HostPort, ...]) -> Mask | None:
        """The types whose daemons leave these ports free; None if all do."""
        taken = [group.types for group in self.groups if ports_conflict(ports, group.ports)]
        if not taken:
            return None
        mask: Mask = ~np.logical_or.reduce(taken)
        return mask


def pool_requirements(pool: NodePool) -> Requirements:
    """What a NodePool requires of its nodes, template labels included."""
    return from_selector(pool.spec.template.spec.requirements).merged(from_labels(pool.spec.template.metadata.labels))


def template_requirements(pool: NodePool) -> Requirements:
    """What a planned node of a pool has: also the labels that it gets once it is launched."""
    labels = {NODE_POOL: pool.name, REGISTERED: "true", INITIALIZED: "true"}
    reference = pool.spec.template.spec.node_class_ref
    if reference is not None:
        labels[f"{reference.group}/{reference.kind.lower()}"] = reference.name
    return pool_requirements(pool).merged(from_labels(labels))


def order_pools(pools: Sequence[NodePool]) -> list[NodePool]:
    """Pools that take part, heaviest first; of equal ones, the later name."""
    active = [pool for pool in pools if pool.spec.replicas is None and pool.metadata.deletion_timestamp is None]
    return sorted(sorted(active, key=lambda pool: pool.name, reverse=True), key=lambda pool: -pool.spec.weight)


class Daemon:
    """A DaemonSet's pod. Alternatives of its node affinity are used up from the front, type by type."""

    def __init__(self, pod: Pod, resources: ResourceNames) -> None:
        self.request = resources.vector(requests_of(pod))
        self.ports = host_ports(pod.spec.containers)
        self.tolerations = tolerations_of(pod.spec.tolerations)
        selector = from_labels(pod.spec.node_selector)
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
        required = affinity.required.node_selector_terms if affinity is not None and affinity.required else ()
        self.terms = [selector.merged(from_selector(term.match_expressions)) for term in required] or [selector]
        self.position = 0

    @property
    def requirements(self) -> Requirements:
        return self.terms[self.position]

    def compatible_types(
        self, requirements: Requirements, taints: tuple[Taint, ...], columns: TypeColumns, options: Rows, memo: Memo
    ) -> Mask:
        """The types, among those a pool offers, on which this daemon would run."""
        answer = np.zeros(len(columns.types), np.bool_)
        # Daemons always put up with taints that only ask for another node.
        if PREFER_NO_SCHEDULE not in self.tolerations:
            self.tolerations = (*self.tolerations, PREFER_NO_SCHEDULE)
        if not memo.tolerates(self.tolerations, taints):
            return answer
        start = 0
        while start < len(options):
            rest = options[start:]
            if requirements.accepts(self.requirements, WELL_KNOWN):
                matching = columns.overlapping(self.requirements)[rest]
            else:
                matching = np.zeros(len(rest), np.bool_)
            if self.position == len(self.terms) - 1:
                answer[rest[matching]] = True
                break
            if matching.all():
                answer[rest] = True
                break
            first = int(np.argmin(matching))
            answer[rest[:first]] = True
            start += first
            self.position += 1
        return answer


def make_template(
    pool: NodePool,
    columns: TypeColumns,
    daemons: Sequence[Daemon],
    settings: KarpenterSettings,
    memo: Memo,
) -> Template | None:
    """Build a pool's template; None if its requirements leave no instance type."""
    requirements = template_requirements(pool)
    options = np.flatnonzero(columns.matching(requirements) & columns.is_sane)
    if settings.min_values_policy != BEST_EFFORT and columns.missing_values(options, requirements):
        return None
    if not len(options):
        return None
    taints = tuple(pool.spec.template.spec.taints or ())
    runs = [daemon.compatible_types(requirements, taints, columns, options, memo) for daemon in daemons]
    groups = _group(daemons, runs, columns, options)
    room = columns.allocatable.copy()
    for group in groups:
        room[group.types] -= group.overhead
    return Template(pool, columns, requirements, memo.number(requirements), taints, options, groups, room)


def _group(
    daemons: Sequence[Daemon], runs: Sequence[Mask], columns: TypeColumns, options: Rows
) -> tuple[DaemonGroup, ...]:
    sets: dict[tuple[bool, ...], list[int]] = {}
    for row in options.tolist():
        sets.setdefault(tuple(bool(run[row]) for run in runs), []).append(row)
    groups = []
    for present, rows in sets.items():
        types = np.zeros(len(columns.types), np.bool_)
        types[rows] = True
        here = [daemon for daemon, is_here in zip(daemons, present, strict=True) if is_here]
        overhead = np.zeros(columns.capacity.shape[1], np.int64)
        for daemon in here:
            overhead += daemon.request
        ports = tuple(port for daemon in here for port in daemon.ports)
        groups.append(DaemonGroup(types, overhead, ports))
    return tuple(groups)
