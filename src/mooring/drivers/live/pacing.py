"""How many pods to decide on at a time, and how soon again.

Not more than can be bound soon: whoever is more urgent and comes a moment later must not wait behind thousands. Fewer
where cycles take long, since nothing is sent or read meanwhile, and fewer where decisions are out of date by the time
they are carried out, since other schedulers use the same nodes.
"""

import logging
from collections import deque

SLICE = 512
"""Pods a cycle, and binds that may wait to be sent."""
FIRST_SLICE, SMALLEST_SLICE = 64, 16
CYCLE_SECONDS = 0.1
"""What takes longer is done in several cycles, if it can be."""
REST = 0.5
"""Of the time that cycles take, this much more is left to requests and watches in between."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.005, 0.05
PAUSE = 0.5
"""Of the time that the server takes to answer: so long there is no next cycle while it has much to do. Changes taken in
together cost far less than one by one, and a server at its limits would only let the next binds wait."""
MUCH = 16
"""Requests under way. With fewer, pods come one by one, and whoever comes next need not wait for answers to others."""
LATEST_BINDS = 200
MOST_CONFLICTS = 0.1
"""Of the latest binds: where more are conflicts, fewer pods are decided on at a time."""
_log = logging.getLogger(__name__)


class Pacing:
    def __init__(self) -> None:
        self._sound, self._quick = SLICE, FIRST_SLICE
        """How many pods at a time conflicts and the length of cycles allow; how long these take is yet to be seen."""
        self._latest: deque[bool] = deque(maxlen=LATEST_BINDS)
        """Of the latest binds, which were conflicts."""

    @property
    def slice(self) -> int:
        """How many pods may be decided on at a time."""
        return min(self._sound, self._quick)

    def note_cycle(self, seconds: float, decisions: int) -> None:
        if seconds > CYCLE_SECONDS:
            self._quick = max(SMALLEST_SLICE, min(self._quick, int(decisions * CYCLE_SECONDS / seconds)))
        else:
            self._quick = min(SLICE, self._quick * 2)

    def note_bind(self, is_conflict: bool) -> None:
        self._latest.append(is_conflict)
        if not is_conflict and self._sound == SLICE:
            return
        rate = self.conflict_rate
        if is_conflict and rate > MOST_CONFLICTS and len(self._latest) >= LATEST_BINDS // 4:
            self._sound = max(SMALLEST_SLICE, self._sound // 2)
            self._latest.clear()
            _log.warning(
                "%.0f %% of the latest binds were conflicts with other schedulers: deciding on %d pods at a time",
                100 * rate,
                self._sound,
            )
        elif len(self._latest) == LATEST_BINDS and rate < MOST_CONFLICTS / 4 and self._sound < SLICE:
            self._sound = min(SLICE, self._sound * 2)
            self._latest.clear()

    @property
    def conflict_rate(self) -> float:
        """Of the latest binds, how many were conflicts with others."""
        return sum(self._latest) / len(self._latest) if self._latest else 0.0

    def pause(self, took: float, latency: float, in_flight: int) -> float:
        """How long to wait after a turn of so many seconds, where the server takes so many to answer each request
        under way."""
        of_server = PAUSE * latency if in_flight >= MUCH else 0.0
        return max(REST * took, min(max(SHORTEST_PAUSE, of_server), LONGEST_PAUSE))
