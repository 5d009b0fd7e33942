"""Plans: which pods leave, which rows are held for which pods until they are gone, which pods are changed, and which
nodes are to come or to go.

Every action reads the plans and adopts its own through the cluster, so that none evicts a pod that another has evicted,
or a pod that only holds room and never ran. A held pod counts in every column as if it were bound. Pods that are
assumed are in the columns, too (`placements.py`). All of this is on the undo log.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from typing import NewType

import numpy as np
from numpy.typing import NDArray

from mooring.errors import InvariantBroken
from mooring.model.api.pods import Pod
from mooring.model.decisions import Launch, Resize, Terminate
from mooring.model.jobs.expansion import controller_of
from mooring.model.keys import NO_GANG, GangKey, PodKey
from mooring.model.node_offer import NodeOffer
from mooring.model.pod_patch import PodPatch
from mooring.state.budgets import DisruptionBudgets
from mooring.state.placements import Placements
from mooring.state.pods import UNBOUND, Leaving, PodRecord, TentativePods
from mooring.state.related import RelatedObjects
from mooring.state.shapes import Shape

PlanId = NewType("PlanId", int)
NO_POD = PodKey("")
MOST_SETBACKS = 4096
"""So many subjects with setbacks are remembered before those that are gone are forgotten."""

MOST_EVICTIONS = 4096
"""So many evicted pods are remembered before those of other moments are forgotten."""


class Reason(Enum):
    """Why there is a plan."""

    PREEMPTION = "preemption"
    RECLAIM = "reclaim"
    RESERVATION = "reservation"
    """Room is kept for a gang that waits, until the end of a cycle."""
    MOVE = "move"
    """A pod leaves for its own sake, and its successor holds the room."""
    SCALE_UP = "scale-up"
    """Nodes are launched for pods that wait."""
    CONSOLIDATION = "consolidation"
    """Pods move together: nodes go without them, or a pod or gang that waits has room then."""
    RESIZE = "resize"
    """Pods that run get other amounts."""
    PERMIT = "permit"
    """Room is there, and a permit plugin lets the pods wait in it."""

    @property
    def disrupts(self) -> bool:
        """Whether such plans evict pods."""
        return self not in (Reason.PERMIT, Reason.RESERVATION)


@dataclass(frozen=True, slots=True)
class Successor:
    """A pod that a controller will create in place of one that leaves: it has the same owner and the same shape."""

    owner: str
    shape: Shape
    pod: Pod
    """As it will be created, as far as that is known."""


@dataclass(frozen=True, slots=True)
class Held:
    """A row that is held for a pod, or for its successor. `Cluster.adopt` fills in all but the first two fields."""

    holder: PodKey | Successor
    row: int
    """UNBOUND with an `offer`, until the plan is adopted."""
    key: PodKey = NO_POD
    """The pod that has the row in the columns: the holder, or what stands in for a successor."""
    uid: str = ""
    node: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the node: with others it may be in another domain, and of no use to a gang that wants a certain one."""
    offer: int | None = None
    """The index in `Plan.opens` of the node whose row this is."""


@dataclass(frozen=True, slots=True)
class Amend:
    """A pod that is changed where it is, such as by other requests. `Cluster.adopt` fills in the last two fields."""

    key: PodKey
    patch: PodPatch
    before: Pod | None = None
    """The pod as it was."""
    after: Pod | None = None
    """The pod as it is until the world says what has become of it."""


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """Pods that leave, and rows that are held until they are gone, or until something else allows the holders to start.

    A gang holds its rows as a whole.
    """

    reason: Reason
    holds: tuple[Held, ...] = ()
    leaves: tuple[Leaving, ...] = ()
    """The pods that must be gone before the holders can be bound."""
    gang: GangKey = NO_GANG
    """The key of the outermost gang; empty for a pod by itself."""
    amends: tuple[Amend, ...] = ()
    """The pods that are changed: at once in the state, and back again if the plan is dropped."""
    opens: tuple[NodeOffer, ...] = ()
    """The nodes that are launched. Until one is there, its row takes no pods but those that hold it."""
    closes: tuple[str, ...] = ()
    """The nodes that go once the pods that leave are gone. They take no pods until then."""
    drains: tuple[str, ...] = ()
    """The nodes whose pods are to move once the nodes that are launched are there: another plan follows this one."""
    opened: tuple[str, ...] = ()
    """The names of the nodes that are launched, in the order of `opens`; `Cluster.adopt` fills them in."""
    is_closing: bool = False
    """Whether the nodes that go were told so."""
    until: float | None = None
    """When the plan is given up."""
    plugin: str = ""
    """The permit plugin that lets the pods wait."""
    message: str = ""
    """Why they wait."""
    gain: float = 0.0
    """What is better once the plan is carried out, in the unit of its action."""
    cost: float = 0.0
    """What carrying it out costs, in the same unit."""
    subject: str = ""
    """What the plan is for; setbacks are counted by it. `Cluster.adopt` fills in the gang, or the first holder."""


@dataclass(frozen=True, slots=True)
class Setback:
    """Plans for the same subject that were dropped one after the other, with none carried out since."""

    times: int
    last: float
    """When the latest was dropped."""
    pods: frozenset[PodKey]
    """The pods that were evicted for them."""
    reason: Reason
    """Of the latest."""
    seen: bytes = b""
    """What an action found when it looked at the setback first, to see later whether that has changed."""


class Plans(Placements):
    """Pods on rows, and what is to become of them."""

    def __init__(self, *, seed: int | None = 0) -> None:
        super().__init__(seed=seed)
        self.related = RelatedObjects()
        self.budgets = DisruptionBudgets(self.related, self.pods, self.log)
        self._plans: dict[PlanId, Plan] = {}
        self._plan_of: dict[PodKey, PlanId] = {}
        self._last_plan = 0
        self.setbacks: dict[str, Setback] = {}
        """By subject."""
        self.evictions: dict[PodKey, tuple[float, int]] = {}
        """When each pod was evicted last, and how often at that moment: by name, as it may be made anew."""
        self._guarded: dict[PodKey, None] = {}
        """The held pods that others could harm by coming to rows: see `guarded`."""
        self._spread_by_default = frozenset[str]()
        """The names of the schedulers whose pods may spread strictly though they do not say so."""
        self.guards_version = 0
        """Rises when a pod comes to or goes from the guarded or the tentative ones, and with `offered_rows`."""
        self.offered_rows: frozenset[int] | None = None
        """While something is tried out on some rows only: these; None for all."""
        self._launched: dict[str, PlanId] = {}
        """By name, the nodes that plans launch, until they are there."""
        self._closing: dict[str, PlanId] = {}
        """By name, the nodes that go."""
        self._amended_by: dict[PodKey, PlanId] = {}
        self._successors: dict[str, dict[PlanId, None]] = {}
        """By owner, the plans that hold rows for pods which it will create."""
        self.tentative = TentativePods(self.pods)
        """The pods that hold rows and do not run yet, and those that run and are to leave for these: they count where
        they are, and no other pod may start because of them alone. Pods that a permit lets wait are as good as bound.
        """

    # Leaving.

    def count_eviction(self, key: PodKey, now: float) -> int:
        """Note that a pod is evicted; return how often that was so at this moment, before any time passed."""
        last, times = self.evictions.get(key, (now, 0))
        self._set_evictions(key, (now, times + 1 if last == now else 1))
        if len(self.evictions) > MOST_EVICTIONS:
            for pod in [pod for pod, (at, _) in self.evictions.items() if at != now]:
                self._set_evictions(pod, None)
        return self.evictions[key][1]

    def _set_evictions(self, key: PodKey, evictions: tuple[float, int] | None) -> None:
        self.log.note(self._set_evictions, key, self.evictions.get(key))
        if evictions is None:
            del self.evictions[key]
        else:
            self.evictions[key] = evictions

    def mark_leaving(self, key: PodKey) -> bool:
        """Note that a pod is being evicted; return whether it must be told: False if it was, or is terminating."""
        record = self.pods.records[key]
        if record.nominated:
            raise InvariantBroken(f"pod {key} holds room that is being made for it: it does not run")
        if record.leaving is not None:
            return False
        self._set_leaving(record, Leaving(record.key, record.pod.metadata.uid))
        self.budgets.spend(record.pod)
        return record.pod.metadata.deletion_timestamp is None

    def keep_running(self, key: PodKey) -> None:
        """Note that a pod which was being evicted stays: the eviction failed, or the pod waits again."""
        record = self.pods.records.get(key)
        if record is not None and record.leaving is not None:
            self._set_leaving(record, None)
            self.budgets.give_back(record.pod)

    def is_out_of_the_way(self, leaving: Leaving) -> bool:
        """Whether a pod that was being evicted is gone, or stays after all, or its node is gone with it."""
        record = self.pods.records.get(leaving.key)
        return record is None or record.leaving is not leaving or record.row == UNBOUND

    def _set_leaving(self, record: PodRecord, leaving: Leaving | None) -> None:
        self.log.note(self._set_leaving, record, record.leaving)
        record.leaving = leaving
        self.guards_version += 1
        self.gangs.count_anew(record.key)
        self.pods.changed((record.key,))

    # Holding rows.

    def hold(self, key: PodKey, row: int) -> None:
        """Let a waiting pod hold a row, which need not have room yet: no other pod sees any there. It does not run."""
        self.assume(key, row)
        self._set_nominated(self.pods.records[key], True)

    def let_go(self, key: PodKey) -> None:
        """Take a held row back from a pod: it waits again."""
        record = self.pods.records[key]
        if record.row != UNBOUND:
            self.release(key)
        elif record.node_name:
            self._come_back(record)
        self._set_nominated(record, False)

    def _set_nominated(self, record: PodRecord, nominated: bool) -> None:
        if record.nominated != nominated:
            self.log.note(self._set_nominated, record, record.nominated)
            record.nominated = nominated
            if record.row != UNBOUND:
                self.pod_changes.append(record.shape.id, record.row, 0)  # the pods are the same, and yet not
            self.guards_version += 1
            self.gangs.count_anew(record.key)
            self.pods.changed((record.key,))

    # Plans.

    def adopt(self, plan: Plan) -> PlanId:
        """Let the holders of a plan have their rows, and carry the plan from now on."""
        self._last_plan += 1
        plan_id = PlanId(self._last_plan)
        rows = self._open(plan.opens, plan_id)
        opened = tuple(self.nodes.name(row) for row in rows)
        for name in plan.closes:
            if name in self._closing or name in self._launched:
                raise InvariantBroken(f"node {name} is being launched, or goes already")
            self._set_closing(name, plan_id)
        given = (held if held.offer is None else replace(held, row=rows[held.offer]) for held in plan.holds)
        holds = tuple(self._take(held, plan_id, is_waiting=bool(plan.leaves)) for held in given)
        amends = tuple(self._amend(amend) for amend in plan.amends)
        subject = plan.subject or plan.gang or next((held.key for held in holds), "")
        self._enter(plan_id, replace(plan, holds=holds, amends=amends, opened=opened, subject=subject))
        return plan_id

    def _open(self, offers: Sequence[NodeOffer], plan_id: PlanId) -> list[int]:
        """Let there be rows for nodes that are launched."""
        rows = [row for offer, same in groupby(offers) for row in self.open_rows(offer, len(list(same))).tolist()]
        for row in rows:
            self._set_launched(self.nodes.name(row), plan_id)
        return rows

    def _amend(self, amend: Amend) -> Amend:
        record = self.pods.records[amend.key]
        before = record.pod
        self.amend(amend.key, amend.patch)
        return replace(amend, before=before, after=record.pod)

    def open_rows(self, offer: NodeOffer, count: int) -> NDArray[np.intp]:
        """Let there be more nodes of one kind: see `Cluster.open_rows`."""
        raise NotImplementedError

    def close_rows(self, rows: Sequence[int]) -> None:
        """Let there be no nodes on some rows: see `Cluster.close_rows`."""
        raise NotImplementedError

    def amend(self, key: PodKey, patch: PodPatch) -> None:
        """Change a pod that waits, is assumed or runs: see `Cluster.amend`."""
        raise NotImplementedError

    def replace_pod(self, pod: Pod) -> None:
        """Let a pod be this one: see `Cluster.replace_pod`."""
        raise NotImplementedError

    def renew(self, plan_id: PlanId, plan: Plan) -> None:
        """Let the holders of a plan keep their rows for another reason, or for longer."""
        if not plan.leaves:
            self._guard_no_more(plan)
        self._enter(plan_id, plan)

    def settle(self, plan_id: PlanId) -> None:
        """Note that a plan is carried out: its holders have their rows as other assumed pods do.

        Of a plan whose nodes have been told to go, and are still there, that is left.
        """
        plan = self._plans[plan_id]
        closes = tuple(name for name in plan.closes if plan.is_closing and name in self.nodes.row_of)
        rest = Plan(plan.reason, closes=closes, is_closing=True, until=plan.until, subject=plan.subject)
        self._enter(plan_id, rest if closes else None)
        self._guard_no_more(plan)
        for name in plan.opened:
            self._set_launched(name, None)
        for name in plan.closes:
            if name not in closes:
                self._set_closing(name, None)
        for held in plan.holds:
            record = self.pods.records.get(held.key)
            if record is not None:
                self._set_nominated(record, False)
        if plan.subject in self.setbacks:
            self._set_setback(plan.subject, None)

    def drop(self, plan_id: PlanId, now: float = 0.0, *, is_setback: bool = True) -> None:
        """Give a plan up: pods that still hold rows wait again. Pods that are leaving have been told, and leave.

        So are plans given up whose pods hold rows of nodes that this one launches.
        """
        plan = self._plans[plan_id]
        for other in self.resting_on(plan_id):
            self.drop(other, now, is_setback=is_setback)
        self._enter(plan_id, None)
        self._guard_no_more(plan)
        for held in plan.holds:
            record = self.pods.records.get(held.key)
            if record is None or not record.nominated:
                continue
            self.let_go(held.key)
            if isinstance(held.holder, Successor):
                self._remove_stand_in(record)
        for amend in reversed(plan.amends):
            known = self.pods.records.get(amend.key)
            if known is not None and amend.before is not None and known.pod is amend.after:
                self.replace_pod(amend.before)
        for name in plan.closes:
            self._set_closing(name, None)
        awaited = [name for name in plan.opened if name in self._launched]
        for name in awaited:
            self._set_launched(name, None)
        if awaited:
            self.close_rows([self.nodes.row_of[name] for name in awaited])
        if plan.reason.disrupts and is_setback:
            before = self.setbacks.get(plan.subject, Setback(0, now, frozenset(), plan.reason))
            pods = before.pods.union(leaving.key for leaving in plan.leaves)
            self._set_setback(plan.subject, Setback(before.times + 1, now, pods, plan.reason))

    @contextmanager
    def lifted(self, plan_id: PlanId) -> Iterator[None]:
        """Let others see the rows that a plan holds as if they were not held, inside the block."""
        holds = self._plans[plan_id].holds
        for held in holds:
            self.let_go(held.key)
        try:
            yield
        finally:
            for held in holds:
                self.hold(held.key, held.row)

    def note_seen(self, subject: str, seen: bytes) -> None:
        """Remember with a setback what an action found when it looked at it."""
        self._set_setback(subject, replace(self.setbacks[subject], seen=seen))

    def forget_setback(self, subject: str) -> None:
        """Forget the plans for a subject that were dropped."""
        self._set_setback(subject, None)

    def plan(self, plan_id: PlanId) -> Plan:
        return self._plans[plan_id]

    def is_adopted(self, plan_id: PlanId) -> bool:
        """Whether a plan is neither settled nor dropped."""
        return plan_id in self._plans

    def plan_of(self, key: PodKey) -> PlanId | None:
        """The plan in which a pod holds a row."""
        return self._plan_of.get(key)

    def plans(self) -> Iterable[tuple[PlanId, Plan]]:
        """All plans, in the order in which they were adopted."""
        return sorted(self._plans.items()) if self._plans else ()

    @property
    def has_plans(self) -> bool:
        return bool(self._plans)

    def _enter(self, plan_id: PlanId, plan: Plan | None) -> None:
        before = self._plans.get(plan_id)
        self.log.note(self._enter, plan_id, before)
        if before is not None:
            self._leave_out(plan_id, before)
        if plan is None:
            self._plans.pop(plan_id, None)
            return
        self._plans[plan_id] = plan
        for held in plan.holds:
            self._plan_of[held.key] = plan_id
            if isinstance(held.holder, Successor):
                self._successors.setdefault(held.holder.owner, {})[plan_id] = None
        for amend in plan.amends:
            self._amended_by[amend.key] = plan_id
        if plan.reason is not Reason.PERMIT:
            self.tentative.count([held.key for held in plan.holds], plan.leaves, 1)

    def _leave_out(self, plan_id: PlanId, plan: Plan) -> None:
        """Let the indexes know no more of a plan."""
        for held in plan.holds:
            self._plan_of.pop(held.key, None)
            if isinstance(held.holder, Successor):
                self._successors[held.holder.owner].pop(plan_id, None)
        for amend in plan.amends:
            self._amended_by.pop(amend.key, None)
        owners = {held.holder.owner for held in plan.holds if isinstance(held.holder, Successor)}
        for owner in owners:
            if not self._successors[owner]:
                del self._successors[owner]
        if plan.reason is not Reason.PERMIT:
            self.tentative.count([held.key for held in plan.holds], plan.leaves, -1)

    def _take(self, held: Held, plan_id: PlanId, *, is_waiting: bool) -> Held:
        """Let a holder, or what stands in for it, have its row."""
        if isinstance(held.holder, Successor):
            key, uid = PodKey(f"{held.holder.pod.key}~{plan_id}"), ""
            self._add_stand_in(key, held.holder)
        else:
            key, uid = held.holder, self.pods.records[held.holder].pod.metadata.uid
        self.hold(key, held.row)
        if is_waiting:
            self._guard(self.pods.records[key])
        node = self.nodes.node(held.row)
        return Held(held.holder, held.row, key, uid, node.metadata.name, node.metadata.labels or {}, held.offer)

    def _set_setback(self, subject: str, setback: Setback | None) -> None:
        self.log.note(self._set_setback, subject, self.setbacks.get(subject))
        if setback is None:
            self.setbacks.pop(subject, None)
            return
        self.setbacks[subject] = setback
        if len(self.setbacks) > MOST_SETBACKS and not self.log.depth:
            latest = sorted(self.setbacks.items(), key=lambda item: item[1].last)[-MOST_SETBACKS // 2 :]
            self.setbacks = dict(latest)

    # Nodes that come and go.

    def plan_for(self, decision: Launch | Terminate | Resize) -> PlanId | None:
        """The plan that a decision is part of."""
        match decision:
            case Launch(name):
                return self._launched.get(name)
            case Terminate(name):
                return self._closing.get(name)
            case Resize(pod):
                return self._amended_by.get(PodKey(pod))

    def awaits_nodes(self, plan: Plan) -> bool:
        """Whether a node that a plan launches, or whose row it holds, is not there yet."""
        return bool(self._launched) and any(
            name in self._launched for name in (*plan.opened, *(held.node for held in plan.holds))
        )

    def resting_on(self, plan_id: PlanId) -> list[PlanId]:
        """The other plans whose pods hold rows of nodes that a plan launches, and that are not there yet."""
        names = {name for name in self._plans[plan_id].opened if name in self._launched}
        if not names:
            return []
        others = ((other, plan) for other, plan in self.plans() if other != plan_id)
        return [other for other, plan in others if any(held.node in names for held in plan.holds)]

    def launching(self, name: str) -> PlanId | None:
        """The plan that launches a node which is not there yet."""
        return self._launched.get(name)

    def is_launching(self, name: str) -> bool:
        """Whether a node was asked for, and is not there yet."""
        return name in self._launched

    @property
    def barred_rows(self) -> list[int]:
        """The rows that take no pods: of nodes that are not there yet, and of nodes that go."""
        if not self._launched and not self._closing:
            return []
        row_of = self.nodes.row_of
        return [row_of[name] for name in (*self._launched, *self._closing) if name in row_of]

    def _set_launched(self, name: str, plan_id: PlanId | None) -> None:
        self._set_node_plan(self._launched, name, plan_id)

    def _set_closing(self, name: str, plan_id: PlanId | None) -> None:
        self._set_node_plan(self._closing, name, plan_id)

    def _set_node_plan(self, plans: dict[str, PlanId], name: str, plan_id: PlanId | None) -> None:
        before = plans.get(name)
        if before == plan_id:
            return
        self.log.note(self._set_node_plan, plans, name, before)
        self.guards_version += 1
        if plan_id is None:
            del plans[name]
        else:
            plans[name] = plan_id

    # Pods that are being changed.

    def is_amended(self, amend: Amend) -> bool:
        """Whether the world says of a pod what a plan makes of it, or the pod is gone."""
        record = self.pods.records.get(amend.key)
        if record is None or amend.before is None or record.pod.metadata.uid != amend.before.metadata.uid:
            return True
        return record.pod is not amend.after and amend.patch.is_in(record.pod.spec)

    def as_amended(self, pod: Pod) -> Pod:
        """Return news of a pod as it is with what a plan makes of it, if the world has not learnt of that yet."""
        plan_id = self._amended_by.get(pod.key)
        if plan_id is None:
            return pod
        plan = self._plans[plan_id]
        for amend in plan.amends:
            before = amend.before
            if amend.key != pod.key or before is None or before.metadata.uid != pod.metadata.uid:
                continue
            if amend.patch.is_in(pod.spec):
                return pod
            after = amend.patch.apply(pod)
            renewed = replace(amend, before=pod, after=after)
            amends = tuple(renewed if each is amend else each for each in plan.amends)
            with self.log.for_good():
                self._enter(plan_id, replace(plan, amends=amends))
            return after
        return pod

    # What others could spoil, and what is not on offer.

    def offer_only(self, rows: Iterable[int] | None) -> None:
        """Let no row but these take pods: for trying something out on them. None lets all of them again."""
        self.log.note(self.offer_only, self.offered_rows)
        self.offered_rows = None if rows is None else frozenset(rows)
        self.guards_version += 1

    @property
    def guarded(self) -> Iterator[tuple[PodRecord, Plan]]:
        """The pods that hold rows while others leave, and that another pod could keep from starting without taking
        any amount that is held: pods that spread strictly, and pods that get devices once others give these back."""
        for key in self._guarded:
            plan_id, record = self._plan_of.get(key), self.pods.records.get(key)
            if plan_id is not None and record is not None and record.nominated and record.row != UNBOUND:
                yield record, self._plans[plan_id]

    def spread_by_default(self, scheduler_name: str) -> None:
        """Guard the pods of a scheduler that say nothing of how they spread: its profile may spread them strictly."""
        self._spread_by_default |= {scheduler_name}

    def _guard(self, record: PodRecord) -> None:
        spec = record.shape.spec
        constraints = spec.topology_spread_constraints or ()
        spreads = any(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in constraints)
        spreads |= not constraints and spec.scheduler_name in self._spread_by_default
        if spreads or self.compete_for_devices(record.shape, record.shape):
            self._set_guarded(record.key, True)

    def _guard_no_more(self, plan: Plan) -> None:
        for held in plan.holds if self._guarded else ():
            if held.key in self._guarded:
                self._set_guarded(held.key, False)

    def _set_guarded(self, key: PodKey, guarded: bool) -> None:
        self.log.note(self._set_guarded, key, not guarded)
        self.guards_version += 1
        if guarded:
            self._guarded[key] = None
        else:
            self._guarded.pop(key, None)

    # Successors.

    def successor_hold(self, record: PodRecord) -> tuple[PlanId, Held] | None:
        """The row that is held for a pod which a controller has created in place of another, if there is one."""
        owner = owner_of(record.pod)
        if not owner:
            return None
        for plan_id in sorted(self._successors.get(owner, ())):
            for held in self._plans[plan_id].holds:
                holder = held.holder
                if isinstance(holder, Successor) and holder.owner == owner and holder.shape is record.shape:
                    return plan_id, held
        return None

    def take_over(self, plan_id: PlanId, held: Held, record: PodRecord) -> None:
        """Let a pod have the row that was held for it before it existed."""
        stand_in = self.pods.records[held.key]
        self.let_go(held.key)
        self._remove_stand_in(stand_in)
        plan = self._plans[plan_id]
        taken = self._take(Held(record.key, held.row), plan_id, is_waiting=bool(plan.leaves))
        self._enter(plan_id, replace(plan, holds=tuple(taken if one is held else one for one in plan.holds)))

    def _add_stand_in(self, key: PodKey, successor: Successor) -> None:
        end = self.pods.end
        record = PodRecord(key, successor.pod, self.pods.new_slot(), successor.shape)
        self.log.note(self._take_stand_in_back, record, end, int(self.pods.shape.values[record.slot]))
        self._enter_stand_in(record)

    def _take_stand_in_back(self, record: PodRecord, end: int, shape_id: int) -> None:
        """Undo: there is no stand-in, and no slot for it."""
        self.pods.shape.writable[record.slot] = shape_id
        self._forget_stand_in(record)
        self.pods.shrink_to(end)

    def _enter_stand_in(self, record: PodRecord) -> None:
        self.pods.records[record.key] = record
        self.pods.by_slot[record.slot] = record
        self.pods.shape.writable[record.slot] = record.shape.id

    def _forget_stand_in(self, record: PodRecord) -> None:
        del self.pods.records[record.key]
        self.pods.free_slot(record.slot)

    def _remove_stand_in(self, record: PodRecord) -> None:
        self._forget_stand_in(record)
        self.log.note(self._bring_stand_in_back, record)

    def _bring_stand_in_back(self, record: PodRecord) -> None:
        self.pods.take_slot(record.slot)
        self._enter_stand_in(record)


def owner_of(pod: Pod) -> str:
    """What tells the controller of a pod from all others; empty if the pod has none."""
    owner = controller_of(pod.metadata)
    if owner is None:
        return ""
    return owner.uid or f"{owner.kind}/{pod.metadata.namespace}/{owner.name}"
