"""Scheduling in a simulation: a pod goes to a node that exists, to a planned one, or has a new one planned for it."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.actions.capacity.karpenter.planned import NewNode, PlannedNode, Reservations, finish, launchable
from mooring.actions.capacity.karpenter.shapes import SPREAD, Shape, TopologyTerm, order_key, ports_conflict
from mooring.actions.capacity.karpenter.situation import BEST_EFFORT, NODES
from mooring.actions.capacity.karpenter.snapshot import Snapshot
from mooring.actions.capacity.karpenter.templates import Template
from mooring.actions.capacity.karpenter.topology import Group, Topology
from mooring.actions.capacity.karpenter.type_columns import Mask, Rows, Units
from mooring.model.api.pods import Pod
from mooring.model.capacity.labels import HOSTNAME, RESERVED

TAINT, REQUIREMENTS, TOPOLOGY, LIMITS = "taint", "requirements", "topology", "limits"
MIN_VALUES, INSTANCE_TYPES, PUT_OFF, NO_TEMPLATE = "minValues", "instanceTypes", "reserved", "noTemplate"
"""Why a pod found no place."""

_FRONT = 1 << 40
"""More than there are claims: puts a claim's number of pods before its turn among equals."""


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Where pods would go."""

    new_nodes: tuple[NewNode, ...]
    existing: dict[str, tuple[Pod, ...]]
    """By machine."""
    errors: dict[int, tuple[Pod, frozenset[str]]]
    """Pods that found no place, by identity, with the reasons."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """How a planned node would look with one more pod."""

    requirements: int
    options: Rows
    reservations: tuple[str, ...] | None


class Simulation:
    """One pass over pods, with some machines taken away."""

    def __init__(
        self,
        snapshot: Snapshot,
        pods: Sequence[Pod],
        *,
        leaving: Iterable[int] = (),
        is_strict: bool = True,
        avoids_new: bool = False,
    ) -> None:
        self._snapshot = snapshot
        self._memo = snapshot.memo
        self._leaving = tuple(leaving)
        self._is_strict = is_strict
        """Whether a pod waits for a reservation rather than fall back."""
        self._avoids_new = avoids_new
        self._lowers_min_values = snapshot.situation.settings.min_values_policy == BEST_EFFORT
        self._available = snapshot.available.copy()
        self._stays: Mask = snapshot.is_active & snapshot.is_sane
        self._stays[list(self._leaving)] = False
        self._changed: dict[int, int] = {}
        """Rows whose requirements pods have narrowed, with the number of what they require now."""
        self._ports = dict(snapshot.ports)
        self._placed: dict[int, list[Pod]] = {}
        self._limits = snapshot.limits_left(self._leaving)
        self._reservations = Reservations(snapshot.columns.offerings)
        self._planned: list[PlannedNode] = []
        self._room: Units = np.zeros((16, len(snapshot.resources.names)), np.int64)
        """By planned node: the most that any of its types has left."""
        self._turn = np.zeros(16, np.int64)
        self._turns = 0
        self._topology = Topology(self._memo)
        self._changes = 0
        self._failed: dict[int, tuple[int, frozenset[str]]] = {}
        self._waiting = [(pod, snapshot.shapes.shape_of(pod)) for pod in pods]
        self._open_topology()

    # The loop

    def solve(self) -> Placed:
        resources = self._snapshot.resources
        orders = {shape.number: order_key(shape, resources) for _, shape in self._waiting}
        queue = deque(
            sorted(
                self._waiting,
                key=lambda each: (
                    orders[each[1].number],
                    each[0].metadata.creation_timestamp or "",
                    each[0].metadata.uid,
                ),
            )
        )
        lengths: dict[int, int] = {}
        errors: dict[int, tuple[Pod, frozenset[str]]] = {}
        while queue:
            pod, shape = queue[0]
            if lengths.get(id(pod)) == len(queue):
                break
            queue.popleft()
            reasons = self._try(pod, shape)
            if reasons is None:
                errors.pop(id(pod), None)
                continue
            errors[id(pod)] = pod, reasons
            queue.append((pod, shape))
            lengths[id(pod)] = len(queue)
        return self._finish(errors)

    def _finish(self, errors: dict[int, tuple[Pod, frozenset[str]]]) -> Placed:
        ordered = sorted(self._planned, key=lambda node: int(self._turn[node.position]))
        made = [finish(node, self._memo[node.requirements], self._snapshot.resources) for node in ordered]
        kept, broken = launchable(made, not self._lowers_min_values)
        for node in broken:
            errors.update({id(pod): (pod, frozenset((MIN_VALUES,))) for pod in node.pods})
        machines = self._snapshot.machines
        existing = {machines[row].name: tuple(pods) for row, pods in sorted(self._placed.items())}
        return Placed(tuple(kept), existing, errors)

    def _try(self, pod: Pod, shape: Shape) -> frozenset[str] | None:
        """Place a pod, relaxing it step by step; the reasons of the last step if that fails."""
        known = self._failed.get(shape.number)
        if known is not None and known[0] == self._changes and not self._avoids_new:
            return known[1]
        step: Shape | None = shape
        reasons: frozenset[str] = frozenset()
        while step is not None and PUT_OFF not in reasons:
            self._open_groups(step)
            found = self._add(pod, step)
            if found is None:
                self._changes += 1
                return None
            reasons = found
            step = self._snapshot.shapes.relaxed(step)
        self._failed[shape.number] = self._changes, reasons
        return reasons

    def _add(self, pod: Pod, shape: Shape) -> frozenset[str] | None:
        by_host, by_domain = self._topology.groups_for(shape)
        if self._add_to_existing(pod, shape, by_host, by_domain):
            return None
        if self._add_to_planned(pod, shape, by_host, by_domain):
            return None
        return self._add_to_new(pod, shape, by_host, by_domain)

    # Nodes that exist

    def _add_to_existing(self, pod: Pod, shape: Shape, by_host: list[Group], by_domain: list[Group]) -> bool:
        snapshot = self._snapshot
        mask = self._stays & snapshot.static_mask(shape)
        for row, requirements in self._changed.items():
            mask[row] = (
                self._stays[row]
                and self._memo.node_accepts(requirements, shape.requirements)
                and self._memo.tolerates(shape.tolerations, snapshot.taints(row))
            )
        request = shape.request
        for position in np.flatnonzero(request).tolist():
            mask &= self._available[position] >= request[position]
        if self._avoids_new and pod.spec.node_name and not self._may_go_to_new(pod):
            mask &= ~snapshot.is_new
        for group in by_host:
            mask &= group.hosts_left(group.rows, shape)
        if shape.hostname is not None:
            hostname = shape.hostname
            for row in np.flatnonzero(mask).tolist():
                mask[row] = hostname.has(snapshot.hostnames[row])
        if shape.ports:
            for row, ports in self._ports.items():
                if mask[row] and ports_conflict(shape.ports, ports):
                    mask[row] = False
        found = self._first_row(shape, mask, by_domain)
        if found is None:
            return False
        row, requirements = found
        self._available[:, row] -= request
        if requirements != self._requirements(row):
            self._changed[row] = requirements
        if shape.ports:
            self._ports[row] = (*self._ports.get(row, ()), *shape.ports)
        self._placed.setdefault(row, []).append(pod)
        hostname_here = snapshot.hostnames[row]
        self._topology.record(shape, snapshot.taints(row), requirements, row=row, claim=None, hostname=hostname_here)
        return True

    def _may_go_to_new(self, pod: Pod) -> bool:
        return pod.status.phase == "Pending" or pod.spec.node_name in self._snapshot.deleting

    def _requirements(self, row: int) -> int:
        known = self._changed.get(row)
        return int(self._snapshot.requirements[row]) if known is None else known

    def _first_row(self, shape: Shape, mask: Mask, by_domain: list[Group]) -> tuple[int, int] | None:
        memo = self._memo
        refused: set[int] = set()
        while mask.any():
            row = int(np.argmax(mask))
            own = self._requirements(row)
            if own not in refused:
                merged = memo.merge(own, shape.requirements)
                narrowed = self._topology.narrow(shape, by_domain, merged) if by_domain else merged
                if narrowed is not None and memo.node_accepts(merged, narrowed):
                    return row, narrowed
                refused.add(own)
                # Nodes with equal labels are refused alike.
                mask &= self._snapshot.requirements != own
                for changed, requirements in self._changed.items():
                    mask[changed] &= requirements != own
            mask[row] = False
        return None

    # Planned nodes

    def _add_to_planned(self, pod: Pod, shape: Shape, by_host: list[Group], by_domain: list[Group]) -> bool:
        count = len(self._planned)
        if not count:
            return False
        mask: Mask = np.all(self._room[:count] >= shape.request, axis=1)
        for group in by_host:
            mask &= group.hosts_left(group.claim_counts(count), shape)
        rows = np.flatnonzero(mask)
        if not len(rows):
            return False
        is_plain = not by_host and not by_domain and not self._snapshot.columns.has_reservations
        for position in rows[np.argsort(self._turn[rows], kind="stable")].tolist():
            node = self._planned[position]
            if shape.number in node.refused:
                continue
            fit = self._fit(node, shape, by_domain, lowers_min_values=False)
            if isinstance(fit, Fit):
                self._join(node, pod, shape, fit)
                return True
            if is_plain:
                node.refused.add(shape.number)
        return False

    def _fit(self, node: PlannedNode, shape: Shape, by_domain: list[Group], *, lowers_min_values: bool) -> Fit | str:
        """How a planned node would look with this pod, or why it cannot take it."""
        memo, template = self._memo, node.template
        if not memo.tolerates(shape.tolerations, template.taints):
            return TAINT
        if not memo.claim_accepts(node.requirements, shape.requirements):
            return REQUIREMENTS
        if shape.hostname is not None and not shape.hostname.has(node.hostname):
            return REQUIREMENTS
        merged = memo.merge(node.requirements, shape.requirements)
        number: int | None = merged
        if by_domain:
            number = self._topology.narrow(shape, by_domain, merged)
            if number is None or not memo.claim_accepts(merged, number):
                return TOPOLOGY
        assert number is not None
        options = self._fitting(node, shape, number)
        if not len(options):
            return INSTANCE_TYPES
        requirements = memo[number]
        if requirements.with_min_values:
            missing = template.columns.missing_values(options, requirements)
            if missing and not lowers_min_values:
                return MIN_VALUES
            if missing:
                number = memo.number(requirements.relaxed(missing))
        if not template.columns.has_reservations:
            return Fit(number, options, None)
        return self._with_reservations(node, number, options)

    def _fitting(self, node: PlannedNode, shape: Shape, number: int) -> Rows:
        template, options = node.template, node.options
        if shape.ports:
            if ports_conflict(shape.ports, node.ports):
                return options[:0]
            free = template.has_free_ports(shape.ports)
            if free is not None:
                options = options[free[options]]
        if number != node.requirements or not node.pods:
            options = options[template.columns.matching(self._memo[number])[options]]
        fits = (template.room[options] >= node.total + shape.request).all(axis=1)
        return options if fits.all() else options[fits]

    def _with_reservations(self, node: PlannedNode, number: int, options: Rows) -> Fit | str:
        columns = node.template.columns
        is_option = np.zeros(len(columns.types), np.bool_)
        is_option[options] = True
        mask = columns.on_offer(self._memo[number]) & is_option[columns.offering_type]
        offered = [columns.offerings[position] for position in np.flatnonzero(mask).tolist()]
        # A reservation that is used up altogether is not waited for, unless there is nothing else.
        has_others = any(offering.capacity_type != RESERVED for offering in offered)
        compatible = {
            offering.reservation_id
            for offering in offered
            if offering.capacity_type == RESERVED and (offering.reservation_capacity or not has_others)
        }
        held = tuple(sorted(name for name in compatible if self._reservations.can_hold(node, name)))
        if self._is_strict and not held and (compatible or node.reservations):
            return PUT_OFF
        return Fit(number, options, held)

    def _join(self, node: PlannedNode, pod: Pod, shape: Shape, fit: Fit) -> None:
        node.pods.append(pod)
        node.options = fit.options
        node.requirements = fit.requirements
        node.total = node.total + shape.request
        node.ports.extend(shape.ports)
        if fit.reservations is not None:
            self._reservations.hold(node, fit.reservations)
        self._room[node.position] = node.template.room[fit.options].max(axis=0) - node.total
        # A claim goes before those that had as many pods already; a new one goes after those with one.
        self._turns += 1
        turn = self._turns if len(node.pods) == 1 else -self._turns
        self._turn[node.position] = len(node.pods) * _FRONT + turn
        self._topology.record(
            shape, node.template.taints, fit.requirements, row=None, claim=node.position, hostname=node.hostname
        )

    # New nodes

    def _add_to_new(
        self, pod: Pod, shape: Shape, by_host: list[Group], by_domain: list[Group]
    ) -> frozenset[str] | None:
        if not self._snapshot.templates:
            return frozenset((NO_TEMPLATE,))
        reasons: set[str] = set()
        none_yet = np.zeros(1, np.int64)
        has_host = all(bool(group.hosts_left(none_yet, shape)[0]) for group in by_host)
        for template in self._snapshot.templates:
            options = self._within_limits(template)
            if not len(options):
                reasons.add(LIMITS)
                continue
            node = PlannedNode(template, len(self._planned), options)
            fit: Fit | str = TOPOLOGY
            if has_host:
                fit = self._fit(node, shape, by_domain, lowers_min_values=self._lowers_min_values)
            if isinstance(fit, Fit):
                self._begin(node, pod, shape, fit)
                return None
            reasons.add(fit)
            if fit == PUT_OFF:
                break
        return frozenset(reasons)

    def _within_limits(self, template: Template) -> Rows:
        left = self._limits.get(template.name)
        if left is None:
            return template.options
        limited = self._snapshot.limited[template.name]
        nodes = self._snapshot.resources.position(NODES)
        if limited[nodes] and left[nodes] <= 0:
            return template.options[:0]
        fits = (template.columns.capacity[template.options] <= left)[:, limited].all(axis=1)
        return template.options[fits]

    def _begin(self, node: PlannedNode, pod: Pod, shape: Shape, fit: Fit) -> None:
        self._planned.append(node)
        if len(self._planned) > len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
            self._turn = np.concatenate([self._turn, np.zeros_like(self._turn)])
        self._join(node, pod, shape, fit)
        left = self._limits.get(node.template.name)
        if left is not None:
            left -= node.template.columns.capacity[fit.options].max(axis=0)

    # Topology

    def _open_topology(self) -> None:
        """Count for the terms of all pods, in the order in which an API server would list them."""
        topology, existing = self._topology, self._snapshot.pods
        seen: set[int] = set()
        for _, shape in sorted(self._waiting, key=lambda each: (each[0].metadata.namespace, each[0].metadata.name)):
            if shape.number in seen:
                continue
            seen.add(shape.number)
            for term in (*shape.kind.anti_affinity, *existing.terms_repelling(shape.kind.labels)):
                if term not in topology.inverse:
                    topology.inverse[term] = self._repelling_group(term, shape)
            self._open_groups(shape)

    def _open_groups(self, shape: Shape) -> None:
        for term, min_domains in shape.terms:
            if term not in self._topology.groups:
                self._topology.groups[term] = self._counting_group(term, min_domains, shape)

    def _repelling_group(self, term: TopologyTerm, shape: Shape) -> Group:
        existing = self._snapshot.pods
        known = existing.repelling.get(term)
        rows = np.zeros(len(self._snapshot.machines), np.int64) if known is None else known.rows.copy()
        domains = {} if known is None else dict(known.domains)
        for pod, _ in self._waiting:
            for repelled, row, domain in existing.repels.get(id(pod), ()):
                if repelled == term:
                    rows[row] -= 1
                    _take_one(domains, domain)
        if term.key != HOSTNAME:
            first = shape if known is None else known.first
            for domain in self._snapshot.universe(term.key, first.tolerations, True):
                domains.setdefault(domain, 0)
        return Group(term, None, domains, rows, self._memo.selections(term))

    def _counting_group(self, term: TopologyTerm, min_domains: int | None, shape: Shape) -> Group:
        snapshot = self._snapshot
        counted = snapshot.pods.counted(term)
        rows, domains = counted.rows.copy(), dict(counted.domains)
        for pod, _ in self._waiting:
            code, row = snapshot.pods.place_of.get(id(pod), (0, -1))
            domain = counted.domain_of[row] if row >= 0 else None
            if domain is not None and counted.selected[code]:
                rows[row] -= 1
                _take_one(domains, domain)
        if term.key != HOSTNAME:
            machines = dict(counted.machines)
            for row in self._leaving:
                here = snapshot.machines[row].labels.get(term.key)
                if here in machines and counted.domain_of[row] is not None:
                    machines[here] -= 1
            honors = term.kind != SPREAD or term.node_filter.honors_taints
            universe = snapshot.universe(term.key, shape.tolerations, honors)
            for domain in (*universe, *(name for name, count in machines.items() if count)):
                domains.setdefault(domain, 0)
        return Group(term, min_domains, domains, rows, self._memo.selections(term))


def _take_one(domains: dict[str, int], domain: str) -> None:
    """Count one pod less; a domain that no pod is left in is not there for that."""
    domains[domain] -= 1
    if not domains[domain]:
        del domains[domain]
