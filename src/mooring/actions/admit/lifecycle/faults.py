"""Workloads in whose turn something raised: they are left alone for a while, and for good if that goes on.

What raises while quota is planned for a workload costs that one its turn. What raises anywhere else costs the run: it
is undone (`Lifecycle.take_back`), and the next one leaves the workload alone in whose turn it was.
"""

import math
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import NamedTuple, NoReturn

from mooring.engine.action import Fault
from mooring.engine.queue.backoff import Backoff
from mooring.errors import TurnFailed
from mooring.model.keys import WorkloadKey

MOST_FAULTS = 5
"""So often something may raise in a workload's turn before it is left alone until a node or an object changes."""


def blame(key: WorkloadKey | None, error: Exception) -> NoReturn:
    """Something raised in the turn of a workload, or of nobody: for loops too busy for `in_turn_of`."""
    if key is None or isinstance(error, TurnFailed | MemoryError):
        raise error
    raise TurnFailed(key, error) from error


class in_turn_of:  # noqa: N801  it reads as a phrase: with in_turn_of(workload.key)
    """What is raised inside is raised in the turn of this workload."""

    __slots__ = ("_key",)

    def __init__(self, key: WorkloadKey) -> None:
        self._key = key

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, Exception):
            blame(self._key, error)


class _Failed(NamedTuple):
    times: int
    until: float
    message: str
    workload: object
    """What the world said of it then."""
    moment: object
    """What the world said of nodes and objects then."""


class SetAside:
    """Who is left alone, and until when."""

    def __init__(self) -> None:
        self._failed: dict[WorkloadKey, _Failed] = {}
        self._aside: set[WorkloadKey] = set()
        """Those of them that are left alone; the others have come back, and not got through yet."""
        self.unread: set[WorkloadKey] = set()
        """Those of whom it is not known what they are: something raised while they were taken in."""

    def __contains__(self, key: object) -> bool:
        return key in self._aside

    def add(
        self, key: WorkloadKey, error: Exception, backoff: Backoff, now: float, *, workload: object, moment: object
    ) -> None:
        """Something raised in the turn of a workload."""
        known = self._failed.get(key)
        times = 1 if known is None else known.times + 1
        until = math.inf if times >= MOST_FAULTS else backoff.end(now, times)
        self._failed[key] = _Failed(times, until, Fault(key, error).message, workload, moment)
        self._aside.add(key)

    def message(self, key: WorkloadKey) -> str:
        return self._failed[key].message

    def take_due(self, now: float, workloads: Mapping[WorkloadKey, object], moment: object) -> list[WorkloadKey]:
        """Who is to be tried again: its backoff is over, or it is another than then; of those that are left alone for
        good, also if nodes or objects are."""
        due = []
        for key in self._aside:
            failed = self._failed[key]
            is_helped = failed.until == math.inf and failed.moment != moment
            if failed.until <= now or is_helped or workloads.get(key) is not failed.workload:
                due.append(key)
        self._aside.difference_update(due)
        self.unread.difference_update(due)
        return sorted(due)

    def forget(self, keys: Iterable[WorkloadKey]) -> None:
        """These got through, or are gone."""
        for key in keys:
            self._failed.pop(key, None)
            self._aside.discard(key)
            self.unread.discard(key)

    def come_back(self) -> list[WorkloadKey]:
        """Those who were set aside, and are not any more."""
        return [key for key in self._failed if key not in self._aside]

    @property
    def next(self) -> float | None:
        """When somebody comes back though nothing happens."""
        times = [self._failed[key].until for key in self._aside]
        return min((time for time in times if time < math.inf), default=None)
