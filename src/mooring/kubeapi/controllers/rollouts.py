"""How many pods each revision of a Deployment is to have next: the arithmetic of rolling updates."""

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"


@dataclass(frozen=True, slots=True)
class Replicas:
    """One ReplicaSet, as far as the arithmetic goes."""

    name: str
    wanted: int
    available: int
    created: float


def scaled(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A number, or a percentage of a total.

    >>> scaled("25%", 10, round_up=True), scaled("25%", 10, round_up=False)
    (3, 2)
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-total * percent // 100) if round_up else total * percent // 100


def rolling_bounds(spec: Object) -> tuple[int, int]:
    """How many pods there may be too many, and too few; at least one of the two is more than 0."""
    if spec["strategy"]["type"] == "Recreate":
        return 0, 0
    rolling = spec["strategy"].get("rollingUpdate") or {}
    wanted = int(spec["replicas"])
    surge = scaled(rolling.get("maxSurge", "25%"), wanted, round_up=True)
    unavailable = scaled(rolling.get("maxUnavailable", "25%"), wanted, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, wanted)


def rolling_steps(spec: Object, new: Replicas, old: list[Replicas]) -> list[tuple[str, int]]:
    """What to scale now, and to how many: the new set up as far as there is room, or the old ones down."""
    wanted = int(spec["replicas"])
    surge, unavailable = rolling_bounds(spec)
    if new.wanted > wanted:
        return [(new.name, wanted)]
    if new.wanted < wanted:
        room = wanted + surge - new.wanted - sum(one.wanted for one in old)
        if room > 0:
            return [(new.name, new.wanted + min(room, wanted - new.wanted))]
    return _scale_down_old(wanted, unavailable, new, old)


def _scale_down_old(wanted: int, unavailable: int, new: Replicas, old: list[Replicas]) -> list[tuple[str, int]]:
    least = wanted - unavailable
    total = new.wanted + sum(one.wanted for one in old)
    most_down = total - least - (new.wanted - min(new.available, new.wanted))
    if most_down <= 0 or not old:
        return []
    counts = {one.name: one.wanted for one in old}
    left = most_down
    for one in sorted(old, key=lambda one: one.created):
        # Those that are not available cost nothing.
        sick = min(left, one.wanted - min(one.available, one.wanted))
        counts[one.name] -= sick
        left -= sick
    available = new.available + sum(one.available for one in old)
    spare = available - least
    for one in sorted(old, key=lambda one: one.created):
        down = max(0, min(spare, counts[one.name]))
        counts[one.name] -= down
        spare -= down
    return [(one.name, counts[one.name]) for one in old if counts[one.name] != one.wanted]


def proportional_scale(wanted: int, surge: int, active: list[Object]) -> list[tuple[Object, int]]:
    """Share out a change of replicas among the active sets, each by its size."""
    allowed = wanted + surge if wanted else 0
    total = sum(one["spec"]["replicas"] for one in active)
    to_add = allowed - total
    grows = to_add > 0
    # The largest first; of equals the newest when growing, the oldest when shrinking.
    ordered = sorted(active, key=lambda one: one["metadata"]["creationTimestamp"], reverse=grows)
    ordered.sort(key=lambda one: one["spec"]["replicas"], reverse=True)
    sizes, added = [], 0
    for one in ordered:
        share = _share(one, wanted, surge, to_add, added) if to_add else 0
        sizes.append(one["spec"]["replicas"] + share)
        added += share
    if ordered and to_add:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return list(zip(ordered, sizes, strict=True))


def _share(one: Object, wanted: int, surge: int, to_add: int, added: int) -> int:
    size = int(one["spec"]["replicas"])
    annotations = one["metadata"].get("annotations") or {}
    text = annotations.get(MAX_REPLICAS, "")
    before = int(text) if text.isdecimal() and int(text) else wanted + surge
    share = int(size * (wanted + surge) / before + 0.5) - size if wanted else -size
    left = to_add - added
    return min(share, left) if to_add > 0 else max(share, left)
