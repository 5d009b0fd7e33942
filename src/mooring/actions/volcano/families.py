"""How the queues of other families are shared, by the same engine and their own rules."""

from mooring.actions.volcano.settings import Division, ShareSettings
from mooring.engine.queue.shared import Family

DIVISIONS = {
    Family.KAI: Division.KAI,
    Family.ELASTIC_QUOTA: Division.CAPACITY,
    Family.KOORDINATOR: Division.RUNTIME,
    Family.YUNIKORN: Division.GUARANTEED,
}
OTHER_FAMILIES = tuple(DIVISIONS)


def family_settings(family: Family, volcano: ShareSettings) -> ShareSettings:
    """The settings of a family: its division, and what all have in common."""
    return ShareSettings(
        division=DIVISIONS[family],
        half_life_seconds=volcano.half_life_seconds if family is Family.KAI else None,
        minimum_runtime_seconds=volcano.minimum_runtime_seconds,
    )
