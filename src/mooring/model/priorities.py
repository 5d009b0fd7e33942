"""Priorities from priority classes, as the Priority admission plugin resolves them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mooring.model.api.elastic_quota import PREEMPTIBLE as QUOTAS_PREEMPTIBLE
from mooring.model.api.kai_labels import PREEMPTIBILITY, is_kai_pod, may_kai_evict
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.api.policies import PriorityClass
from mooring.model.places import Place, show

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Always there; nobody has to list them."""
PREEMPT, NEVER = "PreemptLowerPriority", "Never"


@dataclass(frozen=True, slots=True)
class Priorities:
    """All priority classes by name, and the one for pods that name none."""

    by_name: dict[str, PriorityClass]
    default: PriorityClass | None = None

    def resolve(self, spec: PodSpec, place: Place, subject: Any, path: str = "spec") -> None:
        """Set a spec's priority and preemption policy.

        A priority that is given stays: scenarios give it directly, and pods dumped from a cluster carry it even where
        their class was not dumped with them. Only what is yet to be created and contradicts its class is refused.
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
            if spec.priority not in (None, found.value) and not spec.node_name and not _exists(subject):
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


def _exists(subject: Any) -> bool:
    """Whether an object is on a cluster already: what its class was worth then is not for us to ask."""
    return bool(subject.metadata.resource_version)


def collect_priorities(classes: Iterable[PriorityClass]) -> Priorities:
    """Gather the classes and add the system's own; of several global defaults the lowest counts."""
    by_name = {name: PriorityClass(value=value) for name, value in SYSTEM_CLASSES.items()}
    for name, system_class in by_name.items():
        system_class.metadata.name = name
    by_name |= {found.metadata.name: found for found in classes}
    defaults = (found for found in by_name.values() if found.global_default)
    return Priorities(by_name, min(defaults, key=lambda found: found.value, default=None))


def check_global_defaults(classes: Iterable[tuple[PriorityClass, Place]]) -> None:
    """Two global defaults are a mistake."""
    default: PriorityClass | None = None
    for found, place in classes:
        if found.global_default and default is not None:
            raise place.error(
                "globalDefault",
                expected="at most one global default",
                found=f"a second one besides {default.metadata.name}",
                subject=found,
            )
        default = found if found.global_default else default


PREEMPTABLE = "volcano.sh/preemptable"
"""Volcano's annotation or label on pods."""


def is_critical(pod: Pod) -> bool:
    """Whether the cluster itself needs a pod: Volcano's plugin `conformance` lets nobody reclaim or preempt it."""
    return pod.metadata.namespace == "kube-system" or pod.spec.priority_class_name in SYSTEM_CLASSES


def is_preemptible(pod: Pod) -> bool:
    """Whether a pod may be evicted for another's sake at all."""
    labels, annotations = pod.metadata.labels or {}, pod.metadata.annotations
    if annotations and annotations.get(PREEMPTABLE) == "false":
        return False
    if labels and (labels.get(PREEMPTABLE) == "false" or labels.get(QUOTAS_PREEMPTIBLE) == "false"):
        return False
    return not is_kai_pod(pod.spec, labels) or may_kai_evict(labels.get(PREEMPTIBILITY), pod.spec.priority)
