"""How gangs are treated: the arguments of `GangScheduling` in a profile's pluginConfig."""

from collections.abc import Iterator

from mooring.model.api.meta import KubeObject


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
