"""Room that is kept for a gang that has waited long: no starvation, and backfill where it does no harm.

The first gang in the queue that has waited long enough, and would fit if nothing else ran, gets a reservation. Whenever
its turn comes and it still does not fit, its members take the places that they will have once others have ended, until
the end of the cycle: so nobody behind it takes what is free there, or will be; whoever is ahead of it has had its turn
before. Two kinds of pods may pass: those that end before the gang could start, as far as durations are known, and those
that it may evict at once when its room is complete, because their priority is lower. Between cycles nothing is held:
the gang itself has nothing until it has all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mooring.actions.gangs.forecast import Forecast
from mooring.actions.gangs.placing import GangPlacer
from mooring.engine.action import Cycle
from mooring.engine.plugin import Change
from mooring.engine.queue.entries import PLUGIN
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.engine.verdict import Rejection, Verdict
from mooring.model.keys import NO_GANG, GangKey
from mooring.model.values.durations import duration_seconds
from mooring.state.cluster import Cluster
from mooring.state.forecasts import GangForecast
from mooring.state.plans import Held, Plan, PlanId, Reason
from mooring.state.waiting import Where

T = TypeVar("T")


@dataclass
class GangReservation:
    """What is held for a gang just now."""

    gang: GangEntry
    priority: int
    may_preempt: bool
    forecast: GangForecast
    plan: PlanId
    kept_out: set[tuple[str, int]] = field(default_factory=set)
    """The profiles and shapes that were refused because of it, with nobody bound since."""
    gangs_kept_out: dict[Any, bool] = field(default_factory=dict)
    """Whether gangs were, by what they have in common, with nobody bound since."""


class Reservation:
    """At most one at a time."""

    def __init__(self, placer: GangPlacer, after_seconds: float) -> None:
        self._placer = placer
        self._after = after_seconds
        self._forecast = Forecast(placer)
        self.held: GangReservation | None = None

    def begin(self, cycle: Cycle) -> None:
        """Give the gang that is to get the reservation its turn, if there is anybody to keep the room from."""
        cluster, queue, now = cycle.cluster, cycle.queue, cycle.now
        if cluster.waiting.room_kept_for and not self._waits(cycle, cluster.waiting.room_kept_for):
            cluster.waiting.keep_room_for(NO_GANG)
            queue.note(Change.POD_GONE)  # the gang runs or is gone: what was held for it is anybody's
        if self._after < 0 or not len(queue):
            return
        waiting = [
            gang for gang in queue.gangs if gang.where in (Where.PARKED, Where.BACKOFF) and self._has_waited(gang, now)
        ]
        for gang in sorted(waiting, key=lambda gang: (gang.key, gang.arrival)):
            can_fit = False
            with cycle.attempt(gang):
                can_fit = self._forecast.could_ever_fit(cluster, gang)
            if can_fit and queue.bring_forward(gang):
                return

    def _waits(self, cycle: Cycle, key: GangKey) -> bool:
        gang = cycle.queue.gangs.get(key)
        return gang is not None and gang.where is Where.PARKED

    def _has_waited(self, gang: GangEntry, now: float) -> bool:
        """Whether a gang that was tried in vain has waited long enough: since then, or since the last member came."""
        if gang.first_tried is None:
            return False
        complete_since = max((entry.queued_at for entry in gang.entries.values()), default=now)
        return now - min(gang.first_tried, complete_since) >= self._after

    def hold(self, cluster: Cluster, gang: GangEntry, now: float) -> None:
        """Hold what is free for a gang that was just refused, if it has waited long enough and nobody else holds."""
        if self.held is not None:
            cluster.waiting.keep_room_for(self.held.gang.root.key)  # the refused gang might have had that room
        elif self._after >= 0 and self._has_waited(gang, now) and self._forecast.could_ever_fit(cluster, gang):
            forecast = self._forecast.plan(cluster, gang, now)
            if forecast is not None:
                # The members have their rows, though others may still be there: no other pod fits in then.
                holds = tuple(Held(key, row) for key, row in zip(forecast.members, forecast.rows, strict=True))
                plan_id = cluster.adopt(Plan(Reason.RESERVATION, holds, subject=gang.root.key))
                self.held = GangReservation(gang, gang.priority, gang.may_preempt, forecast, plan_id)

    def end(self, cluster: Cluster) -> None:
        """Let go of everything that is held."""
        if self.held is not None:
            if cluster.is_adopted(self.held.plan):
                cluster.drop(self.held.plan)
            self.held = None

    def let_go_of(self, gang: GangEntry, cluster: Cluster) -> None:
        """A gang is tried again: it must not stand in its own way."""
        if self.held is not None and self.held.gang is gang:
            self.end(cluster)

    # Others while room is held.

    def is_open_to(self, entry: Entry, now: float) -> bool:
        """Whether a pod may take room that is held: it ends in time, or makes way at once."""
        held = self.held
        if held is None:
            return False
        if entry.record.priority < held.priority and held.may_preempt:
            return True
        duration = duration_seconds(entry.record.pod)
        return duration is not None and now + duration <= held.forecast.start

    def lifted(self, cluster: Cluster, decide: Callable[[], T]) -> T:
        """Decide for a pod or gang that may see the room that is held."""
        held = self.held
        assert held is not None
        self.held = None
        try:
            with cluster.lifted(held.plan):
                return decide()
        finally:
            self.held = held

    def note_bound(self, cluster: Cluster, entries: Sequence[Entry], now: float) -> None:
        """Others were bound: what was refused before may be another matter now."""
        if self.held is not None:
            self.held.kept_out.clear()
            self.held.gangs_kept_out.clear()
            self._forecast.saw_start(cluster, [entry.record.pod for entry in entries], now)

    def message_for(self, cluster: Cluster, refused: GangEntry) -> str:
        """What to tell a gang that would have had its places but for the room that is held; empty if it would not."""
        held = self.held
        if held is None:
            return ""
        alike = self._placer.likeness(cluster, refused)
        is_kept_out = held.gangs_kept_out.get(alike)
        if is_kept_out is None:
            is_kept_out = not self.lifted(cluster, lambda: self._placer.place_message(cluster, refused))
            if alike is not None:
                held.gangs_kept_out[alike] = is_kept_out
        return f"gang {refused.name}: {_kept_for(held)}" if is_kept_out else ""

    def is_kept_out(self, entry: Entry) -> bool:
        """Whether a pod of the same shape was just refused because of the room that is held."""
        return self.held is not None and (entry.profile.name, entry.record.shape.id) in self.held.kept_out

    def verdict_on(self, cluster: Cluster, refused: Entry) -> Verdict | None:
        """What to tell a pod that would have had a place but for the room that is held."""
        held = self.held
        assert held is not None
        if not self.is_kept_out(refused):
            with cluster.what_if(), cluster.lifted(held.plan):
                row = self._placer.batches.choose(cluster, refused.profile, refused.record.shape)
            if row < 0:
                return None
            held.kept_out.add((refused.profile.name, refused.record.shape.id))
        cluster.waiting.keep_room_for(held.gang.root.key)
        return Verdict(PLUGIN, Rejection((_kept_for(held),)))


def _kept_for(held: GangReservation) -> str:
    return f"room is kept for gang {held.gang.name}, which is ahead"
