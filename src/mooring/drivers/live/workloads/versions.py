"""Workloads as they were last written by us: what a watch shows of the time before is not news.

Who was admitted and stopped again within a moment would look admitted to whoever reads the watch late, and hold quota
that others have been given since.
"""

from collections.abc import Callable
from dataclasses import replace

from mooring.model.events import Event, WorkloadLost, WorkloadSeen
from mooring.model.keys import WorkloadKey
from mooring.model.queued.gathering import QueuedWorkload


class WorkloadVersions:
    """Lets pass what is as new as our own writes; the rest is as the scheduler knows it."""

    def __init__(
        self,
        find: Callable[[WorkloadKey], QueuedWorkload | None],
        is_under_way: Callable[[WorkloadKey], bool],
        vanished: Callable[[WorkloadKey], None] = lambda key: None,
    ) -> None:
        """`find` gives a workload as the scheduler knows it; `is_under_way` says whether something is being written;
        `vanished` is told of those whose Workload is gone from the world."""
        self._find, self._is_under_way, self._vanished = find, is_under_way, vanished
        self._written: dict[WorkloadKey, int] = {}
        self._held_back: dict[WorkloadKey, WorkloadSeen] = {}

    def wrote(self, key: WorkloadKey, version: int) -> None:
        """We have written it, at that version."""
        self._written[key] = version

    def vanished(self, key: WorkloadKey) -> None:
        """What we have written is not there any more."""
        self._written.pop(key, None)
        self._vanished(key)

    def current(self, event: Event) -> Event:
        """What happened, but for what became of a Workload before we wrote it."""
        if isinstance(event, WorkloadLost):
            key = WorkloadKey(event.key)
            self._held_back.pop(key, None)
            self.vanished(key)
        if not isinstance(event, WorkloadSeen):
            return event
        key = event.workload.workload.key
        known = self._find(key)
        self._note_vanished(event, known)
        if known is None or not (self._is_under_way(key) or self._is_old(event)):
            self._held_back.pop(key, None)
            return event
        self._held_back[key] = event
        return WorkloadSeen(replace(event.workload, workload=known.workload))

    def take_news(self, key: WorkloadKey) -> WorkloadSeen | None:
        """What came while something was being written, and is as new as that."""
        event = self._held_back.get(key)
        if event is not None:
            self._note_vanished(event, self._find(key))
        if event is None or self._is_old(event):
            return None  # then the watch will bring what is newer
        return self._held_back.pop(key)

    def _note_vanished(self, event: WorkloadSeen, known: QueuedWorkload | None) -> None:
        """A Workload that was seen, and is now one that we would make: somebody has deleted it."""
        workload = event.workload.workload
        if known is not None and known.workload.metadata.resource_version and not workload.metadata.resource_version:
            self.vanished(workload.key)

    def _is_old(self, event: WorkloadSeen) -> bool:
        workload = event.workload.workload
        return int(workload.metadata.resource_version or 0) < self._written.get(workload.key, 0)
