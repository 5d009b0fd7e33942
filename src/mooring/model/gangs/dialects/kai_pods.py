"""Which pods are KAI's, and what their workload says of them: queue, priority class, whether they may be evicted."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mooring.model.api.kai_labels import PREEMPTIBILITY, QUEUE, is_kai_pod
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import PodSpec
from mooring.model.api.policies import PriorityClass
from mooring.model.priorities import Priorities

DEFAULT_QUEUE = "default-queue"
PRIORITY_CLASS = "priorityClassName"
RAY_PRIORITY_CLASS = "ray.io/priority-class-name"

TRAIN, INFERENCE = "train", "inference"
CLASSES = {TRAIN: 50, "build-preemptible": 75, "build": 100, INFERENCE: 125}
"""The classes that come with KAI; manifests need not list them."""

CARRIED = (QUEUE, PREEMPTIBILITY)
_MOST_OWNERS = 8
"""One above the other; owners that own each other would have no end."""


def with_kai_classes(priorities: Priorities) -> Priorities:
    """The classes that are listed, and those that come with KAI."""
    own = {name: PriorityClass(metadata=ObjectMeta(name=name), value=value) for name, value in CLASSES.items()}
    return replace(priorities, by_name={**own, **priorities.by_name})


def default_kai_pod(metadata: ObjectMeta, spec: PodSpec, priorities: Priorities, owner: Any = None) -> bool:
    """Let a pod, or the pods of a template, have what KAI's pod-grouper would find out about them.

    Labels of the workload go before those of the pod, and a class that nobody lists counts for nothing. Tell
    whether they are KAI's.
    """
    owner_labels: Mapping[str, str] = (owner.metadata.labels if owner is not None else None) or {}
    if not is_kai_pod(spec, metadata.labels) and QUEUE not in owner_labels:
        return False
    carry_labels(metadata, owner)
    labels = metadata.labels or {}
    named = (owner_labels.get(RAY_PRIORITY_CLASS), owner_labels.get(PRIORITY_CLASS), labels.get(PRIORITY_CLASS))
    found = next((name for name in named if name in priorities.by_name), None)
    if found is not None:
        spec.priority_class_name, spec.priority = found, None
    elif not spec.priority_class_name and not spec.priority:
        # A pod that was dumped has the priority that the API server gave it; to KAI, that is no word.
        is_served = owner is not None and owner.kind == "Deployment"
        spec.priority_class_name, spec.priority = INFERENCE if is_served else TRAIN, None
    return True


def carry_labels(metadata: ObjectMeta, owner: Any) -> None:
    """Write on pods what the labels of their workload say of all of them."""
    labels = owner.metadata.labels if owner is not None else None
    if not labels:
        return
    carried = {key: labels[key] for key in CARRIED if key in labels}
    if carried:
        metadata.labels = {**(metadata.labels or {}), **carried}


class TopOwners:
    """Finds the workload at the top of all that own a pod: its labels count, as for KAI's pod-grouper."""

    def __init__(self, owners: Iterable[Any]) -> None:
        self._by_key = {(owner.kind, owner.metadata.namespace, owner.metadata.name): owner for owner in owners}
        self._tops: dict[tuple[str, str, str], Any] = {}

    def of(self, metadata: ObjectMeta, most: int = _MOST_OWNERS) -> Any:
        """The owner that has none itself, as far as they are known; None for whoever is owned by nobody known."""
        for reference in metadata.owner_references or ():
            if reference.controller:
                key = (reference.kind, metadata.namespace, reference.name)
                if key not in self._tops:
                    found = self._by_key.get(key) if most else None
                    self._tops[key] = found and (self.of(found.metadata, most - 1) or found)
                return self._tops[key]
        return None
