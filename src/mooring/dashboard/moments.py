"""The *Time* page: the cluster at one moment, and what changed until another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException

from mooring.dashboard.history import History, QueueRow, State
from mooring.dashboard.sight import Sight
from mooring.errors import InputError
from mooring.observe.decision_log import read_between

MOST_SHOWN = 300
"""Changes and decisions of one kind on the page."""


@dataclass(frozen=True)
class Moments:
    """A moment, and what led to it since another."""

    begins: float
    ends: float
    stops: Sequence[float]
    """Where the scrubber stops."""
    stop: int
    """The stop at which it is."""
    since: float
    state: State
    pods: Sequence[tuple[str, str | None, str | None]]
    nodes: Sequence[tuple[str, str | None, str | None]]
    queues: Sequence[tuple[QueueRow, QueueRow]]
    decisions: Sequence[dict[str, Any]]
    problem: str
    """Why there are no decisions to show."""

    @classmethod
    def make(cls, history: History, asked: Mapping[str, str], log: Path | None, sight: Sight) -> "Moments":
        stops = history.stops()
        begins, ends = history.begins or 0.0, history.ends or 0.0
        at = cls.time_of(asked, "at", ends)
        if "stop" in asked:
            number = asked["stop"]
            if not number.isdecimal() or int(number) >= len(stops):
                raise HTTPException(404, f"there are {len(stops)} moments, found {number!r}")
            at = stops[int(number)]
        since = cls.time_of(asked, "since", begins)
        start, end = min(since, at), max(since, at)
        decisions, problem = list[dict[str, Any]](), ""
        if log is not None and sight.is_whole:
            try:
                decisions = read_between(log, start, end, MOST_SHOWN)
            except InputError as error:
                problem = str(error)
        state = history.at(at)
        return cls(
            begins=begins,
            ends=ends,
            stops=stops,
            stop=max((number for number, moment in enumerate(stops) if moment <= at), default=0),
            since=since,
            state=State(
                at,
                state.nodes,
                {key: node for key, node in state.pods.items() if sight.has_pod(key)},
                state.queues if sight.queues else [],
            ),
            pods=[each for each in history.pods_between(start, end) if sight.has_pod(each[0])],
            nodes=history.nodes_between(start, end) if sight.nodes else [],
            queues=history.queues_between(start, end) if sight.queues else [],
            decisions=decisions,
            problem=problem,
        )

    @staticmethod
    def time_of(asked: Mapping[str, str], name: str, usual: float) -> float:
        """A moment of a link, in seconds since 1970."""
        text = asked.get(name, "")
        if not text:
            return usual
        try:
            found = float(text)
        except ValueError:
            found = float("nan")
        if not 0 <= found < 2**40:
            raise HTTPException(404, f"{name}: expected seconds since 1970, found {text!r}")
        return found
