"""How gangs are treated: the arguments of `GangScheduling` and `Coscheduling` in a profile's pluginConfig."""

from collections.abc import Iterator

from mooring.model.api.meta import KubeObject
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration


class GangSchedulingArgs(KubeObject, forbid_unknown_fields=True):
    """Times in seconds; kube-scheduler's own plugin of this name takes no arguments."""

    api_version: str = ""
    kind: str = ""
    timeout_seconds: float = 300
    """How long a gang may run with fewer members than it needs, or start without all of them confirmed, before all are
    released; a gang's own timeout goes before it."""
    reserve_after_seconds: float = 300
    """How long a gang waits before room that becomes free is kept for it; negative: never."""

    def validate(self) -> Iterator[tuple[str, str, str]]:
        if self.timeout_seconds <= 0:
            yield "timeoutSeconds", "more than 0", f"{self.timeout_seconds:g}"


class CoschedulingArgs(KubeObject):
    """CoschedulingArgs of scheduler-plugins, and of Koordinator's plugin of that name as far as they say how long."""

    permit_waiting_time_seconds: int | None = None
    """How long a gang may be less than whole that says nothing of it itself: `timeoutSeconds` of GangScheduling."""
    pod_group_backoff_seconds: int = 0
    """How long a gang that was tried in vain stays behind the others, at the least."""
    default_timeout: str | None = None
    """Koordinator's word for the permitted waiting time."""

    def validate(self) -> Iterator[tuple[str, str, str]]:
        for name, value in (
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
        ):
            if value is not None and value < 0:
                yield name, "0 or more", str(value)
        if self.default_timeout is not None and not parse_duration(self.default_timeout):
            yield "defaultTimeout", EXPECTED_DURATION, self.default_timeout

    @property
    def timeout_seconds(self) -> float | None:
        """How long a gang may be less than whole, if it is said at all."""
        if self.permit_waiting_time_seconds:
            return float(self.permit_waiting_time_seconds)
        return None if self.default_timeout is None else parse_duration(self.default_timeout)
