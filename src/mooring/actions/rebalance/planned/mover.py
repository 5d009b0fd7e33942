"""Moves of one run: each is rehearsed with the real plugins, weighed, and adopted as a plan that holds its target."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.actions.rebalance.planned.steps import Stay, Step
from mooring.actions.rebalance.planned.worth import WHOLE, Judged, cost_of, judge
from mooring.config.rebalance_policy import RebalancePolicy
from mooring.engine.action import Cycle
from mooring.engine.disruption import Refusal, Voluntary, as_created, disrupt, holds_of, successor_of
from mooring.engine.profile import Profile
from mooring.engine.queue.entries import Entry, GangEntry
from mooring.engine.queue.parked import Turn
from mooring.engine.queue.shared import SharedQueues
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.decisions import Decision
from mooring.model.jobs.expansion import controller_of
from mooring.model.keys import NO_GANG, GangKey, PodKey
from mooring.state.gangs import GangRecord
from mooring.state.plans import Held, Plan, Reason, owner_of
from mooring.state.pods import UNBOUND, PodRecord

FOR_THEIR_NODE = frozenset(("DaemonSet", "Node"))
"""The controllers whose pods are there for their node."""


@dataclass(frozen=True, slots=True)
class Why:
    """Why pods are to leave, where they may go, and what that is worth."""

    strategy: str
    profile: str
    reason: str = ""
    """In words; empty: what the scheduler says of the present node."""
    rows: frozenset[int] | None = None
    """The only rows that they may go to; None: wherever the scheduler puts them."""
    gain: Callable[[PodRecord, int], float] | None = None
    """The points of one pod on a row; None: by the scheduler's own rules and scores."""
    elsewhere: bool = False
    """Whether the present node is out of the question, even if the scheduler would choose it again."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Where pods would go."""

    rows: Mapping[PodKey, int]
    gain: float
    reason: str


@dataclass(slots=True)
class Mover:
    """Everything that one run of the strategies decides."""

    cycle: Cycle
    rehearsal: Rehearsal
    profiles: Mapping[str, Profile]
    shared: SharedQueues
    policy: RebalancePolicy
    steps: list[Step] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    nominated: list[tuple[Turn, list[Entry]]] = field(default_factory=list)
    """Those that wait and have got rows to hold, which are to wait for no turn from now on."""
    _moves: int = 0
    _touched: set[PodKey] = field(default_factory=set)
    _in_vain: dict[tuple[object, ...], str] = field(default_factory=dict)
    """Why pods of one shape on one row stay, until something is moved."""

    @property
    def left(self) -> int:
        """How many more pods may leave in this run."""
        return max(0, self.policy.most_moves_per_run - len(self.steps))

    def move(self, pods: Sequence[Pod], why: Why, may_evict: Callable[[Pod], bool]) -> dict[PodKey, str] | None:
        """Let pods leave, with the rest of their gangs, if all of them find another place that is worth it.

        Return the node of each successor, or None if they stay.
        """
        records = self._together(pods)
        problem = self.why_not_movable(records, may_evict)
        if problem is None:
            found = self._targets(records, {pod.key for pod in pods}, why)
            if isinstance(found, Targets):
                problem = self._adopt(records, found, why)
                if problem is None:
                    names = self.cycle.cluster.nodes
                    return {key: names.name(row) for key, row in found.rows.items()}
            else:
                problem = found
        self._stay(pods, why, problem)
        return None

    def renew(self, pod: Pod, why: Why, may_evict: Callable[[Pod], bool]) -> list[PodKey] | None:
        """Let a pod leave wherever its successor goes, with the rest of its gang; return all that leave, if any do."""
        if pod.is_terminal:
            self._moves += 1
            self._note(pod.key, pod.spec.node_name, "", why, why.reason, WHOLE, 0.0)
            return [pod.key]
        records = self._together([pod])
        problem = self.why_not_movable(records, may_evict, renewed=True)
        costs = [cost_of(record, self.policy, self.cycle.now) for record in records]
        if problem is None and sum(costs) >= WHOLE:
            problem = _too_little(WHOLE, sum(costs))
        if problem is None:
            message = f"{why.strategy}: {why.reason}"
            nodes = [record.node_name for record in records]
            made = disrupt(self.cycle.cluster, self.cycle.queue, records, Voluntary(message))
            if isinstance(made, Refusal):
                problem = made.message
            else:
                self.decisions += made.decisions
                self._moves += 1
                for record, node, cost in zip(records, nodes, costs, strict=True):
                    self._note(record.key, node, "", why, why.reason, WHOLE / len(records), cost)
                return [record.key for record in records]
        self._stay([pod], why, problem)
        return None

    def make_room(
        self,
        turn: Turn,
        hosted: Sequence[tuple[Entry, int]],
        leaving: Sequence[PodRecord],
        targets: Mapping[PodKey, int],
        why: Why,
    ) -> None:
        """Let pods leave for their targets, and hold the rows that others who wait get by that, all or none.

        The queue does not know of it yet: see `nominated`.
        """
        found = Targets(targets, WHOLE * len(hosted), why.reason)
        cluster = self.cycle.cluster
        with cluster.what_if() as trial:
            problem = self._adopt(leaving, found, why)
            if problem is None:
                entries, rows = [entry for entry, _ in hosted], [row for _, row in hosted]
                leaves = tuple(record.leaving for record in leaving if record.leaving is not None)
                gang = turn.root.key if isinstance(turn, GangEntry) else NO_GANG
                plan = Plan(Reason.MOVE, holds_of(entries, rows), leaves, gang, message=why.reason)
                cluster.adopt(replace(plan, subject=turn.turn_name))
                self.nominated.append((turn, entries))
                trial.keep()
        if problem is not None:
            self._stay([record.pod for record in leaving], why, problem)

    def place_again(self, key: PodKey, row: int) -> str:
        """Let a pod that was released for a trial be on a row; return why not, if the scheduler would refuse it."""
        cluster = self.cycle.cluster
        return self.rehearsal.place(cluster, [as_created(cluster.pods.records[key].pod)], [row]).problem

    # Which pods.

    def _together(self, pods: Iterable[Pod]) -> list[PodRecord]:
        """The pods with the rest of their gangs."""
        cluster = self.cycle.cluster
        found: dict[PodKey, PodRecord] = {}
        for pod in pods:
            record = cluster.pods.records[pod.key]
            found.setdefault(record.key, record)
            root = self._root(record)
            if root is not None:
                for part in cluster.gangs.parts_of(root):
                    found |= {member.key: member for member in part.members.values() if member.row != UNBOUND}
        return list(found.values())

    def _root(self, record: PodRecord) -> GangRecord | None:
        gangs = self.cycle.cluster.gangs
        part = gangs.of(record.key)
        return None if part is None or part.gang is None else gangs.root_of(part)

    def why_not_movable(
        self, records: Sequence[PodRecord], may_evict: Callable[[Pod], bool], *, renewed: bool = False
    ) -> str | None:
        """Why one of the pods cannot be moved at all."""
        cluster, now = self.cycle.cluster, self.cycle.now
        if len(records) > self.left:
            return f"more than {self.policy.most_moves_per_run} pods would move in one run"
        for record in records:
            who = "it" if len(records) == 1 else f"pod {record.key}, which would move with it,"
            owner = controller_of(record.pod.metadata)
            if not may_evict(record.pod):
                return f"{who} is protected by the policy"
            if record.key in self._touched or record.leaving is not None or record.nominated:
                return f"{who} is on its way already"
            if record.assumed:
                return f"{who} has only just got its place"
            if renewed:
                continue
            if owner is None:
                return f"{who} has no controller: nothing would make it anew"
            if owner.kind in FOR_THEIR_NODE:
                return f"{who} is there for its node"
            if record.pod.spec.scheduler_name not in self.profiles:
                return f"{who} has another scheduler: {record.pod.spec.scheduler_name}"
            if record.key in cluster.tenants.workload_of or self._is_shared(record):
                return f"{who} has its place by the quota of a queue"
            moved = cluster.moves.last(owner_of(record.pod), record.node_name)
            if moved is not None and now - moved < self.policy.quiet_seconds:
                started = timestamp_seconds(record.pod.status.start_time)
                if started is None or started >= moved:
                    return f"{who} was moved here {now - moved:.0f}s ago"
        return None

    def _is_shared(self, record: PodRecord) -> bool:
        root = self._root(record)
        cluster = self.cycle.cluster
        found = self.shared.of_pod(cluster, record) if root is None else self.shared.of_gang(cluster, root)
        return found is not None

    # Where to, and whether that is worth it.

    def _targets(self, records: Sequence[PodRecord], chosen: set[PodKey], why: Why) -> Targets | str:
        """Where the scheduler would put the pods, had they no places; why they stay, if they do."""
        alike = (why.strategy, why.rows, records[0].shape.id, records[0].row) if len(records) == 1 else ()
        if alike in self._in_vain:
            return self._in_vain[alike]
        found = self._rehearse(records, chosen, why)
        if alike and isinstance(found, str):
            self._in_vain[alike] = found
        return found

    def _rehearse(self, records: Sequence[PodRecord], chosen: set[PodKey], why: Why) -> Targets | str:
        cluster = self.cycle.cluster
        home = {record.key: (record.row, record.node_name) for record in records}
        pods = [as_created(record.pod) for record in records]
        judged: dict[PodKey, Judged] = {}
        with cluster.what_if():
            for record in records:
                cluster.release(record.key)
            if why.gain is None:
                for record, pod in zip(records, pods, strict=True):
                    profile = self.profiles[record.pod.spec.scheduler_name]
                    judged[record.key] = judge(profile, cluster, cluster.shape_for(pod), home[record.key][0])
            placed = self.rehearsal.place(cluster, pods)
        if placed.problem:
            return _of_one(placed.problem, records)
        returning = next((key for key in chosen if placed.rows[key] == home[key][0]), None)
        if returning is not None and not why.elsewhere:
            return f"it would return to node {home[returning][1]}"
        if why.rows is not None and not why.rows.issuperset(placed.rows[key] for key in chosen):
            with cluster.what_if():
                for record in records:
                    cluster.release(record.key)
                placed = self.rehearsal.place(cluster, pods, why.rows)
            if placed.problem:
                return _of_one(placed.problem, records)
        if why.gain is not None:
            gain = sum(why.gain(record, placed.rows[record.key]) for record in records)
        else:
            gain = sum(judged[key].gain(row) for key, row in placed.rows.items())
        refusal = next((judged[key].refusal for key in chosen if key in judged and judged[key].refusal), "")
        reason = why.reason or refusal or "the scheduler's scores are higher elsewhere"
        return Targets(placed.rows, gain, reason)

    def _adopt(self, records: Sequence[PodRecord], found: Targets, why: Why) -> str | None:
        """Evict the pods and hold their targets, all or none; return why not, if not."""
        cycle, cluster = self.cycle, self.cycle.cluster
        costs = {record.key: cost_of(record, self.policy, cycle.now) for record in records}
        cost = sum(costs.values())
        if found.gain <= cost:
            return _too_little(found.gain, cost)
        homes = {record.key: record.node_name for record in records}
        decisions: list[Decision] = []
        with cluster.what_if() as trial:
            for gang, members in self._units(records):
                message = f"{why.strategy}: {found.reason}"
                holds = tuple(Held(successor_of(cluster, one), found.rows[one.key]) for one in members)
                subject = gang or owner_of(members[0].pod)
                plan = Plan(Reason.MOVE, holds, gang=gang, subject=subject, gain=found.gain, cost=cost, message=message)
                made = disrupt(cluster, cycle.queue, members, Voluntary(message), plan)
                if isinstance(made, Refusal):
                    return made.message if made.pod == members[0].key else f"pod {made.pod}: {made.message}"
                decisions += made.decisions
            for record in records:
                cluster.moves.note(owner_of(record.pod), cluster.nodes.name(found.rows[record.key]), cycle.now)
            trial.keep()
        self.decisions += decisions
        self._moves += 1
        for record in records:
            target = cluster.nodes.name(found.rows[record.key])
            share = found.gain / len(records)
            self._note(record.key, homes[record.key], target, why, found.reason, share, costs[record.key])
        return None

    def _units(self, records: Sequence[PodRecord]) -> list[tuple[GangKey, list[PodRecord]]]:
        """Each gang as a whole, and every other pod by itself: they are carried out independently."""
        gangs: dict[GangKey, list[PodRecord]] = {}
        units: list[tuple[GangKey, list[PodRecord]]] = []
        for record in records:
            root = self._root(record)
            if root is None:
                units.append((NO_GANG, [record]))
            else:
                gangs.setdefault(root.key, []).append(record)
        return [*units, *gangs.items()]

    # What is told of it.

    def _note(self, pod: PodKey, node: str, target: str, why: Why, reason: str, gain: float, cost: float) -> None:
        self._touched.add(pod)
        self._in_vain.clear()
        self.steps.append(Step(pod, node, target, why.strategy, why.profile, reason, gain, cost, self._moves))

    def _stay(self, pods: Sequence[Pod], why: Why, problem: str | None) -> None:
        records = self.cycle.cluster.pods.records
        self.stays += [
            Stay(pod.key, pod.spec.node_name or records[pod.key].node_name, why.strategy, problem or "") for pod in pods
        ]


def _of_one(problem: str, records: Sequence[PodRecord]) -> str:
    """Why pods cannot be placed; one by itself is not named."""
    return problem if len(records) > 1 else problem.replace(f"pod {records[0].key}", "it", 1)


def _too_little(gain: float, cost: float) -> str:
    return f"a gain of {gain:.1f} does not exceed the cost of {cost:.1f}"
