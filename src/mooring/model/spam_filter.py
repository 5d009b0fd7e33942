"""How many events one object may get, by the limits of client-go's recorder: 25 at once, and one more in 5 minutes."""

from collections import OrderedDict

BURST = 25
SECONDS_FOR_ONE = 300.0
MOST_KEPT = 4096
"""Objects that are remembered, as in client-go; the one that was spoken of longest ago is forgotten first."""


class SpamFilter:
    """A bucket of tokens for each object."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By uid: the tokens that were left, and when."""

    def __len__(self) -> int:
        return len(self._buckets)

    def allows(self, uid: str, now: float) -> bool:
        """Whether one more event on an object is written now; it counts if so."""
        left, since = self._buckets.pop(uid, (float(BURST), now))
        left = min(float(BURST), left + max(0.0, now - since) / SECONDS_FOR_ONE)
        is_allowed = left >= 1.0
        self._buckets[uid] = (left - 1.0 if is_allowed else left), now
        if len(self._buckets) > MOST_KEPT:
            self._buckets.popitem(last=False)
        return is_allowed
