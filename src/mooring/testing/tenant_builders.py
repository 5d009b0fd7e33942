"""A small world of tenants: jobs with their pods, and a driver that carries out decisions as they come."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from mooring.actions.admit.action import Admit as AdmitAction
from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.lifecycle.lifecycle import Lifecycle
from mooring.assembly import assemble
from mooring.config.queueing import QueueingSettings
from mooring.config.settings import Settings
from mooring.config.tenant_policy import TenantPolicy
from mooring.drivers.world.pods import made_anew, on_node
from mooring.model.api.kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from mooring.model.api.kueue_labels import ADMISSION_GATE
from mooring.model.api.meta import QuantityText
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, PodStatus
from mooring.model.decisions import Admit, Bind, Decision, Evict, Suspend, Wait
from mooring.model.events import NodeSeen, ObjectSeen, PodLost, PodSeen, Related, WorkloadLost, WorkloadSeen
from mooring.model.keys import PodKey
from mooring.model.queued.workloads import QueuedWorkload
from mooring.state.workloads import Stage
from mooring.testing.builders import make_node, make_pod
from mooring.testing.queueing_builders import make_flavor, make_local_queue, make_pod_set, make_workload


class Job(NamedTuple):
    """A job that queues: its workload, and the pods that wait for it to be admitted."""

    queued: QueuedWorkload
    pods: list[Pod]

    @property
    def key(self) -> str:
        return self.queued.workload.key

    @property
    def workload(self) -> Workload:
        return self.queued.workload


def make_job(
    name: str = "job",
    *,
    queue: str = "queue",
    pods: int = 1,
    min_pods: int | None = None,
    cpu: QuantityText = 1,
    priority: int = 0,
    second: int = 0,
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    max_seconds: int | None = None,
    node_selector: Mapping[str, str] | None = None,
) -> Job:
    """Equal pods behind Kueue's gate, and the workload that they make; created at the given second of the hour."""
    made = [
        make_pod(
            f"{name}-{index}",
            namespace=namespace,
            resources={"cpu": cpu},
            gates=[ADMISSION_GATE],
            node_selector=node_selector,
        )
        for index in range(pods)
    ]
    pod_set = make_pod_set(count=pods, min_count=min_pods, requests={"cpu": cpu}, node_selector=node_selector)
    workload = make_workload(name, pod_set, queue=queue, priority=priority, second=second, namespace=namespace)
    workload.metadata.annotations = dict(annotations) if annotations else None
    workload.spec.maximum_execution_time_seconds = max_seconds
    queued = QueuedWorkload(workload, ("Job", namespace, name), {pod_set.name: [pod.key for pod in made]})
    return Job(queued, made)


class TenantWorld:
    """A scheduler and the world around it: pods are bound, and go, as soon as that is decided."""

    def __init__(
        self,
        queues: Iterable[ClusterQueue],
        jobs: Iterable[Job] = (),
        *,
        nodes: Iterable[Node] | None = None,
        cohorts: Iterable[Cohort] = (),
        flavors: Iterable[ResourceFlavor] | None = None,
        local_queues: Iterable[LocalQueue] | None = None,
        related: Iterable[Related] = (),
        settings: QueueingSettings | None = None,
        policy: TenantPolicy | None = None,
        now: float = 2_000_000_000.0,
    ) -> None:
        """Flavors and local queues that nobody describes are plain ones; nodes, one with room for everything."""
        known = list(queues)
        groups = [group for queue in known for group in queue.spec.resource_groups or ()]
        names = sorted({flavor.name for group in groups for flavor in group.flavors})
        given = Settings(queueing=settings or QueueingSettings(), tenants=policy or TenantPolicy())
        self.scheduler = assemble(given).new_scheduler()
        self.now = now
        self.finishes_evictions = True
        """Whether pods go at once when they are evicted; else `let_go` says when."""
        self._leaving: list[Pod] = []
        self._given: dict[str, Pod] = {}
        self._made_anew: Counter[str] = Counter()
        self._finished = set[str]()
        self.show(
            *cohorts,
            *(flavors if flavors is not None else [make_flavor(name) for name in names]),
            *known,
            *(local_queues if local_queues is not None else [make_local_queue(queue.metadata.name) for queue in known]),
            *related,
        )
        for node in nodes if nodes is not None else [make_node("node", cpu=10_000, pods=100_000)]:
            self.scheduler.handle(NodeSeen(node))
        for job in jobs:
            self.submit(job)

    # What happens.

    def show(self, *objects: Related) -> None:
        self.scheduler.handle(*(ObjectSeen(found) for found in objects))

    def submit(self, job: Job) -> None:
        self._given.update((pod.key, pod) for pod in job.pods)
        self.scheduler.handle(*(PodSeen(pod) for pod in job.pods), WorkloadSeen(job.queued))

    def see(self, job: Job, **changes: object) -> Job:
        """Let the world show a job's workload with other parts: spec or status."""
        queued = replace_workload(job.queued, **changes)
        self.scheduler.handle(WorkloadSeen(queued))
        return job._replace(queued=queued)

    def delete(self, job: Job) -> None:
        self.scheduler.handle(WorkloadLost(job.key), *(PodLost(pod.key) for pod in job.pods))

    def succeed(self, *keys: str) -> None:
        """Let pods finish well."""
        self._finished.update(keys)
        for key in keys:
            pod = self.scheduler.cluster.pods.records[PodKey(key)].pod
            self.scheduler.handle(PodSeen(replace(pod, status=PodStatus(phase="Succeeded"))))

    def lose(self, *keys: str) -> None:
        """Let pods disappear."""
        self.scheduler.handle(*(PodLost(key) for key in keys))

    def cycle(self, seconds: float = 0.0) -> list[Decision]:
        """Let time pass, decide, and carry the decisions out."""
        self.now += seconds
        decisions = self.scheduler.cycle(self.now)
        for decision in decisions:
            if isinstance(decision, Bind):
                pod = self.scheduler.cluster.pods.records[PodKey(decision.pod)].pod
                bound = on_node(pod, decision.node, pod.status, decision.annotations, decision.labels)
                self.scheduler.handle(PodSeen(bound))
            elif isinstance(decision, Evict):
                self._leaving.append(self.scheduler.cluster.pods.records[PodKey(decision.pod)].pod)
        if self.finishes_evictions:
            self.let_go()
        return decisions

    def let_go(self) -> None:
        """Pods that were evicted are gone, and their jobs make new ones of those that had not finished before."""
        for pod in self._leaving:
            if pod.key not in self._finished:
                self._made_anew[pod.key] += 1
                again = made_anew(self._given.get(pod.key, pod), self._made_anew[pod.key])
                self.scheduler.handle(PodLost(pod.key), PodSeen(again))
        self._leaving.clear()

    def settle(self, most: int = 20) -> list[Decision]:
        """Run cycles until one decides nothing, at the same moment."""
        decisions: list[Decision] = []
        for _ in range(most):
            made = self.cycle()
            decisions += made
            if not any(isinstance(found, Admit | Suspend | Bind | Evict) for found in made):
                break
        return decisions

    def renew_admission(self) -> None:
        """Throw the action away, with all that is derived from the state, and go on with a new one."""
        before = self.action
        renewed = AdmitAction(before._profiles, before._settings, before._policy, before._rehearse)
        self.scheduler.actions = tuple(renewed if found is before else found for found in self.scheduler.actions)

    # What is.

    @property
    def action(self) -> AdmitAction:
        return next(action for action in self.scheduler.actions if isinstance(action, AdmitAction))

    @property
    def lifecycle(self) -> Lifecycle:
        lifecycle = self.action.lifecycle
        assert lifecycle is not None, "nothing has queued yet"
        return lifecycle

    @property
    def admission(self) -> Admission:
        return self.lifecycle.admission

    def in_stage(self, stage: Stage) -> list[str]:
        """The names of the workloads in a stage, in order of their names."""
        workloads = self.lifecycle.workloads.values()
        return sorted(queued.workload.metadata.name for queued in workloads if queued.stage is stage)

    def running(self) -> list[str]:
        """The names of the pods that have a node."""
        records = self.scheduler.cluster.pods.records.values()
        return sorted(record.pod.metadata.name for record in records if record.node_name)


def replace_workload(queued: QueuedWorkload, **changes: object) -> QueuedWorkload:
    """A workload whose workload has other parts."""
    return QueuedWorkload(replace(queued.workload, **changes), queued.owner_key, queued.pods)


def admitted(decisions: Sequence[Decision]) -> list[str]:
    """The workloads that may start, in order; those that wait for checks are not among them."""
    return [_name(found.workload) for found in decisions if isinstance(found, Admit) and not found.pending_checks]


def suspended(decisions: Sequence[Decision]) -> list[tuple[str, str]]:
    """The workloads that must stop, and why."""
    return [(_name(found.workload), found.reason) for found in decisions if isinstance(found, Suspend)]


def waits(decisions: Sequence[Decision]) -> dict[str, str]:
    """By pod that was told to wait, what it was told last."""
    return {_name(found.pod): found.message for found in decisions if isinstance(found, Wait)}


def _name(key: str) -> str:
    return key.partition("/")[2]
