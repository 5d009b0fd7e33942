"""Cycles at one moment of virtual time, and whether they get anywhere: no command decides for ever."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from mooring.errors import NoProgress
from mooring.model.api.meta import timestamp_text
from mooring.model.decisions import Admit, Bind, Decision, Evict, Launch, Resize, Suspend, Terminate, Wait

MOST_IDLE_ROUNDS = 20
"""Cycles in a row, at one moment, that decide nothing that was not decided at that moment before."""
MOST_NAMED = 8


class Rounds:
    """Counts the cycles at one moment that make no progress.

    A cycle makes progress where it decides something about an object for the first time at that moment, or
    where fewer pods wait in the queue than after any cycle before. Both can happen only so often.
    """

    def __init__(self) -> None:
        self.idle = 0
        """How many cycles in a row have made none."""
        self._now = math.nan
        self._seen: set[tuple[type, str]] = set()
        self._fewest = math.inf
        self._evicted: Counter[str] = Counter()
        self._tried: set[str] = set()

    def note(self, now: float, decisions: Sequence[Decision], waiting: int, lost: Iterable[str] = ()) -> None:
        """A cycle has decided, so many pods wait in the queue, and taints have driven these away."""
        if now != self._now:
            self._now, self._fewest, self.idle = now, math.inf, 0
            self._seen.clear()
            self._evicted.clear()
        seen = self._seen
        before = len(seen)
        for decision in decisions:
            match decision:
                case Bind(pod):
                    seen.add((Bind, pod))
                case Evict(pod):
                    seen.add((Evict, pod))
                    self._evicted[pod] += 1
                case Admit(subject) | Suspend(subject) | Launch(subject) | Terminate(subject) | Resize(subject):
                    seen.add((type(decision), subject))
        for pod in lost:
            seen.add((Evict, pod))
            self._evicted[pod] += 1
        is_progress = len(seen) > before or waiting < self._fewest
        self._fewest = min(self._fewest, waiting)
        self.idle = 0 if is_progress else self.idle + 1
        if not is_progress:
            self._tried = {found.pod for found in decisions if isinstance(found, Bind | Wait)}

    def check(self) -> None:
        """Raise if there were too many."""
        if self.idle >= MOST_IDLE_ROUNDS:
            raise self.fault()

    def fault(self) -> NoProgress:
        """That decisions do not come to rest, with the pods that they are about."""
        evicted = [f"{pod} ({count} times)" for pod, count in self._evicted.most_common() if count > 1]
        pods = evicted or sorted(self._tried)
        named = ", ".join(pods[:MOST_NAMED]) + (f" and {len(pods) - MOST_NAMED:,} more" if pods[MOST_NAMED:] else "")
        what = f"{'evicted' if evicted else 'tried'} again and again: {named or 'no pod'}"
        return NoProgress(f"decisions do not come to rest at {timestamp_text(self._now)}: {what}")
