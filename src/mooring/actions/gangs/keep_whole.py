"""Keep gangs whole: complete one that lost a member, or release all of it.

A gang falls short when a bind fails, a node disappears or a member is gone. What is missing is placed at once if there
is room. If not, a gang that is still starting is released on the spot; one that ran already gets time for its members
to come back, up to the timeout. To release is to evict every member that has a node: nothing of the gang is left to
hold room that others could use.
"""

from mooring.actions.gangs.placing import GangPlacer, bind_all
from mooring.engine.queue import Queue
from mooring.model.decisions import Decision, Evict
from mooring.state.cluster import Cluster
from mooring.state.gangs import GangRecord


class KeepWhole:
    """The action; `timeout` is for gangs that name none of their own."""

    def __init__(self, placer: GangPlacer, timeout: float) -> None:
        self._placer = placer
        self._timeout = timeout
        self._short_since: dict[str, float] = {}
        """When a gang that had begun to run was first seen without all that it needs."""
        self._starting_since: dict[str, float] = {}

    def run(self, cluster: Cluster, queue: Queue, now: float, at_most: int) -> list[Decision]:
        table = cluster.gangs
        starting = self._starting_since.items()
        late = {key for key, since in starting if now - since > self._timeout_of(table.records.get(key))}
        touched, table.touched = table.touched, set()
        decisions: list[Decision] = []
        for key in sorted({*touched, *self._short_since, *late}):
            record = table.records.get(key)
            if record is not None and record.gang is not None and record.bound():
                decisions += self._look_at(record, cluster, queue, now)
            else:
                self._forget(key)
        return decisions

    def _look_at(self, record: GangRecord, cluster: Cluster, queue: Queue, now: float) -> list[Decision]:
        assert record.gang is not None
        bound = record.bound()
        timeout = self._timeout_of(record)
        unconfirmed = [member for member in bound if member.assumed]
        if record.is_whole():
            self._short_since.pop(record.key, None)
            if not unconfirmed:
                self._starting_since.pop(record.key, None)
            elif now - self._starting_since.setdefault(record.key, now) > timeout:
                reason = f"gang {record.gang.name} did not start within {timeout:g}s"
                return self._release(record, cluster, reason)
            return []
        since = self._short_since.setdefault(record.key, now)
        completed = self._complete(record, cluster, queue)
        if completed:
            self._short_since.pop(record.key, None)
            return completed
        missing = f"{record.lacks(bound)} of {record.gang.minimum} members missing"
        if unconfirmed or record.key in self._starting_since:
            return self._release(record, cluster, f"gang {record.gang.name} could not start: {missing}")
        if record.gang.restarts_whole:
            return self._release(record, cluster, f"gang {record.gang.name} restarts as a whole: {missing}")
        if now - since > timeout:
            return self._release(record, cluster, f"gang {record.gang.name} was not whole for {timeout:g}s: {missing}")
        return []

    def _timeout_of(self, record: GangRecord | None) -> float:
        own = record.gang.timeout_seconds if record is not None and record.gang is not None else None
        return self._timeout if own is None else own

    def _complete(self, record: GangRecord, cluster: Cluster, queue: Queue) -> list[Decision]:
        """Place the members that are missing, if they exist and fit."""
        gang = queue.gangs.get(cluster.gangs.root_of(record).key)
        if gang is None or not queue.take(gang):
            return []
        outcome = self._placer.place(cluster, gang)
        if not outcome.placed:
            queue.park_gang(gang, outcome.message, outcome.helped_by, outcome.moved_by)
            return []
        return bind_all(queue, gang, outcome.placed)

    def _release(self, record: GangRecord, cluster: Cluster, reason: str) -> list[Decision]:
        """Evict every member that has a node, of the whole gang that this one is a part of."""
        decisions: list[Decision] = []
        root = cluster.gangs.root_of(record)
        for part in list(cluster.gangs.parts_of(root)):
            for member in part.bound():
                cluster.gangs.expel(member.key)
                decisions.append(Evict(member.key, member.node_name, "", reason))
            self._forget(part.key)
        return decisions

    def _forget(self, key: str) -> None:
        self._short_since.pop(key, None)
        self._starting_since.pop(key, None)
