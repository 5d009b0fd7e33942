"""Priorities from priority classes, as the Priority admission plugin resolves them."""

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.model.api.pods import Pod, PodSpec
from mooring.model.api.policies import PriorityClass
from mooring.model.gangs.dialects.kai_pods import PREEMPTIBILITY, is_kai_pod, may_kai_evict
from mooring.model.loading.places import Place, show

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Always there; nobody has to list them."""
PREEMPT, NEVER = "PreemptLowerPriority", "Never"


@dataclass(frozen=True, slots=True)
class Priorities:
    """All priority classes by name, and the one for pods that name none."""

    by_name: dict[str, PriorityClass]
    default: PriorityClass | None = None

    def resolve(self, spec: PodSpec, place: Place, subject: object, path: str = "spec") -> None:
        """Set a spec's priority and preemption policy.

        A priority that is given stays: scenarios give it directly, and pods dumped from a cluster carry it even where
        their class was not dumped with them. Only a pod that is yet to be placed and contradicts its class is refused.
        """
        name = spec.priority_class_name
        if not name:
            if spec.priority is None and self.default is not None:
                spec.priority_class_name = self.default.metadata.name
                self._take(spec, self.default)
            elif spec.priority is None:
                spec.priority = 0
        elif name in self.by_name:
            found = self.by_name[name]
            if spec.priority not in (None, found.value) and not spec.node_name:
                raise place.error(
                    f"{path}.priority",
                    expected=f"{found.value}, the value of class {name}, or no priority",
                    found=show(spec.priority),
                    subject=subject,
                )
            self._take(spec, found)
        elif spec.priority is None:
            raise place.error(
                f"{path}.priorityClassName",
                expected=f"a known PriorityClass ({', '.join(sorted(self.by_name))})",
                found=show(name),
                subject=subject,
            )
        spec.preemption_policy = spec.preemption_policy or PREEMPT

    def _take(self, spec: PodSpec, found: PriorityClass) -> None:
        spec.priority = found.value if spec.priority is None else spec.priority
        spec.preemption_policy = spec.preemption_policy or found.preemption_policy


def collect_priorities(classes: Iterable[tuple[PriorityClass, Place]]) -> Priorities:
    """Gather the classes and add the system's own; two global defaults are a mistake."""
    by_name = {name: PriorityClass(value=value) for name, value in SYSTEM_CLASSES.items()}
    for name, system_class in by_name.items():
        system_class.metadata.name = name
    default: PriorityClass | None = None
    for found, place in classes:
        by_name[found.metadata.name] = found
        if found.global_default and default is not None:
            raise place.error(
                "globalDefault",
                expected="at most one global default",
                found=f"a second one besides {default.metadata.name}",
                subject=found,
            )
        default = found if found.global_default else default
    return Priorities(by_name, default)


PREEMPTABLE = "volcano.sh/preemptable"
"""Volcano's annotation or label on pods."""


def is_preemptible(pod: Pod) -> bool:
    """Whether a pod may be evicted for another's sake at all."""
    labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations or {}
    if annotations.get(PREEMPTABLE) == "false" or labels.get(PREEMPTABLE) == "false":
        return False
    return not is_kai_pod(pod.spec, labels) or may_kai_evict(labels.get(PREEMPTIBILITY), pod.spec.priority)
