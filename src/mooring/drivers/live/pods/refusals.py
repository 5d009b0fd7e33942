"""How long to wait before something is tried again that the world refuses again and again."""

FIRST_PENALTY, LONGEST_PENALTY = 0.5, 30.0
FORGOTTEN_SECONDS = 300.0
"""Who was not refused for so long begins anew, and is not kept in mind."""
MOST_KEPT = 10_000
"""With more than these, the oldest are forgotten before their time is over."""


class Refusals:
    """Counts, for each pod or workload, how often in a row a decision about it was refused."""

    def __init__(self) -> None:
        self._times: dict[str, tuple[int, float]] = {}
        """By whom: how often, and when last."""

    def __len__(self) -> int:
        return len(self._times)

    def note(self, who: str, now: float, at_once: int = 1) -> float:
        """It was refused now. Return the seconds to wait, none for the first `at_once` times."""
        times, last = self._times.pop(who, (0, now))
        times = times + 1 if now - last < FORGOTTEN_SECONDS else 1
        self._times[who] = (times, now)
        self._forget_old(now)
        return 0.0 if times <= at_once else min(FIRST_PENALTY * 2.0 ** (times - at_once - 1), LONGEST_PENALTY)

    def forget(self, who: str) -> None:
        """It was not refused any more."""
        self._times.pop(who, None)

    def _forget_old(self, now: float) -> None:
        """Let go of the oldest, which stand first: those whose time is over, and whoever is one too many."""
        while self._times:
            who, (_, last) = next(iter(self._times.items()))
            if now - last < FORGOTTEN_SECONDS and len(self._times) <= MOST_KEPT:
                return
            del self._times[who]
