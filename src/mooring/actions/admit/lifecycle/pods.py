"""The pods of a workload: which of them are to run, and letting them go or holding them back accordingly.

A pod that is held back carries Kueue's scheduling gate. Letting it go takes the gate off and sends it to the nodes of
its flavors. Both are done to the state at once; the driver does the same to the world when it carries the decision out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.actions.admit.cycle.faults import blame
from mooring.actions.admit.lifecycle.admission_checks import check_states, checks_terms
from mooring.actions.admit.lifecycle.lifecycle import Lifecycle
from mooring.actions.admit.topology.ungating import assign_pods
from mooring.engine.disruption import withdraw
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Queue
from mooring.model.api.kueue_labels import ADMISSION_GATE, QUEUE_GATES
from mooring.model.api.kueue_workload import PodSet
from mooring.model.api.pods import Pod, SchedulingGate, Toleration
from mooring.model.decisions import Decision, Defer, PodSetFlavors, TopologyAssignment, Wait
from mooring.model.keys import PodKey
from mooring.model.pod_patch import PodPatch
from mooring.model.queued.workloads import ResumeError, flavor_terms, resume_pods, terms_patch
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.workloads import NO_CONDITION, WITHOUT_QUOTA, Condition, Stage, WorkloadRecord

READY = "Ready"


@dataclass(frozen=True, slots=True)
class WorkloadPods:
    """Reads and changes the pods of workloads in one cluster and its queue."""

    cluster: Cluster
    queue: Queue
    profiles: Mapping[str, Profile]
    now: float

    # Reading.

    def records(self, workload: WorkloadRecord, pod_set: str = "") -> Iterator[PodRecord]:
        """The pods of a workload, or of one of its sets, that are there."""
        known = self.cluster.pods.records
        for name, keys in workload.queued.pods.items():
            if not pod_set or name == pod_set:
                for key in keys:
                    record = known.get(key)
                    if record is not None:
                        yield record

    def placed(self, workload: WorkloadRecord) -> list[PodRecord]:
        """Those that have a node."""
        return [record for record in self.records(workload) if record.node_name]

    def waiting(self, workload: WorkloadRecord) -> list[PodRecord]:
        return [record for record in self.records(workload) if not record.node_name]

    def held(self, workload: WorkloadRecord) -> list[PodRecord]:
        """Those behind Kueue's gate."""
        return [record for record in self.records(workload) if _is_held(record.pod)]

    def finished(self, workload: WorkloadRecord) -> dict[str, int]:
        """By pod set, how many pods are done."""
        return self.cluster.tenants.finished_pods(workload.key)

    def is_done(self, workload: WorkloadRecord) -> bool:
        """Whether every pod of the workload is done."""
        finished = self.finished(workload)
        pod_sets = workload.workload.spec.pod_sets
        return bool(finished) and all(found.count <= finished.get(found.name, 0) for found in pod_sets)

    def to_run(self, workload: WorkloadRecord, given: PodSetFlavors) -> int:
        """How many pods of a set run at a time: as many as were admitted, or as are left to do."""
        total = next(
            (found.count for found in workload.workload.spec.pod_sets if found.name == given.name), given.count
        )
        return max(0, min(given.count, total - self.finished(workload).get(given.name, 0)))

    def is_ready(self, workload: WorkloadRecord) -> bool:
        """Whether as many pods of each set as are to run have a node, and are ready where they say so."""
        return all(
            sum(1 for record in self.records(workload, given.name) if _has_started(record))
            >= self.to_run(workload, given)
            for given in workload.pod_sets
        )

    # Changing.

    def bring_in_line(self, workload: WorkloadRecord) -> list[PodRecord]:
        """Let go or hold back the pods of a workload by its stage; the pods that were let go."""
        if workload.stage is Stage.DONE:
            return []
        if workload.stage is not Stage.ADMITTED:
            self._hold_back(workload)
            return []
        let_go: list[PodRecord] = []
        for record in self.waiting(workload):
            if not _is_held(record.pod) and record.key not in workload.let_go:
                self._restore(workload, record)  # it has what an earlier admission gave it, or was never held back
        for given in workload.pod_sets:
            records = list(self.records(workload, given.name))
            running = sum(1 for record in records if not _is_held(record.pod))
            held = [record for record in records if _is_held(record.pod)]
            missing = max(0, self.to_run(workload, given) - running)
            let_go += self._let_go(workload, given, held[:missing])
        return let_go

    def withdraw(self, workload: WorkloadRecord) -> None:
        """Take back the room that is being made for pods of a workload that is to stop: they never ran."""
        for record in self.records(workload):
            plan_id = self.cluster.plan_of(record.key)
            if plan_id is not None:
                withdraw(self.cluster, self.queue, plan_id)

    def resumed(self, workload: WorkloadRecord, given: PodSetFlavors) -> list[Pod]:
        """The pods of a set as they would be let go, first come first; raise ResumeError if that cannot be."""
        held = [record.pod for record in self.records(workload, given.name) if not record.node_name]
        return self._resume(workload, given, held[: self.to_run(workload, given)])

    def _resume(self, workload: WorkloadRecord, given: PodSetFlavors, pods: list[Pod]) -> list[Pod]:
        if not pods:
            return []
        selector, tolerations = self._flavor_terms(workload, given)
        more_selector, more_tolerations = checks_terms(workload, given.name)
        resumed = resume_pods(resume_pods(pods, selector, tolerations), more_selector, more_tolerations)
        marks = self._patch(workload, given)
        if marks.labels or marks.annotations:
            marks = PodPatch(labels=marks.labels, annotations=marks.annotations)
            resumed = [marks.apply(pod) for pod in resumed]
        return resumed if given.topology is None else self._send_to_domains(workload, given, given.topology, resumed)

    def patches(self, workload: WorkloadRecord, pod_sets: Iterable[PodSetFlavors]) -> tuple[tuple[str, PodPatch], ...]:
        """By pod set of a workload, what its pods are given; a workload whose flavors contradict each other is stopped,
        and is given nothing."""
        with suppress(ResumeError):
            found = [(given.name, self._patch(workload, given)) for given in pod_sets]
            return tuple((name, patch) for name, patch in found if patch != PodPatch())
        return ()

    def _patch(self, workload: WorkloadRecord, given: PodSetFlavors) -> PodPatch:
        return terms_patch(self._flavor_terms(workload, given), check_states(workload).values(), given.name)

    def _flavor_terms(
        self, workload: WorkloadRecord, given: PodSetFlavors
    ) -> tuple[Mapping[str, str], Sequence[Toleration]]:
        known = workload.flavor_terms.get(given.name)
        return known or flavor_terms(self.cluster.tenants.flavors, given.flavors.values())

    def _send_to_domains(
        self, workload: WorkloadRecord, given: PodSetFlavors, topology: TopologyAssignment, pods: list[Pod]
    ) -> list[Pod]:
        """Let each pod go to the domain that it is assigned; those that are assigned none stay held."""
        going = {pod.key for pod in pods}
        started = [
            (record.pod, self._node_labels(record))
            for record in self.records(workload, given.name)
            if record.key not in going and not _is_held(record.pod)
        ]
        pod_sets = {found.name: found for found in workload.workload.spec.pod_sets}
        request = pod_sets[given.name].topology_request if given.name in pod_sets else None
        first_rank = _first_rank(given, workload.pod_sets, pod_sets)
        assigned = assign_pods(topology, pods, started, request, first_rank=first_rank)
        by_domain: dict[tuple[str, ...], list[Pod]] = {}
        for pod, labels in assigned:
            by_domain.setdefault(tuple(labels.values()), []).append(pod)
        sent = {
            pod.key: pod
            for values, found in by_domain.items()
            for pod in resume_pods(found, dict(zip(topology.levels, values, strict=True)), ())
        }
        return [sent[pod.key] for pod in pods if pod.key in sent]

    def _node_labels(self, record: PodRecord) -> Mapping[str, str]:
        """Those of the pod's node, or as long as it has none, those that it selects."""
        if record.row != UNBOUND:
            return self.cluster.nodes.node(record.row).metadata.labels or {}
        return record.pod.spec.node_selector or {}

    def _let_go(self, workload: WorkloadRecord, given: PodSetFlavors, records: list[PodRecord]) -> list[PodRecord]:
        held = {record.key: record.pod for record in records}
        if records and given.name not in workload.flavor_terms:
            terms = flavor_terms(self.cluster.tenants.flavors, given.flavors.values())
            known = {**workload.flavor_terms, given.name: terms}
            self.cluster.workloads.change(workload, flavor_terms=known)
        resumed = self._resume(workload, given, list(held.values()))
        self.cluster.workloads.let_go(workload, {pod.key: held[pod.key] for pod in resumed})
        let_go = [self._replace(pod) for pod in resumed]
        if given.topology is not None:
            for pod in resumed:
                self.cluster.gangs.assign(pod.key)
        return let_go

    def _hold_back(self, workload: WorkloadRecord) -> None:
        for record in self.waiting(workload):
            if not _is_held(record.pod):
                self._restore(workload, record)

    def _restore(self, workload: WorkloadRecord, record: PodRecord) -> None:
        """Make a pod again what it was before it was let go."""
        before = self.cluster.workloads.hold_back(workload, record.key)
        is_same = before is not None and before.metadata.uid == record.pod.metadata.uid
        self._replace(before if before is not None and is_same else _with_gate(record.pod))

    def _replace(self, pod: Pod) -> PodRecord:
        """Let the state have a pod as it now is, and queue it accordingly; also if that is undone."""
        self.cluster.log.note(self._queue_anew, pod.key)
        self.cluster.replace_pod(pod)
        return self._queue_anew(pod.key)

    def _queue_anew(self, key: PodKey) -> PodRecord:
        """A pod that is being bound waits for no turn, also where old news show it gated."""
        self.queue.remove(key)
        record = self.cluster.pods.records[key]
        pod = record.pod
        profile = self.profiles.get(pod.spec.scheduler_name)
        if profile is not None and pod.metadata.deletion_timestamp is None and not record.node_name:
            self.queue.let_in(record, profile, self.now)
        return record


def _first_rank(given: PodSetFlavors, all_given: Iterable[PodSetFlavors], pod_sets: Mapping[str, PodSet]) -> int:
    """Workers of a group are counted on from their leader, which is the smaller of the two."""

    def group_of(name: str) -> str | None:
        request = pod_sets[name].topology_request if name in pod_sets else None
        return None if request is None else request.pod_set_group_name

    group = group_of(given.name)
    others = [found for found in all_given if group and found.name != given.name and group_of(found.name) == group]
    return others[0].count if others and others[0].count < given.count else 0


def _is_held(pod: Pod) -> bool:
    gates = pod.spec.scheduling_gates
    return any(gate.name in QUEUE_GATES for gate in gates) if gates else False


def _has_started(record: PodRecord) -> bool:
    if not record.node_name:
        return False
    said = [found.status == "True" for found in record.pod.status.conditions or () if found.type == READY]
    return all(said)


def _with_gate(pod: Pod) -> Pod:
    gates = [*(pod.spec.scheduling_gates or ()), SchedulingGate(name=ADMISSION_GATE)]
    return replace(pod, spec=replace(pod.spec, scheduling_gates=gates))


WHO = ("Admit",)
"""Who refuses: this action."""
PARTLY_ADMITTED = "PartiallyAdmitted"


def tell(workloads: Iterable[WorkloadRecord], lifecycle: Lifecycle, pods: WorkloadPods) -> list[Decision]:
    """What is to be said of these workloads, and to their pods, that was not said before."""
    waits: list[Decision] = []
    for workload in workloads:
        if workload.stage is Stage.DONE:
            continue
        try:
            waits += _tell(workload, lifecycle, pods)
        except Exception as error:
            if workload.key not in lifecycle.aside:
                blame(workload.key, error)
    return waits


def _tell(workload: WorkloadRecord, lifecycle: Lifecycle, pods: WorkloadPods) -> list[Decision]:
    condition = _words(workload, pods)
    if condition == workload.told:
        return []
    lifecycle.note_told(workload, condition)
    if not condition.message:
        return []
    said: list[Decision] = []
    if workload.stage in WITHOUT_QUOTA:
        said.append(Defer(workload.key, condition.reason, condition.message))
    held = pods.held(workload) if workload.stage is Stage.ADMITTED else pods.waiting(workload)
    return [*said, *(Wait(record.key, condition.message, WHO, reason=condition.reason) for record in held)]


def _words(workload: WorkloadRecord, pods: WorkloadPods) -> Condition:
    if workload.stage is not Stage.ADMITTED:
        return workload.condition
    wanted = {found.name: found.count for found in workload.workload.spec.pod_sets}
    fewer = [given for given in workload.pod_sets if given.count < wanted.get(given.name, 0)]
    if not fewer or not pods.held(workload):
        return NO_CONDITION
    said = ", ".join(f"{given.count} of {wanted[given.name]} pods of pod set {given.name}" for given in fewer)
    return Condition(PARTLY_ADMITTED, f"The workload is admitted with {said}; the others start as those finish")
