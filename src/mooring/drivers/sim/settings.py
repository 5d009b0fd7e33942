"""How time passes in a simulation, and what a node costs."""

from collections.abc import Callable
from dataclasses import dataclass

from mooring.model.api.nodes import Node
from mooring.model.capacity.provider import Catalogue

DETECTION_SECONDS = 40.0
"""From the failure of a node until the cluster knows: the node controller's grace period."""


def free_of_charge(_: Node) -> float:
    return 0.0


@dataclass(frozen=True)
class SimulationSettings:
    start: float = 0.0
    """Seconds since 1970."""
    horizon: float = 3600.0
    """Seconds that are simulated."""
    interval: float = 0.0
    """Seconds between cycles; 0: one whenever something happens."""
    sample_every: float = 60.0
    seed: int = 0
    detection: float = DETECTION_SECONDS
    price: Callable[[Node], float] = free_of_charge
    """Of an hour of a node."""
    catalogue: Catalogue | None = None
    """What nodes can be bought, and how long that takes."""
