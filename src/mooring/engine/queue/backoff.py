"""How long whoever was tried in vain stays behind the others: kube-scheduler's backoff.

Doubling from the initial time to the longest, counted in whole seconds, so that those of one second come back in the
queue's order. Whoever is backing off is still tried when nobody else is there.
"""

import math
from dataclasses import dataclass

UNSCHEDULABLE_SECONDS = 300.0
"""Who has waited so long for something to happen is tried again even if nothing has."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The configured times, in seconds; a longest time of 0 means no backoff."""

    initial: float = 1.0
    longest: float = 10.0
    of_gangs: float = 0.0
    """The shortest that a gang stays behind."""

    def expiry(self, tried_at: float, attempts: int, size: int = 1, *, is_gang: bool = False) -> float:
        """The end of the backoff of somebody who was tried so many times in vain; a gang's may be longer."""
        least = self.of_gangs if is_gang else 0.0
        if not attempts or not (self.longest or least) or not math.isfinite(tried_at):
            return -math.inf
        longest = self.longest * math.sqrt(size)
        doublings = min(attempts - 1, 62)
        return float(math.floor(tried_at + max(min(self.initial * 2.0**doublings, longest), least)))

    def end(self, tried_at: float, attempts: int) -> float:
        """When somebody is tried again who was tried so many times, to the moment."""
        return tried_at + min(self.initial * 2.0 ** min(attempts - 1, 62), self.longest)

    def is_over(self, expiry: float, now: float) -> bool:
        return expiry < math.floor(now) if math.isfinite(now) else True
