"""What the sharing of one family's queues shows of itself."""

from dataclasses import dataclass

from mooring.actions.shares.family import Family
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.sharing import Sharing
from mooring.engine.action import Section


@dataclass(frozen=True)
class SharesSection(Section):
    """How one family's queues are shared."""

    family: Family
    settings: ShareSettings
    sharing: Sharing | None
    """None as long as the family has no queues."""
