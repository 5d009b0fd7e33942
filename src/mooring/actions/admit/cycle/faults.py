"""Workloads in whose turn something raised: they are left alone for a while, and for good if that goes on.

What raises while quota is planned for a workload costs that one its turn. What raises anywhere else costs the run: it
is undone (`Admit._give_up`), and the next one leaves the workload alone in whose turn it was.
"""

from types import TracebackType
from typing import NoReturn

from mooring.errors import TurnFailed
from mooring.model.keys import WorkloadKey


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
