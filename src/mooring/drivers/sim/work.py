"""Where jobs come from: drawn by chance, read from a trace, or made of manifests. In the order of their times."""

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from mooring.drivers.sim.arrival import Arrival, Options
from mooring.drivers.sim.pods import NO_CHECKPOINTS, Checkpoints
from mooring.drivers.sim.submissions import Given, Submissions
from mooring.drivers.sim.template import blanks
from mooring.drivers.sim.traces import TRACES
from mooring.drivers.sim.world import Coming, Work
from mooring.model.kubelet.distributions import NEVER, Distribution, draw
from mooring.model.places import Place

DIGITS = 3
"""Of times that are drawn, in seconds: what is written in a manifest is what happens."""


@dataclass(frozen=True, slots=True)
class Times:
    """When jobs of one source arrive, in seconds since the start."""

    every: Distribution | None = None
    at: tuple[float, ...] = ()
    begin: float = 0.0
    end: float = math.inf
    most: int | None = None

    def of(self, seed: int, name: str) -> Iterator[float]:
        """In order; each belongs to the job of that number."""
        most = math.inf if self.most is None else self.most
        if self.every is None:
            yield from (time for number, time in enumerate(self.at) if number < most and time <= self.end)
            return
        time, number = self.begin, 0
        while number < most:
            time = round(time + self.every.at(draw(seed, name, number, "every")), DIGITS)
            if time > self.end:
                return
            yield time
            number += 1


@dataclass(frozen=True, slots=True)
class DrawnSize:
    """One of the forms that a drawn job may have."""

    share: float
    """Up to which draw it is chosen."""
    example: Arrival
    duration: Distribution


@dataclass(frozen=True, slots=True)
class DrawnWork:
    """Jobs of some sizes that arrive at some times, by chance or not."""

    name: str
    times: Times
    form: str
    sizes: tuple[DrawnSize, ...]
    place: Place
    checkpoints: Checkpoints = NO_CHECKPOINTS

    def arrivals(self, seed: int, horizon: float) -> Iterator[Arrival]:
        for number, time in enumerate(self.times.of(seed, self.name)):
            if time > horizon:
                return
            size = self.sizes[0]
            if len(self.sizes) > 1:
                chosen = draw(seed, self.name, number, "size")
                size = next(each for each in self.sizes if chosen < each.share)
            seconds = size.duration.first
            if size.duration.kind:
                seconds = round(size.duration.at(draw(seed, self.name, number, "duration")), DIGITS)
            yield replace(size.example, time=time, name=f"{self.name}-{number}", duration=seconds)

    def works(self, submissions: Submissions, start: float, seed: int, horizon: float) -> Iterator[Coming]:
        for arrival in self.arrivals(seed, horizon):
            yield _coming(self, arrival, submissions, start)


@dataclass(frozen=True, slots=True)
class TraceWork:
    """Jobs as a trace has them."""

    name: str
    format: str
    path: Path
    options: Options
    form: str
    place: Place
    most: int | None = None
    checkpoints: Checkpoints = NO_CHECKPOINTS

    def arrivals(self) -> Iterator[Arrival]:
        read = TRACES[self.format].read_work
        assert read is not None
        for number, arrival in enumerate(read(self.path, self.options)):
            if self.most is not None and number >= self.most:
                return
            yield arrival

    def works(self, submissions: Submissions, start: float, seed: int, horizon: float) -> Iterator[Coming]:
        for arrival in self.arrivals():
            yield _coming(self, arrival, submissions, start)


def _coming(plan: DrawnWork | TraceWork, arrival: Arrival, submissions: Submissions, start: float) -> Coming:
    at = start + arrival.time

    def come() -> list[Work]:
        before, submitted = submissions.of_arrival(replace(arrival, time=at), plan.form, plan.place)
        return [Work(at, submitted, tuple(before), arrival.duration, plan.checkpoints)]

    return Coming(at, come)


@dataclass(frozen=True, slots=True)
class ManifestWork:
    """Objects as they are, again and again; `$(name)` and `$(duration)` in them are filled in."""

    name: str
    times: Times
    given: tuple[Given, ...]
    duration: Distribution = NEVER
    checkpoints: Checkpoints = NO_CHECKPOINTS

    def works(self, submissions: Submissions, start: float, seed: int, horizon: float) -> Iterator[Coming]:
        for number, time in enumerate(self.times.of(seed, self.name)):
            at = start + time
            yield Coming(at, partial(self._come, submissions, at, seed, number))

    def _come(self, submissions: Submissions, at: float, seed: int, number: int) -> list[Work]:
        seconds = round(self.duration.at(draw(seed, self.name, number, "duration")), DIGITS)
        blank = blanks(f"{self.name}-{number}", at, seconds, number)
        words = {"$(name)": blank.name, "$(duration)": blank.duration_text}
        given = [(filled(document, words), place) for document, place in self.given]
        for document, _ in given:
            document["metadata"].setdefault("creationTimestamp", blank.created_text)
        return [Work(at, submitted, checkpoints=self.checkpoints) for submitted in submissions.of_documents(given)]


WorkPlan = DrawnWork | TraceWork | ManifestWork


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """A document with words in its texts replaced, all of it new."""
    match value:
        case str():
            for word, meaning in words.items():
                value = value.replace(word, meaning)
            return value
        case dict():
            return {filled(key, words): filled(item, words) for key, item in value.items()}
        case list():
            return [filled(item, words) for item in value]
    return value


def in_order(sources: Iterable[Iterator[Coming]]) -> Iterator[Coming]:
    """All work by time; what comes at one moment, in the order of its sources."""
    return heapq.merge(*sources, key=lambda coming: coming.at)
