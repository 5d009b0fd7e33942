"""What is expected of the future: when pods that run will end, and where a gang goes that room is kept for.

An expectation is kept as long as it holds, so that it does not change from cycle to cycle. All is on the undo log.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from mooring.model.api.pods import Pod
from mooring.model.keys import GangKey, PodKey
from mooring.state.pods import PodRecord
from mooring.state.undo import UndoLog


class KnownEnd(NamedTuple):
    """What a pod that runs says about its end."""

    pod: Pod
    first_seen: float
    """Stands for its start while the world does not tell it."""
    end: float | None


Going: TypeAlias = tuple[float, PodRecord]
"""When a pod that runs is expected to end, and the pod."""


@dataclass(frozen=True, slots=True)
class GangForecast:
    """Where members of a gang will go."""

    gang: GangKey
    """The outermost one."""
    members: tuple[PodKey, ...]
    rows: tuple[int, ...]
    """One a member."""
    gone: tuple[Going, ...]
    """Who has to end before."""

    @property
    def start(self) -> float:
        """When they can start, as far as durations are known; inf if somebody's who has to go before is not."""
        return max((end for end, _ in self.gone), default=-math.inf)


class Forecasts:
    """What is expected; only the action that keeps room for gangs writes it."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self.of_gang: GangForecast | None = None
        """Of the one gang that room is kept for."""
        self.ends: dict[PodKey, KnownEnd] = {}
        """Of pods that say how long they run."""

    def expect(self, forecast: GangForecast | None) -> None:
        """Keep a forecast, or give it up."""
        self._log.note(self.expect, self.of_gang)
        self.of_gang = forecast

    def expect_end(self, pod: PodKey, end: KnownEnd | None) -> None:
        """Keep when a pod is expected to end; None: nothing is."""
        self._log.note(self.expect_end, pod, self.ends.get(pod))
        if end is None:
            self.ends.pop(pod, None)
        else:
            self.ends[pod] = end

    def expect_ends(self, ends: dict[PodKey, KnownEnd]) -> None:
        """Keep when pods are expected to end, in place of what was expected before."""
        self._log.note(self.expect_ends, self.ends)
        self.ends = ends
