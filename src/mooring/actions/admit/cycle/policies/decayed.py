"""Averages over the past in which what is long ago counts less and less: half as much after each half-life.

With u(s) the amount in use at moment s and h the half-life, the average at moment t is

    ln 2 / h * integral over all s < t of u(s) * 0.5 ** ((t - s) / h) ds

Amounts are constant between changes. So from a moment t0, over which an amount u was held, to a later t

    average(t) = k * average(t0) + (1 - k) * u    with k = 0.5 ** ((t - t0) / h)

exactly, however long that is. Nothing is computed until an amount changes or somebody asks.
"""

from collections.abc import Hashable, Iterator, Mapping, MutableMapping
from typing import Generic, TypeVar

from mooring.model.memory import QueueUse, moment
from mooring.state.workloads import Average

Key = TypeVar("Key", bound=Hashable)


_NEVER = Average(0.0, {}, {})


class DecayedAverages(Generic[Key]):
    """By key: amounts by name as they are, and their averages over the past."""

    def __init__(self, half_life_seconds: float, records: MutableMapping[Key, Average] | None = None) -> None:
        """`records` is where the averages are kept."""
        assert half_life_seconds > 0
        self._half_life = half_life_seconds
        self._records: MutableMapping[Key, Average] = {} if records is None else records

    def set(self, key: Key, amounts: Mapping[str, float], now: float) -> None:
        """From now on, the amounts are these; names that are missing are at 0."""
        if amounts or key in self._records:
            self._records[key] = Average(self._moment(key, now), self.at(key, now), dict(amounts))

    def add(self, key: Key, amounts: Mapping[str, float], now: float) -> None:
        """Let the averages be higher by so much, as if it had been used before."""
        averages = self.at(key, now)
        for name, amount in amounts.items():
            averages[name] = averages.get(name, 0.0) + amount
        known = self._records.get(key, _NEVER)
        self._records[key] = Average(self._moment(key, now), averages, known.amounts)

    def clear(self, now: float) -> None:
        """From now on, nobody uses anything; the past stays."""
        for key in self._records:
            self.set(key, {}, now)

    def at(self, key: Key, now: float) -> dict[str, float]:
        """The averages at a moment; one before the last change counts as that."""
        known = self._records.get(key)
        if known is None:
            return {}
        kept = self.kept_after(max(0.0, now - known.since))
        found = {name: kept * average for name, average in known.averages.items()}
        for name, amount in known.amounts.items():
            found[name] = found.get(name, 0.0) + (1.0 - kept) * amount
        return found

    def remembered(self) -> Iterator[tuple[Key, QueueUse]]:
        for key, known in self._records.items():
            yield key, QueueUse(moment(known.since), dict(known.averages), dict(known.amounts))

    def recall(self, key: Key, use: QueueUse) -> None:
        """Go on from what was known then; what was held then was held until the amounts are set anew."""
        self._records[key] = Average(use.as_of.timestamp(), use.averages, use.held)

    def kept_after(self, seconds: float) -> float:
        """Which part of an average is left after so long."""
        return float(0.5 ** (seconds / self._half_life))

    def _moment(self, key: Key, now: float) -> float:
        known = self._records.get(key)
        return now if known is None else max(now, known.since)
