"""Update modes: what becomes of pods that are far from their recommendation."""

from mooring.model.api.autoscaling import VerticalPodAutoscaler

OFF = "Off"
INITIAL = "Initial"
RECREATE = "Recreate"
AUTO = "Auto"
IN_PLACE_OR_RECREATE = "InPlaceOrRecreate"
IN_PLACE = "InPlace"
UPDATE_MODES = (OFF, INITIAL, RECREATE, IN_PLACE_OR_RECREATE, IN_PLACE, AUTO)

MIN_REPLICAS = 2
"""A controller with fewer pods than this keeps them, unless its autoscaler says otherwise."""
EVICTION_TOLERANCE = 0.5
"""The part of the pods of a controller that may be disrupted at a time; whole pods, cut."""


def update_mode(vpa: VerticalPodAutoscaler) -> str:
    """The mode of an autoscaler. Recreate is the default, and what the deprecated Auto stands for."""
    policy = vpa.spec.update_policy
    mode = policy.update_mode if policy is not None else None
    return RECREATE if mode is None or mode == AUTO else mode


def min_replicas(vpa: VerticalPodAutoscaler) -> int:
    """The least number of pods of a controller of which one may be disrupted."""
    policy = vpa.spec.update_policy
    own = policy.min_replicas if policy is not None else None
    return MIN_REPLICAS if own is None else own


def disruptable(configured: int, running: int) -> int:
    """Return how many pods of a controller may be disrupted now, by eviction or in place.

    At most half of the configured pods are disrupted at a time, and one where that is less than one and all run.
    """
    tolerance = int(configured * EVICTION_TOLERANCE)
    if tolerance == 0:
        return 1 if running >= configured else 0
    return max(0, running - (configured - tolerance))
