"""For each pod or gang that was just refused, in queue order: find victims, evict them, and nominate it to the room.

Whoever `Place` refuses has its turn at once (`Preemption.at_once`). The action itself binds those whose room is there,
and gives those a turn who had none yet, or for whom it is time to try again.

Whoever room is made for takes its place in the state at once, so that nobody else sees room there, and is bound when
the world has reported the victims gone: that is when `Bind` is returned.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mooring.actions.gangs.members import needed_members
from mooring.actions.gangs.placing import GangPlacer
from mooring.actions.preempt.gangs.search import BEFORE, GangFound
from mooring.actions.preempt.gangs.turn import is_being_made_room_for, make_room_for_gang
from mooring.actions.preempt.pods.eligible import ALREADY, why_not
from mooring.actions.preempt.pods.search import Found, InVain, VictimSearch, refusals
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.engine.action import Action, Cycle
from mooring.engine.asking import faults_of
from mooring.engine.disruption import Disrupted, Forced, check_progress, disrupt, holds_of, nominate
from mooring.engine.evaluate import Evaluation
from mooring.engine.follow_up import all_fit, follow_up
from mooring.engine.plugin import PostFilter
from mooring.engine.queue.entries import PLUGIN as GANGS
from mooring.engine.queue.queue import Entry, GangEntry, Parked, Queue, Turn
from mooring.model.decisions import Decision, Evict, Wait
from mooring.model.keys import NO_GANG, GangKey, PodKey
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord
from mooring.state.plans import Plan, Reason
from mooring.state.remembered import Derived
from mooring.state.views import PodView

PLUGINS = frozenset(("DefaultPreemption", "PreemptionToleration"))
"""A profile preempts that runs one of these; see `mooring.plugins.default_preemption`."""
"""The plugin that switches this on, where a profile runs it."""

NEVER = math.inf


class Preemption:
    """Makes room, by priorities, for those that no node takes."""

    def __init__(self, costs: Mapping[str, PreemptionCostArgs] | None = None, gangs: GangPlacer | None = None) -> None:
        """`costs` says by profile what preemption may cost; `gangs` places them, without it they evict nobody."""
        self._costs = {name: args for name, args in (costs or {}).items() if not args.is_off}
        windows = [args.window_seconds for args in self._costs.values() if args.most_preemptions_per_workload]
        self._window = max(windows, default=0)
        """For so many seconds it counts that a workload was preempted."""
        self._placer = gangs
        self._search: Derived[Cluster, VictimSearch] = Derived(1)
        self._turns: SharedOutcomes | None = None

    def at_once(self, cycle: Cycle, refused: Sequence[Turn]) -> list[Decision]:
        """Make room for those that were refused a moment ago, as far as evicting others helps."""
        decisions: list[Decision] = []
        for turn in refused:
            parked = cycle.queue.parked_as(turn)  # nobody, if what was evicted for one before lets it be tried again
            if parked is not None and _may_preempt(parked):
                decisions += self._take_turn(cycle, parked, turn)
        return decisions

    def rest(self, cycle: Cycle) -> list[Decision]:
        """Make room for those that have not had their turn since they were refused, or for whom it is time again."""
        cycle.cluster.preemptions.forget_until(cycle.now - self._window)
        decisions: list[Decision] = []
        for parked, turn in self._due(cycle.queue, cycle.now):
            decisions += self._take_turn(cycle, parked, turn)
        self._turns = None
        return decisions

    def search(self, cycle: Cycle) -> VictimSearch:
        return self._turns_of_cycle(cycle).search

    def explain(self, cycle: Cycle, turn: Turn) -> str:
        """What evicting others would do for somebody who waits, as things stand; nothing is decided."""
        search, profile, now = self.search(cycle), turn.profile, cycle.now
        parked = cycle.queue.parked_as(turn)
        if parked is not None and not parked.preempts:
            return ""
        if not any(plugin.name in PLUGINS for plugin in profile.post_filter):
            return ""
        costs = self._costs.get(profile.name)
        if isinstance(turn, GangEntry):
            return "" if self._placer is None else make_room_for_gang(search, self._placer, turn, now, costs).message
        answer = refusals(profile, cycle.cluster, turn.record.shape)
        can_help = len(answer.rows) and not len(answer.feasible)
        return search.find(answer, turn.record.pod, now, costs).message if can_help else ""

    def _turns_of_cycle(self, cycle: Cycle) -> "SharedOutcomes":
        """What is known in this cycle."""
        turns, cluster, now = self._turns, cycle.cluster, cycle.now
        if turns is None or turns.search.cluster is not cluster or turns.now != now:
            search = self._search.of(cluster, VictimSearch, cluster, with_costs=bool(self._costs))
            turns = self._turns = SharedOutcomes(search, now)
        return turns

    def _take_turn(self, cycle: Cycle, parked: Parked, turn: Turn) -> list[Decision]:
        turns = self._turns_of_cycle(cycle)
        if turn.turn_name in turns.made_room:
            return []  # once a cycle: so that it ends, whatever anybody's priority counts for
        made: list[Decision] = []
        again_after = NEVER
        with cycle.attempt(turn) as attempt:
            check_progress(cycle.cluster, turn.turn_name, cycle.now)
            if isinstance(turn, GangEntry):
                made, again_after = self._gang_turn(turns.search, turn, parked, cycle.queue, turns.now)
            else:
                made, again_after = self._pod_turn(turns, turn, parked, cycle.queue)
            attempt.keep()
        if attempt.error is not None:
            return []
        parked.preempt_at[turn.arrival] = turns.now + again_after
        if any(isinstance(found, Evict) for found in made):
            turns.made_room.add(turn.turn_name)
        return made

    def _due(self, queue: Queue, now: float) -> list[tuple[Parked, Turn]]:
        """Those refused who have not had a turn since, or for whom it is time to try again, in queue order."""
        new: list[tuple[Parked, Turn]] = []
        for parked in queue.parked():
            if not _may_preempt(parked):
                continue
            # A group stays the same as long as nothing happens that could help it.
            known, turns = parked.preempt_at, parked.turns()
            new += [(parked, turn) for turn in turns if known.get(turn.arrival, -math.inf) <= now]
            parked.preempt_again({turn.arrival: known.get(turn.arrival, NEVER) for turn in turns})
        return sorted(new, key=lambda found: (found[1].key, found[1].arrival))

    # A pod.

    def _pod_turn(
        self, turns: "SharedOutcomes", entry: Entry, parked: Parked, queue: Queue
    ) -> tuple[list[Decision], float]:
        """What is decided for a pod, and after how many seconds it is to be tried again."""
        key, profile = entry.record.key, entry.profile
        known = turns.known(entry, parked)
        if known is not None:
            return [Wait(key, known[0].message, known[0].plugins)], known[1]
        search = turns.search
        answer = refusals(profile, search.cluster, entry.record.shape)
        if not len(answer.rows) or len(answer.feasible):
            return [], NEVER  # something happened since that helps it: it is to be placed, not to preempt
        others = [plugin for plugin in profile.post_filter if plugin.name not in PLUGINS]
        nominated = _ask_others(others, entry, answer)
        if nominated is not None:
            return [nominated], NEVER
        if len(others) == len(profile.post_filter):
            return [], NEVER
        if why_not(answer, entry.record.pod) == ALREADY:
            plan = resume(search, queue, [entry], entry.record.priority)
            if plan is not None:
                message = f"{answer.message()} preemption: {ALREADY}"
                return [Wait(key, message, answer.refusing_plugins(), plan.holds[0].node)], NEVER
        found = search.find(answer, entry.record.pod, turns.now, self._costs.get(profile.name))
        wait = _wait(key, answer, found)
        if isinstance(found, Found):
            turns.in_vain.clear()
            reason = f"Preempted by pod {entry.record.pod.metadata.uid or key} on node {found.node}"
            plan = Plan(Reason.PREEMPTION, holds_of([entry], [found.row]))
            made = self._evict(search, found, Forced(reason, key, found.gangs), plan, queue)
            queue.set_aside(entry)
            return [*made.decisions, wait], NEVER
        again_after = NEVER if found.again_after is None else found.again_after
        if not others:
            turns.note_in_vain(entry, parked, wait, again_after)
        return [wait], again_after

    # A gang.

    def _gang_turn(
        self, search: VictimSearch, gang: GangEntry, parked: Parked, queue: Queue, now: float
    ) -> tuple[list[Decision], float]:
        """What is decided for a gang, and after how many seconds it is to be tried again."""
        has_plugin = any(plugin.name in PLUGINS for plugin in gang.profile.post_filter)
        is_nominated = any(plan.gang == gang.root.key for _, plan in search.cluster.plans())
        if self._placer is None or not has_plugin or is_nominated:
            return [], NEVER
        why = ", ".join(parked.verdict.reasons) if parked.verdict is not None else ""
        if is_being_made_room_for(search.cluster, gang):
            needed = needed_members(gang, search.cluster.gangs)
            plan = resume(search, queue, needed, gang.priority, gang.root.key)
            if plan is not None:
                queue.take(gang)
                message = f"{why} {BEFORE}{ALREADY}".strip()
                return [Wait(held.key, message, (GANGS,), held.node) for held in plan.holds], NEVER
        found = make_room_for_gang(search, self._placer, gang, now, self._costs.get(gang.profile.name))
        message = f"{why} {found.message}".strip()
        if isinstance(found, InVain):
            waits: list[Decision] = [Wait(key, message, (GANGS,)) for key in gang.entries]
            return waits, NEVER if found.again_after is None else found.again_after
        entries = dict(gang.entries)
        members = [entries[record.key] for record, _ in found.assignments]
        holds = holds_of(members, [row for _, row in found.assignments])
        reason = Forced(f"Preempted by pod group {gang.name}", members[0].record.key, found.gangs)
        made = self._evict(search, found, reason, Plan(Reason.PREEMPTION, holds, gang=gang.root.key), queue)
        queue.take(gang)
        for member in members:
            queue.set_aside(member)
        nodes = {held.key: held.node for held in made.plan.holds} if made.plan is not None else {}
        return [*made.decisions, *(Wait(key, message, (GANGS,), nodes.get(key, "")) for key in entries)], NEVER

    # Both.

    def _evict(
        self, search: VictimSearch, found: Found | GangFound, why: Forced, plan: Plan, queue: Queue
    ) -> Disrupted:
        """Decide to evict the victims; those that hold room and do not run yet give it up instead."""
        cluster = search.cluster
        made = disrupt(cluster, queue, found.victims, why, plan)
        told = {decision.pod for decision in made.decisions if isinstance(decision, Evict)}
        workloads, roots = set[str](), dict[str, GangRecord]()
        for victim in found.victims:
            if victim.key not in told:
                continue
            if (part := cluster.gangs.of(victim.key)) is not None:
                root = cluster.gangs.root_of(part)
                roots[root.key] = root
            workloads.add(search.running.workload_of(victim))
        for workload in sorted(workloads) if self._window else ():
            cluster.preemptions.note(workload, queue.now)
        for root in roots.values():
            queue.gang_shrank(root)
        return made


class Preempt(Action):
    """The action."""

    def __init__(self, preemption: Preemption) -> None:
        self._preemption = preemption

    def run(self, cycle: Cycle) -> list[Decision]:
        # 1. Bind pods that were given room in this cycle, and for which no running pod has to leave.
        decisions = follow_up(cycle)
        # 2. Make room for pods that have not had their turn.
        return decisions + self._preemption.rest(cycle)

    def explain(self, cycle: Cycle, turn: Turn) -> str:
        return self._preemption.explain(cycle, turn)


class SharedOutcomes:
    """What pods of one cycle have in common: for whom it was in vain, it is for all that are alike.

    They are alike only as long as they are parked together: whoever was tried again since may fare better.
    """

    def __init__(self, search: VictimSearch, now: float) -> None:
        self.search = search
        self.now = now
        self.in_vain: dict[Any, tuple[Wait, float, Parked]] = {}
        self.made_room = set[str]()
        """The turns that have evicted somebody in this cycle."""

    def _likeness(self, entry: Entry) -> Any:
        pod = entry.record.pod
        return (
            entry.profile.name,
            entry.record.shape.id,
            entry.record.priority,
            pod.spec.preemption_policy,
            pod.status.nominated_node_name,
            self.search.cluster.gangs.of_pod.get(entry.record.key),
        )

    def known(self, entry: Entry, parked: Parked) -> tuple[Wait, float] | None:
        found = self.in_vain.get(self._likeness(entry))
        return found[:2] if found is not None and found[2] is parked else None

    def note_in_vain(self, entry: Entry, parked: Parked, wait: Wait, again_after: float) -> None:
        self.in_vain[self._likeness(entry)] = (wait, again_after, parked)


def _may_preempt(parked: Parked) -> bool:
    return parked.preempts and not parked.is_capped and bool(parked.profile.post_filter)


def _wait(key: PodKey, answer: Evaluation, found: Found | InVain) -> Wait:
    node = found.node if isinstance(found, Found) else ""
    return Wait(key, f"{answer.message()} {found.message}", answer.refusing_plugins(), node)


def _ask_others(plugins: Sequence[PostFilter], entry: Entry, answer: Evaluation) -> Wait | None:
    """Ask users' own plugins, before anybody is evicted, whether they make room somewhere."""
    if not plugins:
        return None
    verdicts = ((answer.cluster.nodes.name(row), answer.verdict(i)) for i, row in enumerate(answer.rows.tolist()))
    refused = {name: verdict.rejection for name, verdict in verdicts if verdict is not None}
    for plugin in plugins:
        with faults_of(plugin, "post_filter"):
            node = plugin.post_filter(PodView.of(entry.record), answer.cluster.view, refused)
        if node is not None:
            return Wait(entry.record.key, answer.message(), answer.refusing_plugins(), node)
    return None


# Room that was being made before this scheduler saw it: the world says which pods are nominated where, and which are
# leaving. So a scheduler that was started anew goes on where another stopped.


def resume(
    search: VictimSearch, queue: Queue, entries: Sequence[Entry], priority: int, gang: GangKey = NO_GANG
) -> Plan | None:
    """Nominate pods to where the world has nominated them, if all fit there once those have left who are leaving."""
    cluster = search.cluster
    found = [cluster.nodes.row_of.get(entry.record.pod.status.nominated_node_name) for entry in entries]
    rows = [row for row in found if row is not None]
    leaving = [
        other
        for row in sorted(set(rows))
        for other in cluster.pods.on(row)
        if other.priority < priority and other.shape.terminating
    ]
    if not rows or len(rows) < len(entries) or not leaving:
        return None
    with search.running.supposing():
        for other in leaving:
            cluster.release(other.key)
        for entry, row in zip(entries, rows, strict=True):
            cluster.assume(entry.record.key, row)
        if not all_fit(cluster, entries):
            return None
    for other in leaving:
        cluster.mark_leaving(other.key)
    return nominate(cluster, queue, entries, rows, leaving, gang)
