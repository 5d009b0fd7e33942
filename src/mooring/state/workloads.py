"""Workloads that queue: how far each has come, what it holds, and what must outlive whatever is derived from that.

    OUTSIDE --> WAITING --> RESERVED --> ADMITTED --> DONE
       ^          ^             |            |
       |          |             +--LEAVING<--+
       +------ BACKOFF <-----------+

A workload outside is in no line: its queue is missing or stopped, or it is deactivated. A reserved one holds quota and
waits for admission checks. One that is leaving was told to stop, and holds its quota until its pods are gone.

Admission decides on them (`actions/admit`). Its lines, its ledger and its plans are derived from the records, and can
be made anew from them at any moment.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from mooring.model.api.kueue import Workload
from mooring.model.api.kueue_workload import EVICTED
from mooring.model.api.pods import Pod, Toleration
from mooring.model.decisions import PodSetFlavors
from mooring.model.keys import PodKey, WorkloadKey
from mooring.model.queued.workloads import QueuedWorkload
from mooring.state.quota_tree import FlavorResource
from mooring.state.undo import UndoLog

PODS_READY_TIMEOUT, ADMISSION_CHECK = "PodsReadyTimeout", "AdmissionCheck"
MOST_FAULTS = 5
"""So often something may raise in a workload's turn before it is left alone until a node or an object changes."""


class Condition(NamedTuple):
    """Why a workload waits, as its QuotaReserved condition says it."""

    reason: str
    message: str


NO_CONDITION = Condition("", "")


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
    flavor_terms: dict[str, tuple[dict[str, str], list[Toleration]]] = field(default_factory=dict)
    """By pod set, the node labels and tolerations that its flavors gave to the pods which were let go since it was
    admitted. Pods that come later get the same, as Kueue writes them into the job: a flavor may change meanwhile."""
    is_refused: bool = False
    """The world did not take that it is to stop: it holds its quota until the world itself says that it has none."""
    admitted_in_run: int = 0
    """In which run of the action it was last given quota."""
    holds: Any = None
    """The quota that it holds, as admission counts it (`AdmittedWorkload`); None if it holds none."""
    told_ends: frozenset[float] = frozenset()
    """The moments at which it was told that it will lose its quota."""
    is_unread: bool = False
    """Something raised while it was taken in: nothing is known of it but that it is there."""
    noted_in: int = 0
    """For which trial it was last noted what it had been before."""
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
        """All that may have to be undone."""
        return *_values_of(self), dict(self.held_pods), set(self.let_go)

    def restore(self, values: tuple[Any, ...]) -> None:
        """Be again what it was when the values were taken."""
        *before, self.held_pods, self.let_go = values
        for name, value in zip(_UNDONE, before, strict=True):
            setattr(self, name, value)


_UNDONE = tuple(
    found.name for found in fields(WorkloadRecord) if found.name not in ("held_pods", "let_go", "key", "noted_in")
)
_values_of = attrgetter(*_UNDONE)


class _Failed(NamedTuple):
    times: int
    until: float
    message: str
    workload: object
    """What the world said of it then."""
    moment: object
    """What the world said of nodes and objects then."""


class SetAside:
    """The workloads that are left alone because something raised in their turns, and until when.

    That is not undone with what they had done.
    """

    def __init__(self) -> None:
        self._failed: dict[WorkloadKey, _Failed] = {}
        self._aside: set[WorkloadKey] = set()
        """Those of them that are left alone; the others have come back, and not got through yet."""
        self.unread: set[WorkloadKey] = set()
        """Those of whom it is not known what they are: something raised while they were taken in."""

    def __contains__(self, key: object) -> bool:
        return key in self._aside

    def set_aside(
        self, key: WorkloadKey, message: str, until_after: Callable[[int], float], *, workload: object, moment: object
    ) -> None:
        """Something raised in the turn of a workload; `until_after` says until when after so many times."""
        known = self._failed.get(key)
        times = 1 if known is None else known.times + 1
        until = math.inf if times >= MOST_FAULTS else until_after(times)
        self._failed[key] = _Failed(times, until, message, workload, moment)
        self._aside.add(key)

    def message(self, key: WorkloadKey) -> str:
        return self._failed[key].message

    def take_due(self, now: float, workloads: Mapping[WorkloadKey, object], moment: object) -> list[WorkloadKey]:
        """Who is to be tried again: its backoff is over, or it is another than then; of those that are left alone for
        good, also if nodes or objects are."""
        due = []
        for key in self._aside:
            failed = self._failed[key]
            is_helped = failed.until == math.inf and failed.moment != moment
            if failed.until <= now or is_helped or workloads.get(key) is not failed.workload:
                due.append(key)
        self._aside.difference_update(due)
        self.unread.difference_update(due)
        return sorted(due)

    def forget(self, keys: Iterable[WorkloadKey]) -> None:
        """These got through, or are gone."""
        for key in keys:
            self._failed.pop(key, None)
            self._aside.discard(key)
            self.unread.discard(key)

    def keep_unread(self, key: WorkloadKey) -> None:
        """Note that a workload could not even be taken in."""
        self.unread.add(key)

    def come_back(self) -> list[WorkloadKey]:
        """Those who were set aside, and are not any more."""
        return [key for key in self._failed if key not in self._aside]

    @property
    def next(self) -> float | None:
        """When somebody comes back though nothing happens."""
        times = [self._failed[key].until for key in self._aside]
        return min((time for time in times if time < math.inf), default=None)


Key = TypeVar("Key")
Value = TypeVar("Value")


class Logged(dict[Key, Value], Generic[Key, Value]):
    """A mapping whose changes stand when a trial inside the run of admission is undone, and are undone with the run."""

    def __init__(self, log: UndoLog) -> None:
        super().__init__()
        self._log = log

    def __setitem__(self, key: Key, value: Value) -> None:
        self._note(key)
        super().__setitem__(key, value)

    def put(self, key: Key, value: Value) -> None:
        """Let a key have a value."""
        self[key] = value

    def take_out(self, key: Key) -> Value | None:
        """Take a key out; its value, if there was any."""
        if key not in self:
            return None
        self._note(key)
        return super().pop(key)

    def _note(self, key: Key) -> None:
        self._log.note_standing(self._put_back, key, key in self, self.get(key))

    def _put_back(self, key: Key, was_there: bool, value: Value) -> None:
        if was_there:
            super().__setitem__(key, value)
        else:
            super().pop(key, None)


class HeldQuota(NamedTuple):
    """Quota that is held for a workload for whose sake others were preempted."""

    queue: str
    usage: Mapping[FlavorResource, int]
    victims: tuple[Any, ...]
    """Who goes for it, as admission knows them."""
    queue_order: tuple[int, float, str]


class Average(NamedTuple):
    """What was used over time: averages as they were at a moment, and amounts as they have been since."""

    since: float
    averages: Mapping[str, float]
    amounts: Mapping[str, float]


class WorkloadTable:
    """The records of all workloads, and what admission has to remember besides."""

    def __init__(self, log: UndoLog) -> None:
        self.log = log
        self.records: dict[WorkloadKey, WorkloadRecord] = {}
        self.run = 1
        """The number of the run of admission that goes on, or comes next."""
        self.position = 0
        """How far what happened to workloads has been followed (`TenantTable.touched`)."""
        self.preemptors: Logged[str, WorkloadKey] = Logged(log)
        """By ClusterQueue, the workload that others were preempted for: it goes first there."""
        self.held_quota: Logged[WorkloadKey, HeldQuota] = Logged(log)
        self.used: Logged[str, Average] = Logged(log)
        """By LocalQueue, what was used over time, where that counts."""
        self.borrowed: Logged[tuple[bool, str], Average] = Logged(log)
        """By ClusterQueue (True) or cohort, what was borrowed over time, where that counts."""
        self.undone_runs = 0
        """How many runs of admission in a row were undone because something raised."""
        self.run_again_at: float | None = None
        """When to run again after one that was."""
        self.of_age: Logged[str, float] = Logged(log)
        """By ClusterQueue in which a workload was spared because it had just started: when the first of them is not."""
        self.looked_at = -math.inf
        """When shares that move with time were last compared."""
        self.aside = SetAside()
        self.nodes_seen: set[str] = set()
        """The names of all nodes that ever were there: only of these is it known that they are gone."""

    def note(self, record: WorkloadRecord) -> None:
        """A record is about to change: should the run of admission be undone, it is again what it is now."""
        serial = self.log.serial
        if record.noted_in != serial:
            record.noted_in = serial
            self.log.note_standing(record.restore, record.values())

    def change(self, record: WorkloadRecord, **values: object) -> None:
        """Let a record have other values."""
        self.note(record)
        for name, value in values.items():
            setattr(record, name, value)

    def let_go(self, record: WorkloadRecord, pods: Mapping[PodKey, Pod]) -> None:
        """Pods of a workload start; they are given as they were before."""
        self.note(record)
        record.held_pods.update(pods)
        record.let_go.update(pods)

    def hold_back(self, record: WorkloadRecord, key: PodKey) -> Pod | None:
        """A pod of a workload has to wait again; the pod as it was before it was let go, if it was."""
        self.note(record)
        return record.held_pods.pop(key, None)

    def put(self, record: WorkloadRecord) -> None:
        self.log.note_standing(self._put_back, record.key, self.records.get(record.key))
        self.records[record.key] = record

    def remove(self, key: WorkloadKey) -> None:
        self.log.note_standing(self._put_back, key, self.records.pop(key))

    def _put_back(self, key: WorkloadKey, before: WorkloadRecord | None) -> None:
        self.records.pop(key, None)
        if before is not None:
            self.records[key] = before

    def see_nodes(self, names: set[str]) -> set[str]:
        """These nodes are there; all that ever were."""
        self.nodes_seen |= names
        return self.nodes_seen

    def follow_to(self, position: int) -> None:
        """What happened to workloads before this position is known."""
        self.log.note_standing(setattr, self, "position", self.position)
        self.position = position

    def note_run(self) -> None:
        """A run of admission got through."""
        self.undone_runs, self.run_again_at = 0, None

    def note_undone(self, again_after: Callable[[int], float]) -> None:
        """A run of admission was undone, which stands; `again_after` says when to run after so many in a row."""
        self.undone_runs += 1
        self.run_again_at = again_after(self.undone_runs)

    def look_at(self, now: float) -> None:
        """Shares that move with time are compared now."""
        self.log.note_standing(setattr, self, "looked_at", self.looked_at)
        self.looked_at = now

    def end_run(self) -> None:
        """All is decided: what changes from here on belongs to another run."""
        self.run += 1
