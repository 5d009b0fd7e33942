"""What is counted and timed while a workload is measured, and the figures that come of it."""

import resource
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from mooring.model.api.pods import Pod
from mooring.model.decisions import Admit, Bind, Decision, Evict, Suspend, Wait
from mooring.model.keys import GangKey, PodKey
from mooring.state.cluster import Cluster
from mooring.testing.workloads import Workload


class Measurement(msgspec.Struct, kw_only=True):
    workload: str
    nodes: int
    pods: int
    pods_per_second: float
    p50_us: float
    """Half of the decisions took at most so long; of pods, a batch's time is shared by all that are in it."""
    p99_us: float
    peak_rss_mib: int
    placed: int
    waiting: int
    largest_batch: int | UnsetType = UNSET
    """How many pods were placed together at the most: so many an urgent one may have to wait for."""
    gangs: int | UnsetType = UNSET
    """How many were decided on, whether placed or not."""
    gangs_placed: int | UnsetType = UNSET
    gangs_per_second: float | UnsetType = UNSET
    preemptions: int | UnsetType = UNSET
    """For how many pods or gangs others were evicted."""
    preemptions_per_second: float | UnsetType = UNSET
    evictions: int | UnsetType = UNSET
    admissions: int | UnsetType = UNSET
    """A workload that lost its quota and got it again counts twice."""
    admissions_per_second: float | UnsetType = UNSET
    suspensions: int | UnsetType = UNSET
    cycles: int | UnsetType = UNSET
    rss_at_first_tenth_mib: int | UnsetType = UNSET
    """Where pods come and go: the memory in use when a tenth of them were placed, and at the end."""
    rss_at_end_mib: int | UnsetType = UNSET
    binds_per_second: float | UnsetType = UNSET
    """Where the embedded control plane is measured: pods bound through its API by one client."""
    binds_per_cpu_second: float | UnsetType = UNSET
    """By the CPU time of the server alone: what a busy machine says too."""
    client_binds_per_cpu_second: float | UnsetType = UNSET
    """By that of the client: the slower of the two is what an idle machine of two cores comes to."""
    trials_per_second: float | UnsetType = UNSET
    """Where trials are measured: from the beginning of one to its end, undone."""
    passes_per_second: float | UnsetType = UNSET
    """Where usage is measured: a sample of every container taken in, and a recommendation for each."""
    update_cpu_seconds: float | UnsetType = UNSET
    """The CPU time of taking in a sample of every container."""
    estimate_cpu_seconds: float | UnsetType = UNSET
    """The CPU time of recommending for all containers."""
    loops_per_second: float | UnsetType = UNSET
    """Where the autoscaler is measured: from the objects of the cluster to the sizes of node groups."""
    loop_cpu_seconds: float | UnsetType = UNSET
    """The least CPU time that such a loop took."""
    nodes_added: int | UnsetType = UNSET
    nodes_unneeded: int | UnsetType = UNSET
    plans_per_second: float | UnsetType = UNSET
    """Where plans of rebalancing are measured: from the state to the pods that move, and where to."""
    plan_seconds: float | UnsetType = UNSET
    """How long the first plan took, which has no answers kept from before; of consolidation, all cycles together."""
    plan_cpu_seconds: float | UnsetType = UNSET
    """The CPU time of the first plan: what a busy machine says too."""
    moves: int | UnsetType = UNSET
    """How many pods the plan moves."""
    stays: int | UnsetType = UNSET
    """How many pods a strategy chose that stay where they are."""
    list_seconds: float | UnsetType = UNSET
    """How long a list of all pods took, from the request to its last byte."""


class Tally:
    """Counts decisions as they come."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._batches: list[tuple[int, float]] = []
        """(pods, seconds)"""
        self._cycles: list[tuple[int, float]] = []
        """(pods and gangs that came, seconds)"""
        self._gangs = set[GangKey]()
        self._gangs_placed = set[GangKey]()
        self._preemptors = set[str]()
        self._evictions = self._admissions = self._suspensions = self._moves = 0
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self.decided = set[str]()
        self.placed = set[str]()
        self._first_tenth_rss = 0

    @property
    def progress(self) -> int:
        """How many pods are done with; those that queue are told to wait long before."""
        return len(self.placed if self._workload.decision == "admission" else self.decided)

    def note_batch(self, pods: int, seconds: float) -> None:
        self._batches.append((pods, seconds))

    def note_cycle(self, cluster: Cluster, decisions: Iterable[Decision], came: Iterable[Pod], seconds: float) -> None:
        """Take in what a cycle decided, and how long it took; to be called before that is carried out."""
        self.seconds += seconds
        gang_of, decision_kind = cluster.gangs.of_pod, self._workload.decision
        self._cycles.append((len({gang_of.get(pod.key, pod.key) for pod in came}), seconds))
        for decision in decisions:
            match decision:
                case Bind(pod) if decision_kind == "consolidation" and PodKey(pod) not in gang_of:
                    pass  # a pod that was moved is where it is to be
                case Bind(pod):
                    self.decided.add(pod)
                    self.placed.add(pod)
                    self._note_gang(gang_of.get(PodKey(pod)), is_placed=True)
                case Wait(pod):
                    self.decided.add(pod)
                    self._note_gang(gang_of.get(PodKey(pod)), is_placed=False)
                case Evict(pod, _, preemptor):
                    self.placed.discard(pod)
                    self._evictions += 1
                    self._moves += bool(decision.successor)
                    self._preemptors.add(gang_of.get(PodKey(preemptor), preemptor))
                case Admit(pending_checks=()):
                    self._admissions += 1
                case Suspend():
                    self._suspensions += 1

    def note_memory(self, pods: int) -> None:
        """Look at the memory in use, once a tenth of the pods is placed."""
        if not self._first_tenth_rss and 10 * len(self.placed) >= pods:
            self._first_tenth_rss = _rss_mib()

    def _note_gang(self, key: GangKey | None, *, is_placed: bool) -> None:
        if key is not None:
            self._gangs.add(key)
            if is_placed:
                self._gangs_placed.add(key)

    def measurement(self, nodes: int, pods: int) -> Measurement:
        """The figures, when all is done."""
        decision = self._workload.decision
        took = self._durations()
        found = Measurement(
            workload=self._workload.name,
            nodes=nodes,
            pods=pods,
            pods_per_second=self._rate(pods),
            p50_us=round(percentile(took, 0.50), 1),
            p99_us=round(percentile(took, 0.99), 1),
            peak_rss_mib=peak_rss_mib(),
            placed=len(self.placed),
            waiting=pods - len(self.placed),
        )
        if decision == "pod" and self._batches:
            found.largest_batch = max(pods for pods, _ in self._batches)
        if decision == "gang":
            found.gangs, found.gangs_placed = len(self._gangs), len(self._gangs_placed)
            found.gangs_per_second = self._rate(len(self._gangs))
        elif decision == "consolidation":
            found.gangs, found.gangs_placed = len(self._gangs), len(self._gangs_placed)
            found.moves, found.plan_seconds = self._moves, round(self.seconds, 3)
            found.plan_cpu_seconds, found.cycles = round(self.cpu_seconds, 3), len(self._cycles)
            found.gangs_per_second = self._rate(len(self._gangs))
        elif decision == "preemption":
            found.preemptions, found.evictions = len(self._preemptors), self._evictions
            found.preemptions_per_second = self._rate(len(self._preemptors))
        elif decision == "admission":
            found.admissions, found.suspensions = self._admissions, self._suspensions
            found.admissions_per_second = self._rate(self._admissions)
            found.cycles = len(self._cycles)
        if self._workload.seconds is not None and decision == "pod":
            found.rss_at_first_tenth_mib, found.rss_at_end_mib = self._first_tenth_rss, _rss_mib()
            # The kernel brings the peak up to date only now and then.
            found.peak_rss_mib = max(found.peak_rss_mib, found.rss_at_first_tenth_mib, found.rss_at_end_mib)
        return found

    def _durations(self) -> list[tuple[int, float]]:
        """How many decisions took how many seconds together."""
        match self._workload.decision:
            case "gang":  # a batch is a gang
                return [(1, seconds) for _, seconds in self._batches]
            case "preemption":  # from the arrival to the victims
                return self._cycles
            case "admission" | "consolidation":
                return [(1, seconds) for _, seconds in self._cycles]
        return self._batches or self._cycles  # where shares decide on turns, a cycle is what can be timed

    def _rate(self, count: int) -> float:
        return round(count / self.seconds, 1) if self.seconds else 0.0


def percentile(durations: list[tuple[int, float]], share: float) -> float:
    """Microseconds a decision, over all decisions."""
    each = sorted((seconds / count, count) for count, seconds in durations if count)
    wanted = share * sum(count for _, count in each)
    reached = 0
    for single, count in each:
        reached += count
        if reached >= wanted:
            return single * 1e6
    return 0.0


def _rss_mib() -> int:
    """The memory in use now; the peak where that is not known."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak_rss_mib()
    return pages * resource.getpagesize() // (1024 * 1024)


def peak_rss_mib() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak // (1024 * 1024 if sys.platform == "darwin" else 1024))
