"""Keep gangs whole: complete one that lost a member, or release all of it.

A gang falls short when a bind fails, a node disappears or a member is gone. What is missing is placed at once if there
is room. If not, a gang that is still starting is released on the spot; one that ran already gets time for its members
to come back, up to the timeout. To release is to evict every member that has a node: nothing of the gang is left to
hold room that others could use. Of a gang of gangs only the part that fell short is released, if the others are enough.
"""

from collections.abc import Iterable

from mooring.actions.gangs.placing import GangOutcome, GangPlacer, bind_all
from mooring.engine.action import Action, Cycle
from mooring.engine.evictions import evict
from mooring.engine.queue.gangs import PLUGIN
from mooring.model.decisions import Decision, Evict, Wait
from mooring.model.keys import GangKey
from mooring.state.gangs import GangRecord, GangTable


class KeepWhole(Action):
    """The action; `timeout` is for gangs that name none of their own."""

    def __init__(self, placer: GangPlacer, timeout: float) -> None:
        self._placer = placer
        self._timeout = timeout
        # All by the key of a gang of pods, of which some run.
        self._short_since: dict[GangKey, float] = {}
        """When it was first seen without all that it needs."""
        self._starting_since: dict[GangKey, float] = {}
        """When it was first seen whole with members that the world has not confirmed."""
        self._ran = set[GangKey]()
        """Those that have been whole in the world's eyes, too."""

    def run(self, cycle: Cycle) -> list[Decision]:
        cluster, queue, now = cycle.cluster, cycle.queue, cycle.now
        table = cluster.gangs
        touched = table.take_touched()
        if not touched and not self._short_since and not self._starting_since:
            return []
        for key in _with_those_around(touched, table):
            queue.gangs.look_again_after(key)
        late = (
            key
            for key, since in self._starting_since.items()
            if key in table.records and now - since > self._timeout_of(table.records[key], table)
        )
        decisions: list[Decision] = []
        for root in self._outermost({*touched, *self._short_since, *late}, table):
            queue.review(root)
            decided = self._look_at(root, cycle)
            if any(isinstance(found, Evict) for found in decided):
                queue.gang_shrank(root)
            elif decided:
                queue.review(root)
            decisions += decided
        return decisions

    def _outermost(self, keys: Iterable[GangKey], table: GangTable) -> list[GangRecord]:
        """The gangs that others are a part of, in order; what is known of gangs that are gone is forgotten."""
        found: dict[GangKey, GangRecord] = {}
        for key in sorted(keys):
            if key in table.records:
                root = table.root_of(table.records[key])
                found[root.key] = root
            else:
                self._forget(key)
        return list(found.values())

    def next_wake(self, now: float) -> float | None:
        """When the first gang's time to start, or to be completed, is up."""
        times = [since + self._timeout for since in (*self._short_since.values(), *self._starting_since.values())]
        return min((time for time in times if time > now), default=None)

    def _look_at(self, root: GangRecord, cycle: Cycle) -> list[Decision]:
        queue, table = cycle.queue, cycle.cluster.gangs
        running = self._running_parts(root, table)
        is_whole = table.is_whole(root)
        is_short = not is_whole or not all(part.is_whole() for part in running)
        if not all(part.is_whole() for part in (*table.parts_of(root), root)):
            queue.gather(root)  # whoever waits by itself is needed now
        if not running or not is_short:
            for part in (root, *running):
                self._short_since.pop(part.key, None)
                queue.gangs.look_again_after(part.key)
            return [found for part in running for found in self._follow_start(part, cycle)]
        decisions = self._complete(root, cycle)
        is_whole = table.is_whole(root)
        for part in running:
            if is_whole and part.is_whole():
                self._short_since.pop(part.key, None)
            else:
                decisions += self._release_in_time(part, cycle)
        return decisions

    def _running_parts(self, root: GangRecord, table: GangTable) -> list[GangRecord]:
        running: list[GangRecord] = []
        for part in table.parts_of(root):
            if root.gang is not None and part.gang is not None and part.bound():
                running.append(part)
            else:
                self._forget(part.key)
        return running

    def _follow_start(self, part: GangRecord, cycle: Cycle) -> list[Decision]:
        """A gang that has all it needs runs once the world confirms it, and is released if that takes too long."""
        cluster, now = cycle.cluster, cycle.now
        if part.is_whole([member for member in part.bound() if not member.assumed]):
            self._starting_since.pop(part.key, None)
            self._ran.add(part.key)
            return []
        timeout = self._timeout_of(part, cluster.gangs)
        if now - self._starting_since.setdefault(part.key, now) <= timeout:
            return []
        return self._release(part, cycle, f"gang {_name(part)} did not start within {timeout:g}s")

    def _release_in_time(self, part: GangRecord, cycle: Cycle) -> list[Decision]:
        """Release a gang that could not be completed: at once, or when its time is up."""
        cluster, now = cycle.cluster, cycle.now
        since = self._short_since.setdefault(part.key, now)
        bound = part.bound()
        if not bound:
            return []  # with another part of the same gang
        lineage = cluster.gangs.lineage(part)
        missing = _missing(part, lineage[-1], cluster.gangs)
        timeout = self._timeout_of(part, cluster.gangs)
        is_starting = part.key in self._starting_since or any(member.assumed for member in bound)
        if is_starting and part.key not in self._ran:
            return self._release(part, cycle, f"gang {_name(part)} could not start: {missing}")
        if part.key in self._ran and part.gang is not None and not part.gang.evicted_whole:
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
            outcome = self._placer.place(cycle.cluster, gang)
            attempt.keep()
        if attempt.error is not None:
            return []
        if not outcome.placed:
            queue.park_gang(gang, outcome.message, outcome.helped_by, outcome.moved_by)
            return [Wait(key, outcome.message, (PLUGIN,)) for key in gang.entries]
        return bind_all(cycle.cluster, queue, gang, outcome.placed)

    def _release(self, part: GangRecord, cycle: Cycle, reason: str) -> list[Decision]:
        """Evict every member that has a node; of the gangs that this one is a part of, those that need it, too."""
        cluster, queue = cycle.cluster, cycle.queue
        table = cluster.gangs
        decisions: list[Decision] = []
        going = part
        for member in part.bound():
            decisions += evict(cluster, queue, member, "", reason)
        for outer in table.lineage(part)[1:]:
            if table.is_whole(outer):
                break
            going = outer
        for other in list(table.parts_of(going)):
            for member in other.bound():
                decisions += evict(cluster, queue, member, "", reason)
            self._forget(other.key)
        self._forget(part.key)
        return decisions

    def _forget(self, key: GangKey) -> None:
        self._short_since.pop(key, None)
        self._starting_since.pop(key, None)
        self._ran.discard(key)


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
