"""How long to wait before asking again."""

import random

FIRST_SECONDS = 0.2
LONGEST_SECONDS = 30.0


class Backoff:
    """Waits that double, each drawn from the upper half, so that many clients do not come back at once."""

    def __init__(self, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS) -> None:
        self._first, self._longest = first, longest
        self._next = first

    def next(self, at_least: float = 0.0) -> float:
        """How long to wait now, at least as long as the server asked for."""
        found = self._next * random.uniform(0.5, 1.0)
        self._next = min(self._next * 2, self._longest)
        return max(found, at_least)

    def reset(self) -> None:
        self._next = self._first
