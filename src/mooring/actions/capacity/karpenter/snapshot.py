"""What exists, as columns, shared by all simulations of one situation.

Machines are rows, initialized ones first, then by name: the order in which pods try them. Simulations copy what they
change; what they only read is here.
"""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
from msgspec.structs import replace

from mooring.actions.capacity.karpenter.existing_pods import ExistingPods, project
from mooring.actions.capacity.karpenter.memo import Memo, Tolerations
from mooring.actions.capacity.karpenter.shapes import (
    HostPort,
    Shape,
    Shapes,
    host_ports,
    keys_read_by,
    requests_of,
)
from mooring.actions.capacity.karpenter.situation import NODES, Machine, Situation
from mooring.actions.capacity.karpenter.templates import Daemon, make_template, order_pools, pool_requirements
from mooring.actions.capacity.karpenter.type_columns import Mask, ResourceNames, Rows, TypeColumns, Units
from mooring.actions.capacity.karpenter.windows import is_under_consolidate_after
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Affinity, NodeAffinity, Pod
from mooring.model.api.workloads import DaemonSet
from mooring.model.capacity.instance_types import amounts_of
from mooring.model.capacity.labels import HOSTNAME
from mooring.model.capacity.requirements import Requirement, Requirements
from mooring.model.values.requests import CPU, MEMORY, PODS
from mooring.state.remembered import Derived


class Snapshot:
    """The columns of one situation."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.machines = tuple(
            sorted(situation.machines, key=lambda machine: (not machine.is_initialized, machine.name))
        )
        self.deleting = frozenset(machine.name for machine in self.machines if machine.is_deleting)
        self.index = {machine.name: row for row, machine in enumerate(self.machines)}
        self.memo = Memo()
        daemon_pods = _daemon_pods(situation.daemon_sets, self.machines)
        bound = [pod for machine in self.machines for pod in machine.pods]
        everyone = [*bound, *situation.pending, *daemon_pods]
        self.resources = _resource_names(situation, everyone)
        self.columns = TypeColumns(situation.instance_types, self.resources)
        pools = order_pools(situation.pools)
        self.pools = {pool.name: pool for pool in pools}
        """Those that take part in provisioning."""
        self.all_pools = {pool.name: pool for pool in situation.pools}
        daemons = [Daemon(pod, self.resources) for pod in daemon_pods]
        made = [make_template(pool, self.columns, daemons, situation.settings, self.memo) for pool in pools]
        self.templates = tuple(template for template in made if template is not None)
        is_soft = any(
            taint.effect == "PreferNoSchedule" for pool in pools for taint in pool.spec.template.spec.taints or ()
        )
        self.shapes = Shapes(self.memo, self.resources, situation.settings, situation.namespaces, is_soft)
        self.pods = ExistingPods(self.machines, self.shapes, self.memo)
        self._universe = _domains_of_pools(situation)
        self._static: dict[tuple[int, Tolerations], Mask] = {}
        self._read_rows(frozenset(keys_read_by(pod.spec for pod in everyone)))
        self._read_usage(daemons)
        self.capacity = self._matrix(machine.capacity for machine in self.machines)
        self._limits_left = {
            pool.name: self.resources.vector(amounts_of(pool.spec.limits)) for pool in pools if pool.spec.limits
        }
        for row, machine in enumerate(self.machines):
            if machine.pool in self._limits_left and not machine.is_deleting:
                self._limits_left[machine.pool] -= self.capacity[row]
        self.limited: dict[str, Mask] = {
            pool.name: np.array([name in (pool.spec.limits or {}) for name in self.resources.names], np.bool_)
            for pool in pools
        }

    def _matrix(self, amounts: Iterable[Mapping[str, int]]) -> Units:
        rows = [self.resources.vector(each) for each in amounts]
        return np.array(rows, np.int64).reshape(len(rows), len(self.resources.names))

    def _read_rows(self, keys: frozenset[str]) -> None:
        machines = self.machines
        read = keys - {HOSTNAME}
        self.requirements: Rows = np.array(
            [self.memo.number(project(machine.labels, read)) for machine in machines], np.intp
        )
        taints: dict[tuple[Taint, ...], int] = {}
        self._taint_codes: Rows = np.array(
            [taints.setdefault(machine.taints, len(taints)) for machine in machines], np.intp
        )
        self._taint_sets = list(taints)
        self.hostnames = [machine.hostname for machine in machines]
        self.is_active: Mask = np.array([not machine.is_deleting for machine in machines], np.bool_)
        self.is_new: Mask = np.array(
            [
                is_under_consolidate_after(self.pools.get(machine.pool), machine.claim, self.situation.now)
                for machine in machines
            ],
            np.bool_,
        )

    def _read_usage(self, daemons: list[Daemon]) -> None:
        available = self._matrix(machine.allocatable for machine in self.machines)
        to_come = self._daemons_to_come(daemons)
        requests = _Requests(self.resources)
        self.ports: dict[int, tuple[HostPort, ...]] = {}
        """Host ports in use, by row."""
        for row, machine in enumerate(self.machines):
            of_daemons = np.zeros(len(self.resources.names), np.int64)
            ports: list[HostPort] = []
            for pod in machine.pods:
                if pod.is_terminal:
                    continue
                request = requests.of(pod)
                available[row] -= request
                if is_owned_by(pod, "apps/v1", "DaemonSet"):
                    of_daemons += request
                ports.extend(host_ports(pod.spec.containers))
            if ports:
                self.ports[row] = tuple(ports)
            available[row] -= np.maximum(to_come[row] - of_daemons, 0)
        self.available: Units = np.ascontiguousarray(available.T)
        """By resource and row: what is left, once all daemons run."""
        self.is_sane: Mask = np.all(self.available >= 0, axis=0)

    def _daemons_to_come(self, daemons: list[Daemon]) -> Units:
        total = np.zeros((len(self.machines), len(self.resources.names)), np.int64)
        for daemon in daemons:
            keys = frozenset(daemon.requirements)
            answers: dict[tuple[int, Requirements], bool] = {}
            for row, machine in enumerate(self.machines):
                seen = project(machine.labels, keys)
                key = int(self._taint_codes[row]), seen
                if key not in answers:
                    answers[key] = self.memo.tolerates(daemon.tolerations, machine.taints) and seen.accepts(
                        daemon.requirements
                    )
                if answers[key]:
                    total[row] += daemon.request
        return total

    def static_mask(self, shape: Shape) -> Mask:
        """The rows whose labels and taints suit a pod, as long as no pod has changed what they require."""
        key = shape.requirements, shape.tolerations
        mask = self._static.get(key)
        if mask is None:
            mask = np.zeros(len(self.machines), np.bool_)
            for number in np.unique(self.requirements).tolist():
                if self.memo.node_accepts(number, shape.requirements):
                    mask |= self.requirements == number
            for code, taints in enumerate(self._taint_sets):
                if not self.memo.tolerates(shape.tolerations, taints):
                    mask &= self._taint_codes != code
            self._static[key] = mask
        return mask

    def taints(self, row: int) -> tuple[Taint, ...]:
        return self._taint_sets[int(self._taint_codes[row])]

    def universe(self, key: str, tolerations: Tolerations, honors_taints: bool) -> list[str]:
        """The domains that nodes of the pools can be in."""
        found = self._universe.get(key, {})
        if not honors_taints:
            return list(found)
        return [
            domain
            for domain, taint_sets in found.items()
            if any(self.memo.tolerates(tolerations, taints) for taints in taint_sets)
        ]

    def limits_left(self, leaving: Iterable[int]) -> dict[str, Units]:
        """What is left of each pool's limits once the machines on these rows are gone."""
        left = {name: limit.copy() for name, limit in self._limits_left.items()}
        for row in leaving:
            limit = left.get(self.machines[row].pool)
            if limit is not None:
                limit += self.capacity[row]
        return left


class _Requests:
    """What pods request, worked out once for those that are equal."""

    def __init__(self, resources: ResourceNames) -> None:
        self._resources = resources
        self._known: Derived[bytes, Units] = Derived()
        self._encode = msgspec.msgpack.Encoder().encode

    def of(self, pod: Pod) -> Units:
        spec = pod.spec
        key = self._encode((spec.containers, spec.init_containers, spec.overhead, spec.resources))
        found = self._known.get(key)
        return found if found is not None else self._known.put(key, self._resources.vector(requests_of(pod)))


def is_owned_by(pod: Pod, api_version: str, kind: str) -> bool:
    return any(owner.api_version == api_version and owner.kind == kind for owner in pod.metadata.owner_references or ())


def _resource_names(situation: Situation, pods: list[Pod]) -> ResourceNames:
    names: dict[str, None] = dict.fromkeys((CPU, MEMORY, PODS, NODES))
    for each in situation.instance_types:
        names.update(dict.fromkeys(each.capacity))
    for machine in situation.machines:
        names.update(dict.fromkeys(machine.capacity))
        names.update(dict.fromkeys(machine.allocatable))
    for pod in pods:
        spec = pod.spec
        for container in (*spec.containers, *(spec.init_containers or ())):
            if container.resources is not None and container.resources.requests:
                names.update(dict.fromkeys(container.resources.requests))
        for given in (spec.overhead, spec.resources.requests if spec.resources else None):
            names.update(dict.fromkeys(given or ()))
    for pool in situation.pools:
        names.update(dict.fromkeys(pool.spec.limits or ()))
    return ResourceNames(tuple(names))


def _domains_of_pools(situation: Situation) -> dict[str, dict[str, list[tuple[Taint, ...]]]]:
    """By topology key and domain, the taints of the nodes that could be in it, pool by pool."""
    universe: dict[str, dict[str, list[tuple[Taint, ...]]]] = {}
    of_types: dict[str, dict[Requirement | None, None]] = {}
    type_keys = {key for each in situation.instance_types for key in each.requirements}
    for each in situation.instance_types:
        for key in type_keys:
            of_types.setdefault(key, {}).setdefault(each.requirements.get(key))
    for pool in order_pools(situation.pools):
        required = pool_requirements(pool)
        taints = tuple(pool.spec.template.spec.taints or ())
        for key in {*type_keys, *required}:
            values: set[str] = set()
            own = required.get(key)
            for found in of_types.get(key) or (None,):
                values.update(_values(found, own))
            if own is not None and own.operator == "In":
                values.update(own.values)
            for value in sorted(values):
                _add_domain(universe.setdefault(key, {}), value, taints)
    return universe


def _values(found: Requirement | None, own: Requirement | None) -> frozenset[str]:
    if found is None:
        return own.values if own is not None else frozenset()
    return (found if own is None else found.intersection(own)).values


def _add_domain(domains: dict[str, list[tuple[Taint, ...]]], value: str, taints: tuple[Taint, ...]) -> None:
    known = domains.get(value)
    if known is None or not taints:
        domains[value] = [taints]
    elif known[0]:
        known.append(taints)


def _daemon_pods(daemon_sets: tuple[DaemonSet, ...], machines: tuple[Machine, ...]) -> list[Pod]:
    """For each DaemonSet its newest pod, or one like its template; the node affinity is always the template's."""
    newest: dict[str, Pod] = {}
    if daemon_sets:
        for machine in machines:
            for pod in machine.pods:
                for owner in pod.metadata.owner_references or ():
                    if owner.controller and owner.kind == "DaemonSet":
                        known = newest.get(owner.uid)
                        if known is None or _created(pod) > _created(known):
                            newest[owner.uid] = pod
    return [_daemon_pod(found, newest.get(found.metadata.uid)) for found in daemon_sets]


def _created(pod: Pod) -> str:
    return pod.metadata.creation_timestamp or ""


def _daemon_pod(daemon_set: DaemonSet, newest: Pod | None) -> Pod:
    template = daemon_set.spec.template.spec
    spec = template if newest is None else newest.spec
    wanted = template.affinity.node_affinity if template.affinity is not None else None
    if newest is not None and wanted is not None and wanted.required is not None:
        affinity = spec.affinity or Affinity()
        own = replace(affinity.node_affinity or NodeAffinity(), required=wanted.required)
        spec = replace(spec, affinity=replace(affinity, node_affinity=own))
    metadata = ObjectMeta(name=daemon_set.metadata.name, namespace=daemon_set.metadata.namespace)
    return Pod(metadata=metadata, spec=spec)
