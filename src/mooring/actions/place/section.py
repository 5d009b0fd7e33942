"""What placing shows of itself."""

from dataclasses import dataclass

from mooring.actions.gangs.placing import GangPlacer
from mooring.actions.gangs.reservation import Reservation
from mooring.engine.action import Section


@dataclass(frozen=True)
class PlacingSection(Section):
    """How pods and gangs are placed: for asking what would be, and for counting."""

    gangs: GangPlacer
    reservation: Reservation
