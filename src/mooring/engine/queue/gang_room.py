"""Where the members of gangs gather: one entry for each outermost gang, tried when enough of it is there."""

from collections.abc import Iterable, Iterator

from mooring.engine.queue.entry import Entry, Where
from mooring.engine.queue.gang_entry import GangEntry, what_is_missing
from mooring.engine.verdict import Rejection
from mooring.model.keys import GangKey, PodKey
from mooring.state.gangs import GangRecord, GangTable


class GangRoom:
    """Gangs with members that wait. Whether one is complete is found out when the queue next asks, not pod by pod."""

    def __init__(self, table: GangTable) -> None:
        self.table = table
        self._gangs: dict[GangKey, GangEntry] = {}
        """By the outermost gang's key."""
        self._gang_of: dict[PodKey, GangEntry] = {}
        """By pod key."""
        self._changed: dict[GangKey, GangEntry] = {}

    def __iter__(self) -> Iterator[GangEntry]:
        return iter(self._gangs.values())

    def get(self, root: GangKey) -> GangEntry | None:
        return self._gangs.get(root)

    def join(self, entry: Entry) -> bool:
        """Let a pod wait with its gang; one that its gang does not need waits by itself, unless it has to be near."""
        root = self._root_for(entry)
        if root is None:
            return False
        gang = self._gangs.get(root.key)
        if gang is None:
            gang = self._gangs[root.key] = GangEntry(root, entry.arrival, entry.profile)
        gang.root = root  # it may have been declared anew
        gang.entries[entry.record.key] = entry
        self._gang_of[entry.record.key] = gang
        self._changed[root.key] = gang
        return True

    def is_in_place(self, entry: Entry) -> bool:
        """Whether a pod waits with the gang that it would join now, or by itself as it would."""
        root = self._root_for(entry)
        return self._gang_of.get(entry.record.key) is (None if root is None else self._gangs.get(root.key, root))

    def _root_for(self, entry: Entry) -> GangRecord | None:
        """The outermost gang that a pod is to wait with; None if it waits by itself."""
        record = self.table.of(entry.record.key) if self.table else None
        if record is None:
            return None
        root = self.table.root_of(record)
        return None if root.key not in self._gangs and self.table.can_spare(record) else root

    def leave(self, key: PodKey) -> None:
        gang = self._gang_of.pop(key, None)
        if gang is not None:
            gang.entries.pop(key, None)
            self._changed[gang.root.key] = gang

    def disband(self, gang: GangEntry) -> list[Entry]:
        """Give up a gang's entry; its members are to be queued anew, by themselves or with what has become of it."""
        entries = list(gang.entries.values())
        self._gangs.pop(gang.root.key, None)
        self._changed.pop(gang.root.key, None)
        for entry in entries:
            self._gang_of.pop(entry.record.key, None)
        gang.entries = {}
        return entries

    def affected_by(self, key: GangKey) -> list[GangEntry]:
        """The entries that have to do with a gang: as itself, or as a part of it."""
        record = self.table.records.get(key)
        found: dict[GangKey, GangEntry | None] = {key: self._gangs.get(key)}
        if record is not None:
            root = self.table.root_of(record).key
            found[root] = self._gangs.get(root)
            # Where its members wait now tells what it was a part of before.
            waiting = (self._gang_of.get(pod) for part in self.table.parts_of(record) for pod in part.members)
            found.update((gang.root.key, gang) for gang in waiting if gang is not None)
        return [gang for gang in found.values() if gang is not None]

    def look_again(self, gangs: Iterable[GangEntry]) -> None:
        self._changed.update((gang.root.key, gang) for gang in gangs)

    def look_again_after(self, key: GangKey) -> None:
        """A gang runs now, or does no longer: those that have to start after it may be tried, or no longer."""
        waiting = (self._gangs.get(follower) for follower in self.table.followers.get(key, ()))
        self.look_again(gang for gang in waiting if gang is not None)

    def settle(self) -> list[tuple[GangEntry, bool]]:
        """The gangs to which something happened since the last time, and whether enough of each is there."""
        if not self._changed:
            return []
        changed = [gang for gang in self._changed.values() if gang.where != Where.TAKEN]
        # Whoever is being tried is looked at again when it is back.
        self._changed = {key: gang for key, gang in self._changed.items() if gang.where == Where.TAKEN}
        for gang in changed:
            if not gang.entries:
                self._gangs.pop(gang.root.key, None)
        return [(gang, self.is_complete(gang)) for gang in changed]

    def is_complete(self, gang: GangEntry) -> bool:
        """Whether a gang can be tried."""
        return bool(gang.entries) and not what_is_missing(gang, self.table)

    def gathering(self) -> Iterator[tuple[Entry, Rejection]]:
        """The pods whose gang lacks something, each with what that is."""
        for gang in self:
            if gang.where == Where.GATHERING:
                rejection = Rejection((what_is_missing(gang, self.table),))
                yield from ((entry, rejection) for entry in gang.entries.values())
