"""How long pods of a PriorityClass tolerate preemption, as scheduler-plugins' PreemptionToleration has it.

Annotations of the class say up to which priority preemptors are tolerated, and for how many seconds after a pod was
scheduled; for ever, if the number is negative. A class without them tolerates nothing, and so does one whose
annotations are no numbers.
"""

from typing import NamedTuple

from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PriorityClass

PREFIX = "preemption-toleration.scheduling.sigs.k8s.io/"
MINIMUM_PREEMPTABLE_PRIORITY = PREFIX + "minimum-preemptable-priority"
TOLERATION_SECONDS = PREFIX + "toleration-seconds"
SCHEDULED = "PodScheduled"
_INT32, _INT64 = 2**31, 2**63


class Toleration(NamedTuple):
    """What the pods of a class tolerate."""

    minimum_priority: int
    """Preemptors of this priority or a higher one are not tolerated."""
    seconds: int
    """For how long others are, since a pod was scheduled; negative: for ever."""


def toleration_of(found: PriorityClass) -> Toleration | None:
    """Return what the pods of a class tolerate; None if they tolerate nothing."""
    annotations = found.metadata.annotations or {}
    minimum = _number(annotations.get(MINIMUM_PREEMPTABLE_PRIORITY, str(found.value + 1)), _INT32)
    seconds = _number(annotations.get(TOLERATION_SECONDS, "0"), _INT64)
    return None if minimum is None or not seconds else Toleration(minimum, seconds)


def scheduled_at(pod: Pod) -> float | None:
    """When a pod was scheduled, by its condition; None if that does not say so."""
    said = (one for one in pod.status.conditions or () if one.type == SCHEDULED and one.status == "True")
    condition = next(said, None)
    return None if condition is None else timestamp_seconds(condition.last_transition_time)


def _number(text: str, limit: int) -> int | None:
    """A decimal number with or without a sign, as Go reads it."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit():
        return None
    found = int(text)
    return found if -limit <= found < limit else None
