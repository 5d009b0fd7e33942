"""Pods that queue themselves: alone, or as a group that says how many it is and is admitted as one."""

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.model.api.kueue_labels import (
    ADMISSION_GATE,
    POD_GROUP_FAST_ADMISSION,
    POD_GROUP_INDEX,
    POD_GROUP_TOTAL,
    RETRIABLE_IN_GROUP,
    positive_count,
)
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod, PodTemplateSpec
from mooring.model.jobs.pod_sets import MAIN, PodSetPlan, role_hash


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The pods of one group, as far as they are there."""

    namespace: str
    name: str
    pods: list[Pod]

    @property
    def total(self) -> int:
        return positive_count(annotation(self.pods[0], POD_GROUP_TOTAL)) or len(self.pods)

    @property
    def alive(self) -> list[Pod]:
        """The pods that run, may run or have succeeded; those that failed may be replaced."""
        return [pod for pod in self.pods if pod.status.phase != "Failed" and (pod.spec.node_name or not _goes(pod))]

    @property
    def is_over(self) -> bool:
        succeeded = sum(pod.status.phase == "Succeeded" for pod in self.pods)
        is_final = any(annotation(pod, RETRIABLE_IN_GROUP) == "false" for pod in self.pods)
        return succeeded >= self.total or (is_final and all(pod.is_terminal for pod in self.pods))

    @property
    def is_fast(self) -> bool:
        """Whether it is admitted before all of its pods are there."""
        return bool(annotation(self.pods[0], POD_GROUP_FAST_ADMISSION))

    @property
    def problem(self) -> str:
        """Why it cannot be admitted yet, empty if it can."""
        if len(self.alive) < self.total and not (self.is_fast and self.alive):
            return f"'{self.name}' group has fewer runnable pods than expected: {len(self.alive)} of {self.total}"
        return ""

    def members(self) -> dict[str, list[Pod]]:
        """Its pods by role, the roles in order; pods beyond its total, those that came last, are left out.

        In a group that does not wait for all of its pods they are all of the first one's role.
        """
        kept = sorted(self.alive, key=_seniority)[: self.total]
        if self.is_fast:
            return {role_hash(self.alive[0]): kept}
        by_role: dict[str, list[Pod]] = {}
        for pod in kept:
            by_role.setdefault(role_hash(pod), []).append(pod)
        return dict(sorted(by_role.items()))

    def pod_sets(self) -> list[PodSetPlan]:
        """One for each role."""
        return [
            pod_plan(
                pods[0],
                role,
                self.total if self.is_fast else len(pods),
                sum(pod.status.phase == "Succeeded" for pod in pods),
            )
            for role, pods in self.members().items()
        ]


def annotation(pod: Pod, key: str) -> str:
    return pod.metadata.annotations.get(key, "") if pod.metadata.annotations else ""


def _goes(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _seniority(pod: Pod) -> tuple[bool, float]:
    """Who stays if there are too many: those without the gate, then the oldest."""
    is_gated = any(gate.name == ADMISSION_GATE for gate in pod.spec.scheduling_gates or ())
    return is_gated, timestamp_seconds(pod.metadata.creation_timestamp) or 0.0


def gather_groups(pods: Iterable[tuple[str, Pod]]) -> list[PodGroup]:
    """Put pods, each with the name of its group, together; groups in the order of their first pods."""
    groups: dict[tuple[str, str], list[Pod]] = {}
    for name, pod in pods:
        groups.setdefault((pod.metadata.namespace, name), []).append(pod)
    return [PodGroup(namespace, name, found) for (namespace, name), found in groups.items()]


def pod_plan(pod: Pod, name: str = MAIN, count: int = 1, reclaimable: int = 0) -> PodSetPlan:
    """The pod set of pods that are all like this one."""
    return PodSetPlan(
        name=name,
        template=PodTemplateSpec(metadata=pod.metadata, spec=pod.spec),
        count=count,
        path="",
        reclaimable=reclaimable,
        index_label=POD_GROUP_INDEX,
    )
