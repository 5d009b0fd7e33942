"""Loads for admission: many queues in cohorts, many workloads waiting, the same ones every time.

The mix is that of Kueue's own large-scale suite: of 50 workloads in a queue 35 are small (1 CPU, low priority), 11
medium (5 CPU) and 4 large (20 CPU, high priority), and a queue has 20 CPU of its own and may borrow 100 more.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from mooring.actions.admit.cycle.cycle import Admission
from mooring.model.api.kueue import ANY, LOWER_PRIORITY, ClusterQueue, Workload
from mooring.model.keys import WorkloadKey
from mooring.testing.queueing_builders import make_admission, make_group, make_queue, make_quota, make_workload


class WorkloadClass(NamedTuple):
    """One kind of workload in the mix: how many of a queue's 50, what each asks for, how long it runs."""

    name: str
    share: int
    cpu: int
    priority: int
    cycles: int


MIX = (
    WorkloadClass("small", 35, 1, 50, 1),
    WorkloadClass("medium", 11, 5, 100, 2),
    WorkloadClass("large", 4, 20, 200, 4),
)
_ROUND = [found for found in MIX for _ in range(found.share)]


@dataclass(slots=True)
class Load:
    """Queues and the workloads that wait in them."""

    queues: list[ClusterQueue] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    cycles_of: dict[str, int] = field(default_factory=dict)
    """By workload, how many cycles it runs once admitted."""

    def build(self, *, fair_sharing: bool = True) -> Admission:
        """Admission with everything taken in and nothing decided yet."""
        return make_admission(self.queues, self.workloads, fair_sharing=fair_sharing)


def make_load(
    queues: int,
    cohorts: int,
    workloads: int,
    *,
    nominal_cpu: int = 20,
    borrowing_cpu: int | None = 100,
    reclaim: str = ANY,
    within_queue: str = LOWER_PRIORITY,
    flavors: int = 1,
) -> Load:
    """Spread the queues over the cohorts and the workloads over the queues, round robin."""
    load = Load()
    for number in range(queues):
        quotas = {f"flavor-{index}": make_quota(nominal_cpu, borrowing_limit=borrowing_cpu) for index in range(flavors)}
        cohort = f"cohort-{number % cohorts:03d}"
        name = f"queue-{number:04d}"
        load.queues.append(
            make_queue(name, make_group(**quotas), cohort=cohort, within_queue=within_queue, reclaim=reclaim)
        )
    for number in range(workloads):
        # 17 is coprime to the 50 of a round: the classes of one queue come mixed, not one after another.
        found = _ROUND[number // queues * 17 % len(_ROUND)]
        name, queue = f"{found.name}-{number:06d}", f"queue-{number % queues:04d}"
        workload = make_workload(name, queue=queue, cpu=found.cpu, priority=found.priority, second=number)
        load.workloads.append(workload)
        load.cycles_of[workload.key] = found.cycles
    return load


@dataclass(slots=True)
class LoadResult:
    """What became of a load."""

    cycles: int = 0
    admitted: int = 0
    preempted: int = 0


def run_load(load: Load, admission: Admission, *, most_cycles: int = 10_000) -> LoadResult:
    """Run cycles until nobody is left to try or to finish.

    Admitted workloads run for their number of cycles; victims go at once.
    """
    result = LoadResult()
    ends: dict[int, list[WorkloadKey]] = {}
    runs_until: dict[WorkloadKey, int] = {}
    while (admission.pending.has_heads or runs_until) and result.cycles < most_cycles:
        result.cycles += 1
        report = admission.run_cycle(float(result.cycles))
        result.admitted += len(report.admitted)
        result.preempted += len(report.preempted)
        for admitted in report.admitted:
            runs_until[admitted.workload] = result.cycles + load.cycles_of[admitted.workload]
            ends.setdefault(runs_until[admitted.workload], []).append(admitted.workload)
        for preempted in report.preempted:
            del runs_until[preempted.workload]
        admission.finish_evictions([preempted.workload for preempted in report.preempted])
        done = [key for key in ends.pop(result.cycles, ()) if runs_until.get(key) == result.cycles]
        for key in done:
            del runs_until[key]
        admission.finish(done)
    return result
