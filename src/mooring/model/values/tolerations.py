"""Which taints a pod puts up with: all five operators, thresholds on numeric taints included."""

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


def untolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> list[Taint]:
    """The taints that keep the pod away: those that forbid scheduling and that nothing tolerates."""
    return [taint for taint in taints if taint.effect in HARD_EFFECTS and not is_tolerated(tolerations, taint)]
