"""What a source of load is, and what is known of how it does."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mooring.model.load.reports import GpuReport, LoadReport

Told = Callable[[Iterable[LoadReport]], None]


class SourceFailed(Exception):
    """A source did not answer, or with something else than load; the message is one line."""


class ReportKey(NamedTuple):
    """What replaces what: a later report of the same node, about the same things."""

    node: str
    is_gpus: bool


def key_of(report: LoadReport) -> ReportKey:
    return ReportKey(report.node, isinstance(report, GpuReport))


class PolledSource(ABC):
    """A source that is asked again and again."""

    def __init__(self, name: str, address: str, interval_seconds: float, timeout_seconds: float) -> None:
        """`name` is its field in the configuration; `address` is shown to people, without credentials."""
        self.name, self.address = name, address
        self.interval_seconds, self.timeout_seconds = interval_seconds, timeout_seconds

    async def answer(self) -> list[LoadReport]:
        """Read it within its time; raise TimeoutError if that is over."""
        async with asyncio.timeout(self.timeout_seconds):
            return await self.read()

    @abstractmethod
    async def read(self) -> list[LoadReport]:
        """Return what it measured last; raise SourceFailed or OSError where it cannot tell."""

    async def close(self) -> None:  # noqa: B027 - few have something to close
        """Give back connections."""
