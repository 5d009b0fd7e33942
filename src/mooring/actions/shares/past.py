"""What queues had of the cluster in the past, older use counting less and less: half as much after each half-life.

Between two moments use is constant, so its decayed sum is known in closed form: from t0 to t1, with h the half-life,

    held * integral of 0.5 ** ((t1 - t) / h) dt = held * h / ln 2 * (1 - 0.5 ** ((t1 - t0) / h))

What is kept is such a sum for every queue and one, decayed alike, for all that the cluster had.
"""

import math
from collections.abc import Mapping

import numpy as np

from mooring.actions.shares.by_weight import Past
from mooring.actions.shares.resources import Columns, Floats, Row
from mooring.model.memory import SharedUse, moment
from mooring.state.shares import PastUse


class DecayedUse:
    """Decayed use by queue, shape (queues, resources)."""

    def __init__(self, queues: int, resources: int, half_life_seconds: float, k_value: float) -> None:
        self._half_life = half_life_seconds
        self._k_value = k_value
        self._used: Floats = np.zeros((queues, resources))
        self._available: Floats = np.zeros(resources)
        self._at: float | None = None

    def observe(self, now: float, held: Columns, total: Row) -> None:
        """Count that the queues held so much since the last time this was called."""
        if self._at is None:
            self._at = now
        passed = max(0.0, now - self._at)
        self._at = max(now, self._at)
        if passed == 0:
            return
        kept = 0.5 ** (passed / self._half_life)
        duration = self._half_life / math.log(2) * (1.0 - kept)
        self._used = self._used * kept + held * duration
        self._available = self._available * kept + total * duration

    def widen(self, resources: int) -> None:
        """Make room for further resources, behind those that are known."""
        more = resources - len(self._available)
        self._used = np.pad(self._used, ((0, 0), (0, more)))
        self._available = np.pad(self._available, (0, more))

    def take_over(self, other: "DecayedUse", rows: Mapping[int, int], columns: Mapping[int, int]) -> None:
        """Go on from what another one knows: of each row and column here, from the one given there."""
        mine, theirs = np.ix_(list(rows), list(columns)), np.ix_(list(rows.values()), list(columns.values()))
        self._used[mine] = other._used[theirs]
        self._available[list(columns)] = other._available[list(columns.values())]
        self._at = other._at

    @property
    def as_of(self) -> float | None:
        """The last moment that was counted."""
        return self._at

    def sums(self) -> tuple[Floats, Floats]:
        """What every queue had, and what the cluster had: amounts times seconds, as they count at that moment."""
        return self._used, self._available

    def resume(self, at: float, used: Floats, available: Floats) -> None:
        """Go on from sums that were known at a moment."""
        self._at, self._used, self._available = at, used, available

    @property
    def past(self) -> Past:
        parts = np.divide(self._used, self._available, out=np.zeros_like(self._used), where=self._available > 0)
        return Past(parts, self._k_value)


def write_use(use: PastUse) -> SharedUse:
    """As it is written down to outlive a restart."""
    return SharedUse(
        as_of=moment(use.as_of),
        used={queue: dict(amounts) for queue, amounts in use.used.items()},
        available=dict(use.available),
        held={queue: dict(amounts) for queue, amounts in use.held.items()},
        total=dict(use.total),
    )


def read_use(use: SharedUse) -> PastUse:
    """What was written down."""
    return PastUse(use.as_of.timestamp(), use.used, use.available, use.held, use.total)
