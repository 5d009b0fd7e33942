"""Loads for admission: many queues in cohorts, many workloads waiting, the same ones every time.

The mix is that of Kueue's own large-scale suite: of 50 workloads in a queue 35 are small (1 CPU, low priority), 11
medium (5 CPU) and 4 large (20 CPU, high priority), and a queue has 20 CPU of its own and may borrow 100 more.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from mooring.actions.admit.cycle import Admission
from mooring.actions.admit.structure import Structure
from mooring.model.meta import LabelSelector, ObjectMeta
from mooring.model.pods import Container, PodSpec, PodTemplateSpec, ResourceRequirements
from mooring.model.queueing import (
    ANY,
    LOWER_PRIORITY,
    ClusterQueue,
    ClusterQueueSpec,
    FlavorQuotas,
    LocalQueue,
    LocalQueueSpec,
    PodSet,
    QueuePreemption,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Workload,
    WorkloadSpec,
)


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
    local_queues: list[LocalQueue] = field(default_factory=list)
    flavors: list[ResourceFlavor] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    cycles_of: dict[str, int] = field(default_factory=dict)
    """By workload, how many cycles it runs once admitted."""

    def build(self, *, fair_sharing: bool = True) -> Admission:
        """Admission with everything taken in and nothing decided yet."""
        structure = Structure(self.queues, flavors=self.flavors)
        admission = Admission(structure, local_queues=self.local_queues, fair_sharing=fair_sharing)
        for workload in self.workloads:
            admission.add(workload)
        return admission


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
    names = [f"flavor-{number}" for number in range(flavors)]
    load = Load(flavors=[ResourceFlavor(metadata=ObjectMeta(name=name)) for name in names])
    for number in range(queues):
        name = f"queue-{number:04d}"
        quotas = [
            FlavorQuotas(
                name=flavor,
                resources=[ResourceQuota(name="cpu", nominal_quota=nominal_cpu, borrowing_limit=borrowing_cpu)],
            )
            for flavor in names
        ]
        spec = ClusterQueueSpec(
            cohort_name=f"cohort-{number % cohorts:03d}",
            namespace_selector=LabelSelector(),
            resource_groups=[ResourceGroup(covered_resources=["cpu"], flavors=quotas)],
            preemption=QueuePreemption(within_cluster_queue=within_queue, reclaim_within_cohort=reclaim),
        )
        load.queues.append(ClusterQueue(metadata=ObjectMeta(name=name), spec=spec))
        local = LocalQueueSpec(cluster_queue=name)
        load.local_queues.append(LocalQueue(metadata=ObjectMeta(name=name, namespace="default"), spec=local))
    for number in range(workloads):
        _add_workload(load, number, queues)
    return load


def _add_workload(load: Load, number: int, queues: int) -> None:
    # 17 is coprime to the 50 of a round, so the classes of one queue are mixed and not submitted one after another.
    found = _ROUND[number // queues * 17 % len(_ROUND)]
    minutes, seconds = divmod(number % 3600, 60)
    metadata = ObjectMeta(
        name=f"{found.name}-{number:06d}",
        namespace="default",
        uid=f"{number:012d}",
        creation_timestamp=f"2025-06-01T{number // 3600 % 24:02d}:{minutes:02d}:{seconds:02d}Z",
    )
    container = Container(name="main", resources=ResourceRequirements(requests={"cpu": found.cpu}))
    pods = PodSet(template=PodTemplateSpec(spec=PodSpec(containers=[container])), count=1)
    spec = WorkloadSpec(pod_sets=[pods], queue_name=f"queue-{number % queues:04d}", priority=found.priority)
    workload = Workload(metadata=metadata, spec=spec)
    load.workloads.append(workload)
    load.cycles_of[workload.key] = found.cycles


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
    ends: dict[int, list[str]] = {}
    runs_until: dict[str, int] = {}
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
