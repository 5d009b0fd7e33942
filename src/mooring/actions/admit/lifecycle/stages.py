"""Workloads on their way: from the line to quota, from quota to running, and back.

    OUTSIDE --> WAITING --> RESERVED --> ADMITTED --> DONE
       ^          ^             |            |
       |          |             +--LEAVING<--+
       +------ BACKOFF <-----------+

A workload outside is in no line: its queue is missing or stopped, or it is deactivated. A reserved one holds quota and
waits for admission checks. One that is leaving was told to stop, and holds its quota until its pods are gone.
"""

from dataclasses import dataclass, field, fields
from enum import Enum
from operator import attrgetter

from mooring.actions.admit.lifecycle.conditions import NO_CONDITION, Condition
from mooring.actions.admit.workload_info import ADMISSION_CHECK, PODS_READY_TIMEOUT, AdmittedWorkload
from mooring.model.api.kueue import Workload
from mooring.model.api.kueue_workload import EVICTED
from mooring.model.api.pods import Pod
from mooring.model.decisions import PodSetFlavors
from mooring.model.keys import PodKey, WorkloadKey
from mooring.model.queued.workloads import QueuedWorkload

CLUSTER_QUEUE_STOPPED, LOCAL_QUEUE_STOPPED = "ClusterQueueStopped", "LocalQueueStopped"
DEACTIVATED = "Deactivated"


class Stage(Enum):
    """How far a workload has come."""

    OUTSIDE = "outside"
    BACKOFF = "backoff"
    WAITING = "waiting"
    RESERVED = "reserved"
    ADMITTED = "admitted"
    LEAVING = "leaving"
    DONE = "done"


HOLDING = frozenset({Stage.RESERVED, Stage.ADMITTED, Stage.LEAVING})
"""The stages in which a workload holds quota."""
WITHOUT_QUOTA = frozenset({Stage.OUTSIDE, Stage.BACKOFF, Stage.WAITING})
"""Those in which it may yet get some."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """Why a workload had to stop, and when it was told."""

    reason: str
    message: str
    at: float
    preemptor: str = ""


@dataclass(slots=True, eq=False)
class WorkloadRecord:
    """A workload and what has become of it so far."""

    queued: QueuedWorkload
    stage: Stage = Stage.OUTSIDE
    condition: Condition = NO_CONDITION
    """Why it waits."""
    told: Condition = NO_CONDITION
    """What was last said of that."""
    pod_sets: tuple[PodSetFlavors, ...] = ()
    """What it was given, while it holds quota."""
    eviction: Eviction | None = None
    admitted_at: float = 0.0
    is_ready: bool = False
    ready_by: float | None = None
    stop_by: float | None = None
    """When it has run for as long as it may."""
    past_seconds: float = 0.0
    """How long it ran before it was last evicted."""
    requeue_count: int = 0
    """How often it was evicted because its pods did not get ready."""
    requeue_at: float | None = None
    is_deactivated: bool = False
    """By us; the world is yet to say so itself."""
    outdated_checks: QueuedWorkload | None = None
    """What the world said before the last eviction: the checks in it are to be passed again."""
    held_pods: dict[PodKey, Pod] = field(default_factory=dict)
    """The pods that were let go, as they were before: they go back to that when they have to wait again."""
    let_go: set[PodKey] = field(default_factory=set)
    """The pods that were let go since it was admitted."""
    is_refused: bool = False
    """The world did not take that it is to stop: it holds its quota until the world itself says that it has none."""
    admitted_in_run: int = 0
    """In which run of the action it was last given quota."""
    holds: AdmittedWorkload | None = None
    """The quota that it holds: what lines and ledger are made from, should they have to be made anew."""
    is_unread: bool = False
    """Something raised while it was taken in: nothing is known of it but that it is there."""
    noted_in: int = 0
    """In which run it was last noted what it had been before."""
    key: WorkloadKey = field(init=False)
    """namespace/name of its workload"""

    def __post_init__(self) -> None:
        self.key = self.queued.workload.key

    @property
    def workload(self) -> Workload:
        return self.queued.workload

    @property
    def is_holding(self) -> bool:
        return self.stage in HOLDING

    @property
    def was_evicted(self) -> bool:
        """Whether it had to give its quota back, and has none again."""
        is_known = self.eviction is not None or self.workload.condition(EVICTED) is not None
        return is_known and self.stage in (Stage.OUTSIDE, Stage.BACKOFF, Stage.WAITING)

    @property
    def is_still_admitted(self) -> bool:
        """Whether it could not be stopped, and has its quota as far as the world says."""
        return self.is_refused and self.workload.status.admission is not None

    @property
    def local_queue(self) -> str:
        workload = self.workload
        return f"{workload.metadata.namespace}/{workload.spec.queue_name}"

    @property
    def queued_since(self) -> float | None:
        """From when it stands in line if not from its creation: evictions of some kinds cost it its place."""
        if self.eviction is None or self.eviction.reason not in (PODS_READY_TIMEOUT, ADMISSION_CHECK):
            return None
        return self.eviction.at

    def flavors(self) -> set[str]:
        return {flavor for pods in self.pod_sets for flavor in pods.flavors.values()}

    def values(self) -> tuple[object, ...]:
        """All that a run may have to take back."""
        return _values_of(self)

    def restore(self, values: tuple[object, ...]) -> None:
        for name, value in zip(_TAKEN_BACK, values, strict=True):
            setattr(self, name, value)


_FOLLOW_THE_PODS = ("held_pods", "let_go")
"""What became of pods is not taken back: they are brought in line with the stage again."""
_TAKEN_BACK = tuple(
    found.name for found in fields(WorkloadRecord) if found.name not in (*_FOLLOW_THE_PODS, "key", "noted_in")
)
_values_of = attrgetter(*_TAKEN_BACK)
