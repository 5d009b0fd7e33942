"""The turns to be taken now, in order: those to try first, and those that stay behind for a while.

Giving up a turn costs nothing: it stays in its heap with a ticket that is no longer good, and is passed over there.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import Any

from mooring.engine.queue.parked import Turn


class Turns:
    """Two heaps: by the profile's order, and by the end of the backoff; each then by arrival."""

    def __init__(self) -> None:
        self._active: list[tuple[Any, int, int, Turn]] = []
        self._behind: list[tuple[float, Any, int, int, Turn]] = []
        self._ticket_of: dict[str, int] = {}
        """By the name of the turn: the one ticket that is good."""
        self._tickets = 0

    def __len__(self) -> int:
        return len(self._ticket_of)

    def add(self, turn: Turn) -> None:
        heapq.heappush(self._active, (turn.key, turn.arrival, self._new_ticket(turn), turn))

    def add_behind(self, turn: Turn, expiry: float) -> None:
        """Let somebody wait until its backoff is over, or nobody else is there."""
        heapq.heappush(self._behind, (expiry, turn.key, turn.arrival, self._new_ticket(turn), turn))

    def give_up(self, turn_name: str) -> None:
        self._ticket_of.pop(turn_name, None)

    def come_forward(self, is_over: Callable[[float], bool]) -> Iterator[Turn]:
        """Let those whose backoff is over be tried like the others; tell who they are."""
        while self._behind and is_over(self._behind[0][0]):
            _, key, arrival, ticket, turn = heapq.heappop(self._behind)
            if self._is_good(ticket, turn):
                heapq.heappush(self._active, (key, arrival, ticket, turn))
                yield turn

    def peek(self) -> Turn | None:
        """Whose turn it is; those who stay behind come when nobody else is there."""
        heap = self._heap()
        return heap[0][-1] if heap else None

    def pop(self) -> Turn:
        turn: Turn = heapq.heappop(self._heap())[-1]
        del self._ticket_of[turn.turn_name]
        return turn

    def pop_if(self, is_wanted: Callable[[Turn], bool]) -> Turn | None:
        """The next one if it is as wanted; else it stays."""
        heap = self._heap()
        if not heap or not is_wanted(heap[0][-1]):
            return None
        turn: Turn = heapq.heappop(heap)[-1]
        del self._ticket_of[turn.turn_name]
        return turn

    def active(self) -> list[Turn]:
        """Those to be tried before anybody who stays behind, in order."""
        return [turn for *_, ticket, turn in sorted(self._active) if self._is_good(ticket, turn)]

    def _heap(self) -> list[Any]:
        """The heap whose first turn is the next; empty if nobody is there."""
        heaps: tuple[list[Any], list[Any]] = (self._active, self._behind)
        for heap in heaps:
            while heap:
                first = heap[0]
                if self._ticket_of.get(first[-1].turn_name) == first[-2]:
                    return heap
                heapq.heappop(heap)
        return heaps[1]

    def _is_good(self, ticket: int, turn: Turn) -> bool:
        return self._ticket_of.get(turn.turn_name) == ticket

    def _new_ticket(self, turn: Turn) -> int:
        self._tickets += 1
        self._ticket_of[turn.turn_name] = self._tickets
        return self._tickets
