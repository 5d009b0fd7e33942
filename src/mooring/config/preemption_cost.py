"""What preemption may cost besides priorities: work that is lost, and the same workload hit again and again.

All of it is off by default: then victims are chosen as kube-scheduler chooses them.
"""

from collections.abc import Iterator

import msgspec


class PreemptionCostArgs(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `PreemptionCost` in a profile's pluginConfig; they hold for what the profile's pods preempt."""

    least_work_lost: bool = False
    """Of victims with equal priority, rather those that lose the least time since their last checkpoint, or start."""
    minimum_runtime_seconds: int = 0
    """A pod that has run for less is no victim yet."""
    minimum_runtime_seconds_by_priority_class: dict[str, int] = {}
    """The same by the name of the victim's PriorityClass, where it is to be another."""
    most_preemptions_per_workload: int = 0
    """A workload that was preempted so often within the window is no victim any more; 0: no limit."""
    window_seconds: int = 3600
    heed_tolerations: bool = False
    """Whether pods tolerate preemption as the annotations of their PriorityClass say; true with the plugin
    PreemptionToleration."""

    def validate(self) -> Iterator[tuple[str, str, str]]:
        if self.minimum_runtime_seconds < 0:
            yield "minimumRuntimeSeconds", "a whole number of at least 0", str(self.minimum_runtime_seconds)
        for name, seconds in self.minimum_runtime_seconds_by_priority_class.items():
            if seconds < 0:
                at = f"minimumRuntimeSecondsByPriorityClass.{name}"
                yield at, "a whole number of at least 0", str(seconds)
        if self.most_preemptions_per_workload < 0:
            yield "mostPreemptionsPerWorkload", "a whole number of at least 0", str(self.most_preemptions_per_workload)
        if self.window_seconds < 1:
            yield "windowSeconds", "a whole number above 0", str(self.window_seconds)

    @property
    def has_minimum_runtime(self) -> bool:
        return self.minimum_runtime_seconds > 0 or any(self.minimum_runtime_seconds_by_priority_class.values())

    @property
    def protects(self) -> bool:
        """Whether anybody may be no victim for a while."""
        return self.has_minimum_runtime or self.most_preemptions_per_workload > 0 or self.heed_tolerations

    @property
    def is_off(self) -> bool:
        return not self.protects and not self.least_work_lost
