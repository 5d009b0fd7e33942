"""One cycle of the scheduler: the main flow.

Events come in, decisions go out. Everything a cycle may do is an action; which actions run, and in which order, is the
literal list in `mooring.actions`.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TypeVar

from mooring.engine.action import Action, Cycle, Deadline, Fault, Section
from mooring.engine.binding import unreserve
from mooring.engine.disruption import withdraw
from mooring.engine.follow_up import follow_up
from mooring.engine.plugin import Change, Changed
from mooring.engine.profile import Profile
from mooring.engine.queue.backoff import Backoff
from mooring.engine.queue.queue import Queue, Turn
from mooring.engine.queue.shared import SharedQueues
from mooring.errors import PluginError, TurnFailed
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict, Launch, PodDecision, Resize, Suspend, Terminate, Wait
from mooring.model.events import (
    Event,
    Failed,
    GangLost,
    GangSeen,
    NodeLoadLost,
    NodeLoadSeen,
    NodeLost,
    NodeSeen,
    ObjectLost,
    ObjectSeen,
    PodLost,
    PodSeen,
    Related,
)
from mooring.model.keys import GangKey, PodKey
from mooring.model.loading.manifests import Manifests
from mooring.model.memory import Memory, moment
from mooring.state.cluster import Cluster
from mooring.state.loading import populate
from mooring.state.plans import Plan
from mooring.state.pods import UNBOUND, PodRecord
from mooring.state.related import object_key
from mooring.state.shapes import Shape

S = TypeVar("S", bound=Section)

MANY = 64
"""So many events at a time are worth looking for pods that can be taken in at once."""
CATCH_UP = "CatchUp"
"""The step of a cycle in which it takes in what happened."""
FOLLOW_UP = "FollowUp"
"""The step after that, before all actions."""


class Scheduler:
    """The engine as drivers see it: `handle` what happened, `cycle` to decide, `next_wake` for when to call again."""

    def __init__(
        self,
        cluster: Cluster,
        profiles: Mapping[str, Profile],
        make_actions: Callable[[], Sequence[Action]],
        backoff: Backoff | None = None,
    ) -> None:
        self.cluster = cluster
        self.profiles = profiles
        self._make_actions = make_actions
        self._backoff = backoff
        self.faults: list[Fault] = []
        """What has raised, until `take_faults`."""
        self.on_step: Callable[[str], None] | None = None
        """Told each step of a cycle as it begins, by the name of its action, and at the end that there is no more."""
        self.new_deadline: Callable[[], Deadline] | None = None
        """Makes the deadline for one run of an action: the driver has the clock, the engine has none."""
        self._arrived: list[Event] = []
        self._recalled: Memory | None = None
        """What another one remembered, until the first cycle."""
        self._now = 0.0
        """The time of the last cycle."""
        self._underway: list[tuple[PodKey, str, str]] = []
        self._later: list[tuple[float, Failed]] = []
        """Refused decisions that would be made again at once, and when they may be."""
        self.rebuild()

    def rebuild(self) -> None:
        """Make the actions and the queue anew from the state. Between cycles this changes no decision: what decides is
        in the state, and what actions and the queue keep besides is derived from it."""
        cluster = self.cluster
        cluster.forget_watchers()
        self.actions: Sequence[Action] = self._make_actions()
        self.shared = shared = SharedQueues([family for action in self.actions for family in action.families])
        self.queue = Queue(
            cluster.gangs, self._backoff, lambda turn: shared.of_turn(cluster, turn) is not None, cluster.waiting
        )
        self.queue.now = self._now
        if self._recalled is not None:
            self.recall(self._recalled)
        for action in self.actions:
            action.resume(cluster, self._now)

    def handle(self, *events: Event) -> None:
        """Take note of what happened; the next cycle acts on it."""
        self._arrived.extend(events)

    @property
    def has_news(self) -> bool:
        """Whether anything happened that no cycle has acted on yet."""
        return bool(self._arrived)

    def load(self, manifests: Manifests, now: float = math.inf) -> None:
        """Take in a whole cluster at once; pods queue since they were created, those that do not say since now."""
        populate(self.cluster, manifests)
        for pod in manifests.pods:
            created = timestamp_seconds(pod.metadata.creation_timestamp)
            self._enqueue(pod.key, now if created is None else created)

    def cycle(self, now: float, *, at_most: int = 2**31) -> list[Decision]:
        """Decide what can be decided now, for at most so many pods; call again while the queue is not empty."""
        cycle = Cycle(self.cluster, self.queue, now, at_most, self.faults)
        tell = self.on_step or (lambda step: None)
        # 1. Apply the events that arrived; put back what they may unblock.
        tell(CATCH_UP)
        self.catch_up(now)
        # 2. Carry on what was planned before: bind the pods that room was made for, before any other pod has it.
        tell(FOLLOW_UP)
        decisions = follow_up(cycle, is_first=True)
        # 3. Admit, place, preempt: each action in its turn, least disruptive first.
        for action in self.actions:
            tell(type(action).__name__)
            if self._is_due(action, now) and not action.is_idle(cycle):
                decisions = _with_last_words(decisions, self._run(action, cycle))
        tell("")
        decisions = _with_last_words(decisions, _taken_waits(cycle))
        # 4. The decisions are assumed already; the driver carries them out and reports what became of them.
        return _with_last_words(decisions, self._say_who_is_kept_out())

    def catch_up(self, now: float) -> None:
        """Take in what arrived, and decide nothing: the first step of a cycle, or all that is left to do before another
        scheduler goes on."""
        self.queue.now = self._now = now
        arrived, self._arrived = self._arrived, []
        at, many_at = 0, 0 if len(arrived) >= MANY else len(arrived)
        while at < len(arrived):
            if at >= many_at:
                taken = self._see_running(arrived, at)
                at += taken
                many_at = at if taken >= MANY else at + MANY
                continue
            try:
                self._apply(arrived[at], now)
            except Exception as error:  # what else happened is known all the same
                self.faults.append(Fault(_about(arrived[at]), error))
            at += 1
        if self.cluster.pass_time(now):
            self.queue.note(Change.NODE_LOAD)
        self._apply_later(now)
        self.queue.advance(now)
        self._let_in(now)
        self._recalled = None
        self._leave_to_others()

    def next_wake(self, now: float) -> float | None:
        """When to call `cycle` again even if nothing happens; None if there is no need to."""
        times = [action.next_wake(self.cluster, now) for action in self.actions]
        times.append(self.queue.next_wake(now))
        times += [plan.until for _, plan in self.cluster.plans()]
        ran = self.cluster.last_runs
        times += [ran.get(one.name, now) + one.every_seconds for one in self.actions if one.every_seconds]
        times += [at for at, _ in self._later]
        if self.cluster.nodes.load.horizons:
            times.append(self.cluster.nodes.load.next_stale(now))
        return min((time for time in times if time is not None and time > now), default=None)

    def take_faults(self) -> list[Fault]:
        """What has raised since this was last asked: in whose turn, and which plugin."""
        faults = self.faults[:]
        self.faults.clear()
        return faults

    def explain(self, turn: Turn, now: float) -> str:
        """What the actions would do for somebody who waits, as things stand; nothing is decided."""
        cycle = Cycle(self.cluster, self.queue, now)
        return " ".join(filter(None, (action.explain(cycle, turn) for action in self.actions)))

    def sections(self, kind: type[S], now: float = 0.0) -> list[S]:
        """What the actions show of themselves that show something of this kind."""
        cycle = Cycle(self.cluster, self.queue, now)
        shown = (action.report(cycle) for action in self.actions)
        return [section for section in shown if isinstance(section, kind)]

    def remembered(self) -> Memory:
        """What must outlive this scheduler, and cannot be found out from the objects of a cluster."""
        if self._recalled is not None:
            return self._recalled
        short_since = self.cluster.gang_starts.short_since
        memory = Memory(
            preemptions=self.cluster.preemptions.remembered(),
            gangs_waiting_since=self.queue.gangs.waiting_since(),
            gangs_short_since={key: moment(since) for key, since in sorted(short_since.items())},
        )
        for action in self.actions:
            action.remember(memory)
        return memory

    def recall(self, memory: Memory) -> None:
        """Go on from what another one remembered: to be called before the first cycle."""
        self._recalled = memory
        self.queue.gangs.recall(memory.gangs_waiting_since)
        self.cluster.gang_starts.recall(memory.gangs_short_since)
        self.cluster.preemptions.recall(memory.preemptions)
        for action in self.actions:
            action.recall(memory)

    def underway(self) -> list[tuple[PodKey, str, str]]:
        """The pods that have a place which the world has not confirmed: key, uid and node of each."""
        return [
            (record.key, record.pod.metadata.uid, record.node_name)
            for record in self.cluster.pods.records.values()
            if record.assumed and not record.nominated
        ]

    def take_over(self, underway: Iterable[tuple[PodKey, str, str]]) -> None:
        """Count pods that are being bound by what another one decided as those that we are binding ourselves."""
        self._underway = list(underway)

    def _leave_to_others(self) -> None:
        """Let pods have the places that they are being bound to, as far as they and their nodes are still there."""
        underway, self._underway = self._underway, []
        for key, uid, node in underway:
            record, row = self.cluster.pods.records.get(key), self.cluster.nodes.row_of.get(node)
            if record is None or row is None or record.pod.metadata.uid != uid or record.node_name:
                continue
            self.queue.remove(key)
            self.cluster.assume(key, row)

    def _run(self, action: Action, cycle: Cycle) -> list[Decision]:
        """Run one action. What raises in somebody's turn is dealt with there; what raises elsewhere costs the action
        this cycle: what it had changed is undone, and the others go on."""
        decisions: list[Decision] = []
        cycle.deadline = None if self.new_deadline is None else self.new_deadline()
        with cycle.attempt() as attempt:
            decisions = action.run(cycle)
            attempt.keep()
        if attempt.error is not None:
            decisions = []
            self.faults.append(_fault_of(action, attempt.error))
            self._queue_anew(cycle.now)
        return _with_last_words(decisions, _taken_waits(cycle))

    def _is_due(self, action: Action, now: float) -> bool:
        """Whether an action with a cadence of its own is to run now; others always are."""
        if not action.every_seconds:
            return True
        last = self.cluster.last_runs.get(action.name)
        if last is not None and now < last + action.every_seconds:
            return False
        self.cluster.note_run(action.name, now)
        return True

    def _queue_anew(self, now: float) -> None:
        """After something raised in the middle of an action: everybody is in the queue whom the state shows waiting."""
        queue, records = self.queue, self.cluster.pods.records
        queue.put_back_taken()
        for key in [key for key in queue.nominated if self.cluster.plan_of(key) is None]:
            del queue.nominated[key]
        for plan_id, plan in list(self.cluster.plans()):
            try:
                self._set_aside(plan, now)
            except PluginError:  # of the queue's order: its pods are let in again as far as that goes
                self.cluster.drop(plan_id, now)
        for record in list(records.values()):
            self._enqueue(record.key, now)

    def _set_aside(self, plan: Plan, now: float) -> None:
        """Let pods that hold rows wait for no turn."""
        for pod in plan.holds:
            record = self.cluster.pods.records.get(pod.key)
            profile = self.profiles.get(record.pod.spec.scheduler_name) if record is not None else None
            if record is not None and profile is not None and pod.key not in self.queue.nominated:
                self.queue.nominated[pod.key] = self.queue.make_entry(record, profile, now)

    def _let_in(self, now: float) -> None:
        """Try those again whom a plugin kept from the queue by raising."""
        for key in self.queue.kept_out(now):
            self._enqueue(key, now)

    def _say_who_is_kept_out(self) -> list[Decision]:
        """What a plugin raised that was to let a pod into the queue, for the driver and for the pod."""
        faults = [Fault(key, error) for key, error in self.queue.take_failed()]
        self.faults += faults
        return [Wait(PodKey(fault.turn), fault.message, (fault.plugin,)) for fault in faults]

    def _apply(self, event: Event, now: float) -> None:
        if isinstance(event, PodSeen):
            self._see_pod(event, now)
            return
        if isinstance(event, PodLost):
            self._lose_pod(event)
            return
        cluster = self.cluster
        if isinstance(event, Failed):
            self._take_back(event, now)
            return
        versions = (cluster.nodes_version, cluster.gangs.version)
        objects = (cluster.related.version, cluster.tenants.version, cluster.devices.version)
        old = self._known(event)
        cluster.observe(event)
        match event:
            case NodeSeen() | NodeLost():
                if cluster.nodes_version != versions[0]:  # a heartbeat helps nobody
                    self._note(Change.NODE, old, event.node if isinstance(event, NodeSeen) else None)
            case ObjectLost("NodeClaim", key) if cluster.is_launching(key):
                self._give_up_launch(key)
            case ObjectSeen() | ObjectLost():
                if (
                    cluster.related.version,
                    cluster.tenants.version,
                    cluster.devices.version,
                ) != objects:  # nor does a count in a status
                    self._note(Change.RELATED, old, event.object if isinstance(event, ObjectSeen) else None)
                self._see_claimants(event, now)
            case NodeLoadSeen() | NodeLoadLost():
                self._note(Change.NODE_LOAD, None, None)
            case GangSeen(gang) if cluster.gangs.version != versions[1]:
                self.queue.gang_changed(gang.key)
            case GangLost(key) if cluster.gangs.version != versions[1]:
                self.queue.gang_changed(GangKey(key))

    def _take_back(self, failed: Failed, now: float) -> None:
        """The world refused a decision: undo what was assumed, and let the pods wait again that this concerns.

        What would be decided again at once waits for `retry_after`. A pod that was not bound gives its room back now,
        and a workload that could not be suspended holds its quota again now: others must not be given it.
        """
        decision = failed.decision
        if isinstance(decision, Launch | Terminate | Resize):
            self._give_up(decision)
            return
        if failed.retry_after > 0 and not isinstance(decision, Bind | Suspend):
            self._later.append((now + failed.retry_after, replace(failed, retry_after=0.0)))
            return
        if isinstance(decision, Bind):
            self._give_back(PodKey(decision.pod))
        self.cluster.observe(failed)
        if isinstance(decision, Bind):
            key = PodKey(decision.pod)
            self.queue.remove(key)
            if failed.retry_after > 0:
                self.queue.hold_back(key, now + failed.retry_after, failed.message)
            self._enqueue(key, now)
        if isinstance(decision, Bind | Evict):
            self.queue.note(Change.POD_GONE)  # for the pod that was to have its room, another may have to go

    def _give_up(self, decision: Launch | Terminate | Resize) -> None:
        """Give up the plan that a refused decision was part of: the setback says when it may be tried again."""
        plan_id = self.cluster.plan_for(decision)
        if plan_id is not None:
            withdraw(self.cluster, self.queue, plan_id)
            self.queue.note(Change.POD_GONE)

    def _give_up_launch(self, node: str) -> None:
        """Give up the plan for a node that will not come: its claim is gone."""
        plan_id = self.cluster.launching(node)
        if plan_id is not None:
            withdraw(self.cluster, self.queue, plan_id)
            self.queue.note(Change.POD_GONE)

    def _apply_later(self, now: float) -> None:
        """Undo the refused decisions whose time has come."""
        if self._later:
            due = [failed for at, failed in self._later if at <= now]
            self._later = [(at, failed) for at, failed in self._later if at > now]
            for failed in due:
                self._take_back(failed, now)

    def _see_claimants(self, event: ObjectSeen | ObjectLost, now: float) -> None:
        """A claim came, went or changed: pods that wait for it ask for something else now."""
        is_claim = (
            event.kind == "ResourceClaim" if isinstance(event, ObjectLost) else event.object.kind == "ResourceClaim"
        )
        if not is_claim:
            return
        key = event.key if isinstance(event, ObjectLost) else object_key(event.object)
        for name in self.cluster.claims.pods_naming(key):
            record = self.cluster.pods.records.get(PodKey(name))
            if record is not None and record.row == UNBOUND:
                self._see_pod(PodSeen(record.pod), now)

    def _known(self, event: Event) -> Node | Related | None:
        """The object that something happens to, as it was."""
        match event:
            case NodeSeen(node):
                return self.cluster.nodes.find(node.metadata.name)
            case NodeLost(name):
                return self.cluster.nodes.find(name)
            case ObjectSeen(found):
                return self.cluster.related.find(found.kind, object_key(found))
            case ObjectLost(kind, key):
                return self.cluster.related.find(kind, key)
        return None

    def _note(self, change: Change, old: Node | Pod | Related | None, new: Node | Pod | Related | None) -> None:
        """Something happened to an object: whoever it could help, as far as plugins can tell, is to be tried again."""
        try:
            self.queue.note(change, changed=Changed(change, old, new))
        except PluginError as error:  # then it may help everybody who waits for such a thing
            self.faults.append(Fault(type(new or old).__name__, error))
            self.queue.note(change)

    def _give_back(self, key: PodKey) -> None:
        """A pod was not bound after all: plugins give back what they reserved for it."""
        record = self.cluster.pods.records.get(key)
        profile = self.profiles.get(record.pod.spec.scheduler_name) if record is not None else None
        if record is None or profile is None or not record.assumed or record.nominated or record.row == UNBOUND:
            return
        try:
            unreserve(profile, self.cluster, record)
        except PluginError as error:
            self.faults.append(Fault(key, error))

    def _see_pod(self, event: PodSeen, now: float) -> None:
        key = event.pod.key
        records = self.cluster.pods.records
        known = records.get(key)
        before, old = (_place_of(known), known.pod) if known is not None else (None, None)
        self.cluster.observe(event)
        if old is not None and old.metadata.uid != event.pod.metadata.uid:
            self.queue.remove(key)  # another pod of the same name
        if known is None and event.pod.spec.node_name:  # it has never waited
            if self.cluster.has_plans:
                self._see_placed_elsewhere(records.get(key))
        else:
            self._enqueue(key, now)
        if not self.queue.has_parked:
            return
        after = _place_of(records.get(key))
        if before != after:  # a pod that finishes, or runs on as another, makes room like one that is gone
            gone = Change.POD_GONE if before else Change(0)
            self._note(gone | Change.POD_BOUND if after else gone, old, event.pod)

    def _see_running(self, arrived: Sequence[Event], at: int) -> int:
        """Take in at once the pods that come next and run, whom nobody who waits has to be told of; tell how many."""
        if self.cluster.has_plans or self.queue.has_parked:
            return 0
        following = (arrived[index] for index in range(at, len(arrived)))
        seen = takewhile(lambda event: isinstance(event, PodSeen), following)
        try:
            return self.cluster.observe_running(event.pod for event in seen if isinstance(event, PodSeen))
        except Exception as error:
            self.faults.append(Fault("pods that run", error))
            return 0

    def _see_placed_elsewhere(self, record: PodRecord | None) -> None:
        """Give up the row that is held for a pod which has come with another one already."""
        expected = None if record is None else self.cluster.successor_hold(record)
        if expected is not None and record is not None:
            withdraw(self.cluster, self.queue, expected[0], is_setback=record.row != expected[1].row)

    def _lose_pod(self, event: PodLost) -> None:
        key = PodKey(event.key)
        record = self.cluster.pods.records.get(key)
        had_room = record is not None and record.row != UNBOUND
        self.cluster.observe(event)
        self.queue.remove(key)
        if record is not None and had_room:
            self._note(Change.POD_GONE, record.pod, None)

    def _enqueue(self, key: PodKey, now: float) -> None:
        """Let a pod wait, or go on waiting, if that is what it has to do."""
        record = self.cluster.pods.records.get(key)
        waits = record is not None and record.row == UNBOUND and not record.node_name
        profile = self.profiles.get(record.pod.spec.scheduler_name) if record is not None and waits else None
        if record is None or profile is None or record.pod.metadata.deletion_timestamp is not None:
            self.queue.remove(key)
            return
        if self._succeeds(record, profile, now):
            return
        self.queue.let_in(record, profile, now)

    def _succeeds(self, record: PodRecord, profile: Profile, now: float) -> bool:
        """Let a pod that a controller has made in place of another have the row that is held for it, if any is."""
        expected = self.cluster.successor_hold(record) if self.cluster.has_plans else None
        if expected is None:
            return False
        self.cluster.take_over(*expected, record)
        self.queue.set_aside(self.queue.make_entry(record, profile, now))
        return True

    def foreign(self) -> Iterable[PodKey]:
        """The pods that wait for a scheduler with another name."""
        for record in self.cluster.pods.records.values():
            if not record.node_name and record.pod.spec.scheduler_name not in self.profiles:
                yield record.key


def _place_of(record: PodRecord | None) -> tuple[Shape, int] | None:
    """What a pod that runs is, and on which row."""
    return None if record is None or record.row == UNBOUND else (record.shape, record.row)


def _about(event: Event) -> str:
    """What an event says has happened, and to whom."""
    found = next((getattr(event, name) for name in event.__match_args__), "")
    metadata = getattr(getattr(found, "workload", found), "metadata", None)
    name = found if metadata is None else "/".join(filter(None, (metadata.namespace, metadata.name)))
    return f"{type(event).__name__} {getattr(name, 'key', name)}"


def _taken_waits(cycle: Cycle) -> list[Decision]:
    """What is said of pods that were set aside because something raised in their turn, once."""
    waits, cycle.waits = cycle.waits, []
    return list(waits)


def _fault_of(action: Action, error: Exception) -> Fault:
    if isinstance(error, TurnFailed):
        return Fault(error.turn, error.error)
    return Fault(type(action).__name__, error)


def _with_last_words(before: list[Decision], after: list[Decision]) -> list[Decision]:
    """All decisions in order; what a later action says of a pod replaces an earlier word that it waits."""
    if not before or not after:
        return before or after
    spoken_of = {decision.pod for decision in after if isinstance(decision, PodDecision)}
    return [found for found in before if not (isinstance(found, Wait) and found.pod in spoken_of)] + after
