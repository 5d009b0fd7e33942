"""Which taints a pod puts up with: all five operators, thresholds on numeric taints included."""

import math
import re
from collections.abc import Iterable, Sequence

from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Toleration
from mooring.model.values.selectors import parse_int64

_DECIMAL = re.compile(r"0|-?[1-9]\d*", re.ASCII)

HARD_EFFECTS = ("NoSchedule", "NoExecute")
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            return _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    bound, value = _decimal(toleration.value), _decimal(taint.value)
    if bound is None or value is None:
        return False
    return value > bound if toleration.operator == "Gt" else value < bound


def _decimal(text: str) -> int | None:
    """Thresholds are plain decimal numbers: what has a plus sign or leading zeros is not one."""
    return parse_int64(text) if _DECIMAL.fullmatch(text) else None


def is_tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


TOLERATED_FOR_A_WHILE = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
DEFAULT_TOLERATION_SECONDS = 300.0
"""For how long the API server lets every pod tolerate these two, unless it says otherwise itself."""


def tolerated_seconds(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> tuple[float, Taint | None]:
    """For how long a pod that the API server has not seen stays with these taints, and the taint that ends it; without
    end if none does.

    One taint that nothing tolerates is enough to go at once, else the shortest tolerationSeconds of all tolerations
    that are needed counts.
    """
    least: tuple[float, Taint | None] = (math.inf, None)
    for taint in taints:
        used = [found for found in tolerations if tolerates(found, taint)]
        if not used:
            seconds = DEFAULT_TOLERATION_SECONDS if taint.key in TOLERATED_FOR_A_WHILE else 0.0
        else:
            limits = [float(found.toleration_seconds) for found in used if found.toleration_seconds is not None]
            seconds = max(0.0, min(limits)) if limits else math.inf
        if seconds < least[0]:
            least = (seconds, taint)
    return least


def untolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> list[Taint]:
    """The taints that keep the pod away: those that forbid scheduling and that nothing tolerates."""
    return [taint for taint in taints if taint.effect in HARD_EFFECTS and not is_tolerated(tolerations, taint)]
