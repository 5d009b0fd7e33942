"""The time of day that never goes back: grace periods and timers are not to wait for an hour to come again."""

import time
from collections.abc import Callable


class SteadyClock:
    """The wall clock while it goes forward; where it is set back, time goes on from what it was."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._last, self._at = wall(), monotonic()

    def __call__(self) -> float:
        at = self._monotonic()
        self._last = max(self._wall(), self._last + (at - self._at))
        self._at = at
        return self._last
