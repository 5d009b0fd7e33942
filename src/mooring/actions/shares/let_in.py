"""The action: groups whose pods are made only once they are let in are told that they are, or why not.

Who is let in, `Share` has just decided, for the sake of its queue. Where Volcano has no queues, everybody is.
"""

from mooring.actions.shares.action import Share
from mooring.actions.shares.following import SharedJobs
from mooring.engine.action import Action, Cycle
from mooring.model.decisions import Decision, Enqueue, KeepOut
from mooring.model.gangs.gang import Gang, Stage
from mooring.model.keys import GangKey
from mooring.state.cluster import Cluster
from mooring.state.shares import Told


class LetIn(Action):
    """The action; it says each thing once."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._cluster: Cluster | None = None
        self._gangs: set[GangKey] = set()
        """Those that changed since the last cycle."""
        self._outside: dict[GangKey, Gang] = {}
        self._refused_seen = 0
        self._went_by: tuple[SharedJobs | None, int] = (None, 0)
        """By whose word, and which of them, was last decided."""

    def run(self, cycle: Cycle) -> list[Decision]:
        self._say_again(cycle.cluster)
        followed = self._share.followed
        went_by = (followed, 0 if followed is None else followed.times_let_in)
        if self._cluster is cycle.cluster and not self._gangs and (went_by == self._went_by or not self._outside):
            return []
        self._follow(cycle.cluster)
        asked = self._gangs if went_by == self._went_by else self._outside
        found = (self._decide(cycle.cluster, key, followed) for key in sorted(asked))
        decisions = [decision for decision in found if decision is not None]
        self._went_by = went_by
        self._gangs.clear()
        return decisions

    def _say_again(self, cluster: Cluster) -> None:
        """Look again at the gangs whose phase could not be written: they are told again."""
        seen, self._refused_seen = self._refused_seen, cluster.refused.position
        for failed in cluster.refused.since(seen):
            if isinstance(failed.decision, Enqueue | KeepOut):
                self._gangs.add(GangKey(failed.decision.gang))

    def _follow(self, cluster: Cluster) -> None:
        """Take in who waits to be let in by us."""
        if self._cluster is not cluster:
            self._cluster, self._gangs = cluster, cluster.gangs.watch()
            self._gangs.update(cluster.gangs.records, cluster.shares.told)
            self._outside = {}
        for key in self._gangs:
            record = cluster.gangs.records.get(key)
            gang = None if record is None else record.gang
            if record is None or gang is None or gang.stage is not Stage.OUTSIDE:
                self._outside.pop(key, None)
                if key in cluster.shares.told:
                    cluster.shares.tell(key, None)
            elif self._share.is_ours(cluster, record):
                self._outside[key] = gang
            else:
                self._outside.pop(key, None)

    def _decide(self, cluster: Cluster, key: GangKey, followed: SharedJobs | None) -> Decision | None:
        gang = self._outside.get(key)
        message = "" if followed is None else followed.why_outside(key)
        if gang is None or message is None or cluster.shares.told.get(key) == Told(gang.created, message):
            return None
        cluster.shares.tell(key, Told(gang.created, message))
        return KeepOut(key, message) if message else Enqueue(key)
