"""Asked last whether a workload that has quota may start: are those before it ready, is there room for its pods."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from mooring.actions.admit.cycle.nominate import Entry
from mooring.actions.admit.cycle.pending import Requeue
from mooring.actions.admit.cycle.turns import MayStart, Refusal
from mooring.actions.admit.lifecycle.conditions import PODS_NOT_READY
from mooring.actions.admit.lifecycle.lifecycle import Lifecycle
from mooring.actions.admit.lifecycle.pods import WorkloadPods
from mooring.actions.admit.lifecycle.rehearsal import CanPlace, Rehearse
from mooring.actions.admit.lifecycle.stages import Stage, WorkloadRecord
from mooring.config.tenant_policy import ALWAYS, CHECK_PLACEMENT, ON_REQUEST
from mooring.model.api.pods import Pod
from mooring.model.decisions import PodSetFlavors
from mooring.model.queued.workloads import ResumeError
from mooring.state.cluster import Cluster


class Gatekeeper:
    """Keeps workloads from starting by the two policies that look beyond quota: blockAdmission and checkPlacement."""

    def __init__(self, rehearse: Rehearse, *, blocks_admission: bool, check_placement: str) -> None:
        self._rehearse = rehearse
        self._blocks_admission = blocks_admission
        self._check_placement = check_placement
        self._unplaced: set[str] = set()
        """Works that had quota and no nodes when they were last looked at."""
        self._seen: tuple[int, int] = (-1, -1)

    def look_at(self, cluster: Cluster, lifecycle: Lifecycle) -> None:
        """If pods or nodes came or went, whoever had no nodes may have some now."""
        if self._unplaced and self._seen != _moment(cluster):
            lifecycle.admission.pending.try_again(sorted(self._unplaced))
            lifecycle.settling.wake_all()

    @contextmanager
    def at_work(self, lifecycle: Lifecycle, pods: WorkloadPods) -> Iterator[MayStart]:
        """Answer for one run. The what-if for placing pods is opened when it is first needed, and undone at the end."""
        with ExitStack() as stack:
            yield _Run(self, lifecycle, pods, stack).may_start
        self._seen = _moment(pods.cluster)

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

    def rehearse(self, cluster: Cluster, stack: ExitStack) -> CanPlace:
        return stack.enter_context(self._rehearse(cluster))

    def note_placement(self, key: str, is_possible: bool) -> None:
        (self._unplaced.discard if is_possible else self._unplaced.add)(key)


class _Run:
    """The answers of one run."""

    def __init__(self, keeper: Gatekeeper, lifecycle: Lifecycle, pods: WorkloadPods, stack: ExitStack) -> None:
        self._keeper = keeper
        self._lifecycle = lifecycle
        self._pods = pods
        self._stack = stack
        self._can_place: CanPlace | None = None
        self._refusals: dict[tuple[object, ...], str] = {}
        """What was said of pods for whom there was no room: with more pods placed since, there is not more of it."""
        self._passed_in = -1
        self._ahead: list[tuple[WorkloadRecord, tuple[PodSetFlavors, ...]]] = []
        """Works whose pods will be placed first, as far as they can be, and are not in the what-if yet."""

    def may_start(self, entry: Entry) -> Refusal | None:
        cycle = self._lifecycle.admission.cycle
        has_let_through = self._keeper.lets_through_one_a_cycle and self._passed_in == cycle
        if has_let_through or self._keeper.blocks(self._lifecycle):
            return Refusal(Requeue.PODS_NOT_READY, PODS_NOT_READY)
        workload = self._lifecycle.workloads[entry.pending.key]
        if not self._keeper.checks(workload):
            self._ahead.append((workload, entry.assignment.pod_sets))
        else:
            problem = self._place(workload, entry)
            self._keeper.note_placement(workload.key, problem is None)
            if problem is not None:
                return Refusal(Requeue.NO_PLACE, problem)
        self._passed_in = cycle
        return None

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

    def _ask(self, pods: Sequence[Pod]) -> str | None:
        if self._can_place is None:
            self._can_place = self._keeper.rehearse(self._pods.cluster, self._stack)
            let_through = {workload.key for workload, _ in self._ahead}
            started = [workload for workload in self._lifecycle.unready.values() if workload.stage is Stage.ADMITTED]
            self._ahead[:0] = [(workload, workload.pod_sets) for workload in started if workload.key not in let_through]
        ahead, self._ahead = self._ahead, []
        for workload, pod_sets in ahead:
            # Nobody asked whether all of these can be placed: each takes the room that it finds.
            with suppress(ResumeError):
                for pod in self._pods_of(workload, pod_sets):
                    self._can_place([pod])
        return self._can_place(pods)


def _moment(cluster: Cluster) -> tuple[int, int]:
    return cluster.pod_changes.position, cluster.nodes_version
