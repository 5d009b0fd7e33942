"""What was when: every change with its time, so that any moment can be put together again exactly."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Key = tuple[str, ...]
Value = tuple[Any, ...]
MOST_CHANGES = 500_000
"""Changes that are kept; of what was before the oldest one, nothing is known any more."""


class Change(NamedTuple):
    """What a key stood for before and after; None: there was none, or there is none any more."""

    at: float
    key: Key
    before: Value | None
    after: Value | None


@dataclass(frozen=True)
class Difference:
    """What is different between two moments, with what there was at each."""

    key: Key
    before: Value | None
    after: Value | None


class Journal:
    """Keys with their values now, and every change that led here. A moment is the present with changes undone."""

    def __init__(self, most_changes: int = MOST_CHANGES) -> None:
        self._most = most_changes
        self._now: dict[Key, Value] = {}
        self._changes: list[Change] = []
        self._times: list[float] = []
        """The time of each change; never smaller than that of the one before."""
        self._since: float | None = None

    @property
    def begins(self) -> float | None:
        """The first moment that is known; None while nothing was noted."""
        return self._since

    @property
    def ends(self) -> float | None:
        """The last moment at which something changed."""
        return self._times[-1] if self._times else self._since

    def note(self, at: float, values: Mapping[Key, Value | None]) -> list[Change]:
        """Note what some keys stand for from now on (None: nothing any more); return the changes among them."""
        last = self.ends
        at = at if last is None else max(at, last)  # clocks may be set back, what happened later stays later
        found = [Change(at, key, self._now.get(key), value) for key, value in values.items()]
        found = [change for change in found if change.before != change.after]
        for change in found:
            if change.after is None:
                del self._now[change.key]
            else:
                self._now[change.key] = change.after
        if self._since is None:
            self._since = at  # what there is at first is no change
            return []
        self._changes += found
        self._times += [at] * len(found)
        if len(self._changes) > self._most:
            self._forget(len(self._changes) - self._most // 2)
        return found

    def _forget(self, count: int) -> None:
        """Forget the oldest changes, and all others of the same moment: half a moment never was."""
        count = bisect_right(self._times, self._times[count - 1])
        self._since = self._times[count - 1]
        del self._changes[:count], self._times[:count]

    def keys(self, kind: str) -> Iterator[Key]:
        """The keys of a kind that stand for something now."""
        return (key for key in self._now if key[0] == kind)

    def at(self, moment: float) -> dict[Key, Value]:
        """What every key stood for at a moment; before the first one that is known, what there was at that."""
        found = dict(self._now)
        for change in reversed(self._changes[bisect_right(self._times, moment) :]):
            if change.before is None:
                del found[change.key]
            else:
                found[change.key] = change.before
        return found

    def between(self, start: float, end: float) -> list[Difference]:
        """What is different at `end` from what was at `start`, in the order of the last changes."""
        last: dict[Key, tuple[Value | None, Value | None]] = {}
        for change in self._changes[bisect_right(self._times, start) : bisect_right(self._times, end)]:
            before = last.pop(change.key, (change.before, None))[0]
            last[change.key] = before, change.after
        return [Difference(key, before, after) for key, (before, after) in last.items() if before != after]

    def moments(self, most: int) -> list[float]:
        """Some of the moments at which something changed, at most so many, spread over all of them."""
        times = sorted({*self._times, *([] if self._since is None else [self._since])})
        if len(times) <= most:
            return times
        step = (len(times) - 1) / (most - 1)
        return [times[round(number * step)] for number in range(most)]
