"""Keep gangs whole: complete one that lost a member, or release all of it.

A gang falls short when a bind fails, a node disappears or a member is gone. What is missing is placed at once if there
is room. If not, a gang that is still starting is released on the spot; one that ran already gets time for its members
to come back, up to the timeout. To release is to evict every member that has a node: nothing of the gang is left to
hold room that others could use. Of a gang of gangs only the part that fell short is released, if the others are enough.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from mooring.actions.gangs.members import needed_members
from mooring.actions.gangs.placing import GangOutcome, GangPlacer, bind_all
from mooring.engine.action import Action, Cycle
from mooring.engine.disruption import Forced, disrupt
from mooring.engine.queue.entries import PLUGIN
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.model.decisions import Decision, Evict, Wait
from mooring.model.keys import GangKey
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord, GangTable

RETRY_SECONDS = 30.0
"""How long a gang may be partial while binds of its members are refused and tried again: to release it is to delete the
pods that are bound."""


class QueueLimits(Protocol):
    """What the queues of one family may hold at most."""

    def why_beyond_limits(self, cycle: Cycle, gang: GangEntry, entries: Sequence[Entry]) -> str:
        """Why the queue of a gang may not hold some more of its members; empty if it may, or is of another family."""


class KeepWhole(Action):
    """The action; `timeout` is for gangs that name none of their own."""

    def __init__(self, placer: GangPlacer, timeout: float, limits: Sequence[QueueLimits] = ()) -> None:
        """`limits` are those of the families of shared queues."""
        self._placer = placer
        self._limits = limits
        self._timeout = timeout

    def is_idle(self, cycle: Cycle) -> bool:
        starts = cycle.cluster.gang_starts
        return not cycle.cluster.gangs.touched and not starts.short_since and not starts.starting_since

    def run(self, cycle: Cycle) -> list[Decision]:
        cluster, queue, now = cycle.cluster, cycle.queue, cycle.now
        table, starts = cluster.gangs, cluster.gang_starts
        touched = table.take_touched()
        for key in _with_those_around(touched, table):
            queue.gangs.look_again_after(key)
        late = (
            key
            for key, since in starts.starting_since.items()
            if key in table.records and now - since > self._timeout_of(table.records[key], table)
        )
        decisions: list[Decision] = []
        for root in self._outermost({*touched, *starts.short_since, *late}, cluster):
            queue.review(root)
            decided = self._look_at(root, cycle)
            if any(isinstance(found, Evict) for found in decided):
                queue.gang_shrank(root)
            elif decided:
                queue.review(root)
            decisions += decided
        starts.forget_recalled()  # a gang that is whole by now and falls short later has all of its time
        return decisions

    def _outermost(self, keys: Iterable[GangKey], cluster: Cluster) -> list[GangRecord]:
        """The gangs that others are a part of, in order; what is known of gangs that are gone is forgotten."""
        table, found = cluster.gangs, dict[GangKey, GangRecord]()
        for key in sorted(keys):
            if key in table.records:
                root = table.root_of(table.records[key])
                found[root.key] = root
            else:
                cluster.gang_starts.forget(key)
        return list(found.values())

    def next_wake(self, cluster: Cluster, now: float) -> float | None:
        """When the first gang's time to start, or to be completed, is up."""
        table, starts = cluster.gangs, cluster.gang_starts
        since = (*starts.short_since.items(), *starts.starting_since.items())
        times = [at + self._timeout_of(table.records[key], table) for key, at in since if key in table.records]
        # A gang is released once its time is exceeded.
        return min((math.nextafter(time, math.inf) for time in times if time >= now), default=None)

    def _look_at(self, root: GangRecord, cycle: Cycle) -> list[Decision]:
        queue, table, starts = cycle.queue, cycle.cluster.gangs, cycle.cluster.gang_starts
        running = self._running_parts(root, cycle.cluster)
        is_whole = table.is_whole(root)
        is_short = not is_whole or not all(part.is_whole() for part in running)
        if not all(part.is_whole() for part in (*table.parts_of(root), root)):
            queue.gather(root)  # whoever waits by itself is needed now
        if not running or not is_short:
            for part in (root, *running):
                starts.is_complete(part.key)
                queue.gangs.look_again_after(part.key)
            return [found for part in running for found in self._follow_start(part, cycle)]
        decisions = self._complete(root, cycle)
        is_whole = table.is_whole(root)
        for part in running:
            if is_whole and part.is_whole():
                starts.is_complete(part.key)
            else:
                decisions += self._release_in_time(part, cycle)
        return decisions

    def _running_parts(self, root: GangRecord, cluster: Cluster) -> list[GangRecord]:
        running: list[GangRecord] = []
        for part in cluster.gangs.parts_of(root):
            if root.gang is not None and part.gang is not None and part.bound():
                running.append(part)
            else:
                cluster.gang_starts.forget(part.key)
        return running

    def _follow_start(self, part: GangRecord, cycle: Cycle) -> list[Decision]:
        """A gang that has all it needs runs once the world confirms it, and is released if that takes too long."""
        cluster, now = cycle.cluster, cycle.now
        if part.is_whole([member for member in part.bound() if not member.assumed]):
            cluster.gang_starts.runs(part.key)
            return []
        timeout = self._timeout_of(part, cluster.gangs)
        if now - cluster.gang_starts.is_starting(part.key, now) <= timeout:
            return []
        return self._release(part, cycle, f"gang {_name(part)} did not start within {timeout:g}s")

    def _release_in_time(self, part: GangRecord, cycle: Cycle) -> list[Decision]:
        """Release a gang that could not be completed: at once, or when its time is up."""
        cluster, now, starts = cycle.cluster, cycle.now, cycle.cluster.gang_starts
        since = starts.is_short(part.key, now)
        bound = part.bound()
        if not bound:
            return []  # with another part of the same gang
        lineage = cluster.gangs.lineage(part)
        missing = _missing(part, lineage[-1], cluster.gangs)
        timeout = self._timeout_of(part, cluster.gangs)
        is_starting = part.key in starts.starting_since or any(member.assumed for member in bound)
        if is_starting and part.key not in starts.ran:
            retried = any(cycle.queue.is_held_back(key) for key in part.members)
            if retried and now - since <= RETRY_SECONDS:
                return []  # the bind of a member was refused, and is tried again soon
            return self._release(part, cycle, f"gang {_name(part)} could not start: {missing}")
        if part.key in starts.ran and part.gang is not None and not part.gang.evicted_whole:
            return []  # its members may go one by one, and the others go on without them
        if any(found.gang is not None and found.gang.restarts_whole for found in lineage):
            return self._release(part, cycle, f"gang {_name(part)} restarts as a whole: {missing}")
        if now - since > timeout:
            return self._release(part, cycle, f"gang {_name(part)} was not whole for {timeout:g}s: {missing}")
        return []

    def _timeout_of(self, record: GangRecord, table: GangTable) -> float:
        own = (found.gang.timeout_seconds for found in table.lineage(record) if found.gang is not None)
        return next((seconds for seconds in own if seconds is not None), self._timeout)

    def _complete(self, root: GangRecord, cycle: Cycle) -> list[Decision]:
        """Place the members that are missing, if they exist and fit; else they wait."""
        queue = cycle.queue
        gang = queue.gangs.get(root.key)
        if gang is None or queue.nothing_happened_for(gang) or not queue.take(gang):
            return []
        outcome = GangOutcome()
        with cycle.attempt(gang) as attempt:
            outcome = self._place(cycle, gang)
            attempt.keep()
        if attempt.error is not None:
            return []
        if not outcome.placed:
            queue.park_gang(gang, outcome.message, outcome.helped_by, outcome.moved_by)
            return [Wait(key, outcome.message, (PLUGIN,)) for key in gang.entries]
        return bind_all(cycle.cluster, queue, gang, outcome.placed)

    def _place(self, cycle: Cycle, gang: GangEntry) -> GangOutcome:
        """Place the members that are missing; those of a shared queue only within its limits."""
        needed = needed_members(gang, cycle.cluster.gangs)
        refusals = (limits.why_beyond_limits(cycle, gang, needed) for limits in self._limits)
        why = next(filter(None, refusals), "")
        return GangOutcome((), f"gang {gang.name}: {why}") if why else self._placer.place(cycle.cluster, gang)

    def _release(self, part: GangRecord, cycle: Cycle, reason: str) -> list[Decision]:
        """Evict every member that has a node; of the gangs that this one is a part of, those that need it, too."""
        cluster, queue = cycle.cluster, cycle.queue
        table = cluster.gangs
        going = part
        decisions = disrupt(cluster, queue, part.bound(), Forced(reason)).decisions
        for outer in table.lineage(part)[1:]:
            if table.is_whole(outer):
                break
            going = outer
        for other in list(table.parts_of(going)):
            decisions += disrupt(cluster, queue, other.bound(), Forced(reason)).decisions
            cluster.gang_starts.forget(other.key)
        cluster.gang_starts.forget(part.key)
        return decisions


def _with_those_around(keys: Iterable[GangKey], table: GangTable) -> list[GangKey]:
    """Some gangs, and those that they are a part of."""
    known = (table.records[key] for key in keys if key in table.records)
    return sorted({*keys, *(found.key for record in known for found in table.lineage(record))})


def _name(part: GangRecord) -> str:
    return part.gang.name if part.gang is not None else part.key


def _missing(part: GangRecord, root: GangRecord, table: GangTable) -> str:
    assert part.gang is not None and root.gang is not None
    lacks = part.lacks(part.bound())
    if lacks:
        return f"{lacks} of {part.gang.minimum} members missing"
    whole = sum(table.is_whole(inside) for inside in table.inside(root))
    return f"{root.gang.minimum - whole} of {root.gang.minimum} gangs missing in gang {root.gang.name}"
