"""How a scheduler uses its nodes: alone, so that what it decides is bound at once, or with others (`sharing.py`).

All that the driver and the carrier of pods know of other active schedulers on the same nodes is in this interface.
"""

from collections.abc import Callable, Iterable
from typing import ClassVar

from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind
from mooring.model.events import Event


class NodeUse:
    """Nodes that no other active scheduler uses."""

    follows_watches: ClassVar[bool] = False
    """Whether it matters how far watches have come, whatever they tell."""

    def __init__(self) -> None:
        self.bind: Callable[[Bind], None] = lambda decision: None
        """Told of what may be bound."""
        self.conflict: Callable[[Bind, Pod], None] = lambda decision, pod: None
        """Told of what came too late."""
        self.tell: Callable[[Event], None] = lambda event: None

    def room(self, most: int) -> int:
        """On how many pods may be decided, of so many."""
        return most

    def take_in(self, events: Iterable[Event]) -> list[Event]:
        """What the scheduler is to hear of what happened."""
        return list(events)

    def hold(self, decision: Bind, pod: Pod) -> None:
        """Bind this as soon as it may be."""
        self.bind(decision)

    def withdraw(self, decision: Bind, pod: Pod) -> None:
        """It is known not to be bound."""

    def may_bind(self, decision: Bind, pod: Pod) -> bool:
        """Whether a bind may be sent at once."""
        return True

    async def wait_to_bind(self, decision: Bind, pod: Pod) -> bool:
        """Wait until a bind may be sent; False if it may not any more."""
        return True
