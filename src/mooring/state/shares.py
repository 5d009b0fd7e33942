"""What queues that share a cluster had and were told, as far as it cannot be found out from the objects of the cluster.

By family of queues: what they had in the past, and which jobs were let in. By gang: what it was told of being let in.
All of this is on the undo log.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from mooring.model.keys import GangKey
from mooring.state.undo import UndoLog

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PastUse:
    """What the queues of one family had until a moment: amounts times seconds, later ones counting more."""

    as_of: float
    used: Mapping[str, Mapping[str, float]]
    """By queue and resource."""
    available: Mapping[str, float]
    """What the whole cluster had, counted alike."""
    held: Mapping[str, Mapping[str, int]]
    """What each queue has held since then."""
    total: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Told:
    """What a gang was told: that it is let in, or why not."""

    created: float | None
    """When the gang was created: another may have its name by now."""
    why_not: str


class ShareRecords:
    """The records; only the cluster's actions for shares write them."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self.past: dict[str, PastUse] = {}
        """By family."""
        self.told: dict[GangKey, Told] = {}
        self._let_in: dict[tuple[str, str], bool] = {}

    def is_let_in(self, family: str, job: str) -> bool:
        """Whether a job was let in: it stays so until it is gone."""
        return (family, job) in self._let_in

    def jobs_let_in(self, family: str) -> set[str]:
        return {job for of, job in self._let_in if of == family}

    def let_in(self, family: str, job: str) -> None:
        self._set(self._let_in, (family, job), True)

    def forget(self, family: str, job: str) -> None:
        """The job is gone."""
        self._set(self._let_in, (family, job), None)

    def remember(self, family: str, past: PastUse | None) -> None:
        self._set(self.past, family, past)

    def tell(self, gang: GangKey, told: Told | None) -> None:
        """Note what a gang is told; None: that it is to be told again."""
        self._set(self.told, gang, told)

    def _set(self, records: dict[Key, Value], key: Key, value: Value | None) -> None:
        before = records.get(key)
        if before == value:
            return
        self._log.note(self._set, records, key, before)
        if value is None:
            records.pop(key, None)
        else:
            records[key] = value
