"""What pages draw at any time, and how open pages learn that there is something new."""

import asyncio
from collections.abc import AsyncIterator

from mooring.dashboard.history import History
from mooring.dashboard.picture import Picture
from mooring.dashboard.series import Allocation
from mooring.report.nodes import NodeMap
from mooring.report.plans import PlanRow

KEEP_ALIVE_SECONDS = 15.0
"""A line is sent so often to pages that wait, so that a proxy between does not take the connection for dead."""


class Watching:
    """The latest picture. This one stands still, as manifests do; `following.py` has one that follows a cluster."""

    is_renewed = False
    fault = ""
    """Why the picture could not be renewed."""

    def __init__(self, first: Picture) -> None:
        self.latest = first
        self.history = History()
        self.history.note_nodes(first.taken_at, first.nodes)
        self.allocation = Allocation()
        self.allocation.note(first.taken_at, first.result.pools)
        self._news: dict[asyncio.Queue[tuple[str, int]], None] = {}

    @property
    def nodes(self) -> NodeMap:
        """Every node as it is now, which may be later than the picture."""
        return self.latest.nodes

    @property
    def plans(self) -> list[PlanRow]:
        """What is intended and not carried out yet."""
        return self.latest.plans

    def tell(self, kind: str, number: int) -> None:
        """Let every open page know."""
        for queue in self._news:
            if not queue.full():  # one that does not listen is told of later ones
                queue.put_nowait((kind, number))

    async def events(self) -> AsyncIterator[str]:
        """Server-sent events for one open page, from now on."""
        queue: asyncio.Queue[tuple[str, int]] = asyncio.Queue(16)
        self._news[queue] = None
        try:
            yield f"event: hello\ndata: {self.latest.number}\n\n"
            while True:
                try:
                    kind, number = await asyncio.wait_for(queue.get(), KEEP_ALIVE_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                yield f"event: {kind}\ndata: {number}\n\n"
        finally:
            del self._news[queue]
