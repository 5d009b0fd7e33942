"""Asked last whether a workload that has quota may start: are those before it ready, is there room for its pods."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from mooring.actions.admit.cycle.conditions import PODS_NOT_READY
from mooring.actions.admit.cycle.entry_processing import StartRefusal
from mooring.actions.admit.cycle.nominate import Entry
from mooring.actions.admit.cycle.pending_queue import Requeue
from mooring.actions.admit.lifecycle.lifecycle import Lifecycle
from mooring.actions.admit.lifecycle.pods import WorkloadPods
from mooring.config.tenant_policy import ALWAYS, CHECK_PLACEMENT, ON_REQUEST
from mooring.engine.answers.answers import to_keys
from mooring.engine.evaluate import evaluate
from mooring.engine.profile import Profile
from mooring.model.api.pods import Pod
from mooring.model.decisions import PodSetFlavors
from mooring.model.keys import WorkloadKey
from mooring.model.queued.workloads import ResumeError
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND
from mooring.state.remembered import Seen
from mooring.state.workloads import Stage, WorkloadRecord

Rehearse = Callable[[Cluster, Sequence[Pod]], str | None]
"""Lets all these pods take places together, and says None; else says why not, and leaves everything as it was.

Whoever asks has a what-if open, in which they have their places until it ends."""


class Gatekeeper:
    """Keeps workloads from starting by the two policies that look beyond quota: blockAdmission and checkPlacement."""

    def __init__(self, rehearse: Rehearse, *, blocks_admission: bool, check_placement: str) -> None:
        self._rehearse = rehearse
        self._blocks_admission = blocks_admission
        self._check_placement = check_placement
        self._unplaced: set[WorkloadKey] = set()
        """Workloads that had quota and no nodes when they were last looked at."""
        self._seen = Seen()

    def look_at(self, cluster: Cluster, lifecycle: Lifecycle) -> None:
        """If pods or nodes came or went, whoever had no nodes may have some now."""
        if self._unplaced and not self._seen.is_at(_moment(cluster)):
            lifecycle.admission.pending.try_again(sorted(self._unplaced))
            lifecycle.settling.wake_all()

    @contextmanager
    def at_work(self, lifecycle: Lifecycle, pods: WorkloadPods) -> Iterator["Gate"]:
        """Answer for one run: a what-if in which those who start have places for their pods."""
        with pods.cluster.what_if():
            yield Gate(self, lifecycle, pods)
        self._seen.is_news(_moment(pods.cluster))

    def checks(self, workload: WorkloadRecord) -> bool:
        """Tell whether a workload is to start only if its pods can be placed."""
        if self._check_placement == ON_REQUEST:
            return (workload.workload.metadata.annotations or {}).get(CHECK_PLACEMENT) == "true"
        return self._check_placement == ALWAYS

    def blocks(self, lifecycle: Lifecycle) -> bool:
        return self._blocks_admission and bool(lifecycle.unready)

    @property
    def lets_through_one_a_cycle(self) -> bool:
        return self._blocks_admission

    def rehearse(self, cluster: Cluster, pods: Sequence[Pod]) -> str | None:
        return self._rehearse(cluster, pods)

    def note_placement(self, key: WorkloadKey, is_possible: bool) -> None:
        (self._unplaced.discard if is_possible else self._unplaced.add)(key)


class Gate:
    """The answers of one run."""

    def __init__(self, keeper: Gatekeeper, lifecycle: Lifecycle, pods: WorkloadPods) -> None:
        self._keeper = keeper
        self._lifecycle = lifecycle
        self._pods = pods
        self._was_asked = False
        self._placed: list[tuple[Pod, int]] = []
        """The pods that were placed in the turns of the present cycle, and where."""
        self._refusals: dict[tuple[object, ...], str] = {}
        """What was said of pods for whom there was no room: with more pods placed since, there is not more of it."""
        self._passed_in = -1
        self._ahead: list[tuple[WorkloadRecord, tuple[PodSetFlavors, ...]]] = []
        """Workloads whose pods will be placed first, as far as they can be, and are not in the what-if yet."""

    def may_start(self, entry: Entry) -> StartRefusal | None:
        if entry.victims:
            return self._may_preempt(entry)
        cycle = self._lifecycle.admission.cycle
        has_let_through = self._keeper.lets_through_one_a_cycle and self._passed_in == cycle
        if has_let_through or self._keeper.blocks(self._lifecycle):
            return StartRefusal(Requeue.PODS_NOT_READY, PODS_NOT_READY)
        workload = self._lifecycle.workloads[entry.pending.key]
        if not self._keeper.checks(workload):
            self._ahead.append((workload, entry.assignment.pod_sets))
        else:
            problem = self._place(workload, entry)
            self._keeper.note_placement(workload.key, problem is None)
            if problem is not None:
                return StartRefusal(Requeue.NO_PLACE, problem)
        self._passed_in = cycle
        return None

    def _may_preempt(self, entry: Entry) -> StartRefusal | None:
        """Refuse a workload whose pods could not be placed even without its victims: they would go in vain, get their
        quota back, and be preempted again."""
        workload, cluster = self._lifecycle.workloads[entry.pending.key], self._pods.cluster
        if not self._keeper.checks(workload):
            return None
        leaving = {victim.admitted.pending.key for victim in entry.victims}
        before = self._was_asked, self._ahead[:], self._placed[:]
        try:
            with cluster.what_if():
                for key in leaving:
                    for record in self._pods.placed(self._lifecycle.workloads[key]):
                        cluster.release(record.key)
                problem = self._ask(self._pods_of(workload, entry.assignment.pod_sets), leaving)
        except ResumeError as error:
            problem = str(error)
        finally:
            self._was_asked, self._ahead, self._placed = before
        self._keeper.note_placement(workload.key, problem is None)
        return None if problem is None else StartRefusal(Requeue.NO_PLACE, problem)

    def end_cycle(self) -> None:
        """Turns are tried out, and these are over: let the pods of those who start have their places again."""
        cluster, placed = self._pods.cluster, self._placed
        for pod, row in placed:
            cluster.replace_pod(pod)
            cluster.assume(pod.key, row)
        self._placed = []

    def _place(self, workload: WorkloadRecord, entry: Entry) -> str | None:
        try:
            pods = self._pods_of(workload, entry.assignment.pod_sets)
        except ResumeError as error:
            return str(error)
        alike = (entry.queue.name, entry.pending.shape, tuple(found.count for found in entry.assignment.pod_sets))
        if alike not in self._refusals:
            problem = self._ask(pods)
            if problem is None:
                return None
            self._refusals[alike] = problem
        return self._refusals[alike]

    def _pods_of(self, workload: WorkloadRecord, pod_sets: Iterable[PodSetFlavors]) -> list[Pod]:
        return [pod for given in pod_sets for pod in self._pods.resumed(workload, given)]

    def _ask(self, pods: Sequence[Pod], leaving: Container[WorkloadKey] = ()) -> str | None:
        """Try to place pods behind those of workloads that started or start before, without those that are leaving."""
        if not self._was_asked:
            self._was_asked = True
            let_through = {workload.key for workload, _ in self._ahead}
            started = [workload for workload in self._lifecycle.unready.values() if workload.stage is Stage.ADMITTED]
            self._ahead[:0] = [(workload, workload.pod_sets) for workload in started if workload.key not in let_through]
        ahead, placed = self._ahead, self._placed[:]
        try:
            for workload, pod_sets in [found for found in ahead if found[0].key not in leaving]:
                # Nobody asked whether all of these can be placed: each takes the room that it finds. What raises is
                # theirs, and is said when they are really placed.
                with suppress(Exception):
                    for pod in self._pods_of(workload, pod_sets):
                        self._rehearse([pod])
            self._ahead = []
            return self._rehearse(pods)
        except Exception:  # the turn is undone, with the places of those ahead
            self._ahead, self._placed = ahead, placed
            raise

    def _rehearse(self, pods: Sequence[Pod]) -> str | None:
        cluster = self._pods.cluster
        waiting = [pod for pod in pods if (found := cluster.pods.records.get(pod.key)) and found.row == UNBOUND]
        problem = self._keeper.rehearse(cluster, pods)
        if problem is None:
            rows = ((pod, cluster.pods.records[pod.key].row) for pod in waiting)
            self._placed += [(pod, row) for pod, row in rows if row != UNBOUND]
        return problem


def _moment(cluster: Cluster) -> tuple[int, int]:
    return cluster.pod_changes.position, cluster.nodes_version


class Rehearsal:
    """The plain way: every pod is evaluated from nothing, and takes the best node there is."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._profiles = profiles

    def __call__(self, cluster: Cluster, pods: Sequence[Pod]) -> str | None:
        with cluster.what_if() as trial:
            for pod in pods:
                problem = self._place(cluster, pod)
                if problem is not None:
                    return f"pod {pod.key} cannot be placed: {problem}"
            trial.keep()
        return None

    def _place(self, cluster: Cluster, pod: Pod) -> str | None:
        profile = self._profiles.get(pod.spec.scheduler_name)
        record = cluster.pods.records.get(pod.key)
        if profile is None or record is None or record.row != UNBOUND:
            return None  # another scheduler's, not there yet, or in its place: nothing to try
        cluster.replace_pod(pod)
        evaluation = evaluate(profile, cluster, record.shape)
        rows = evaluation.scored
        if not len(rows):
            return evaluation.message()
        best = to_keys(evaluation.totals, cluster.nodes.tie.values[rows]).argmax()
        cluster.assume(pod.key, int(rows[best]))
        return None
