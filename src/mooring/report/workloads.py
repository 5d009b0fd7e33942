"""Whose pods are these: the workload that a user wrote, not the controller in between."""

import re
from typing import NamedTuple

from mooring.model.api.pods import Pod
from mooring.model.api.workloads import Job, ReplicaSet
from mooring.model.loading.expansion import controller_of
from mooring.model.loading.manifests import Manifests

_NUMBERED = re.compile(r"(.+?)[-.]?\d+")


class Workload(NamedTuple):
    """What a user would name as the owner of pods: `Deployment/web`."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Workloads:
    """Finds the outermost controller of each pod: a Deployment for its ReplicaSet, a CronJob for its Job."""

    def __init__(self, manifests: Manifests) -> None:
        self._outer: dict[Workload, Workload] = {}
        refused = [refusal.found for refusal in manifests.refused if isinstance(refusal.found, ReplicaSet | Job)]
        controllers: tuple[ReplicaSet | Job, ...] = (*manifests.replica_sets, *manifests.jobs, *refused)
        for found in controllers:
            owner = controller_of(found.metadata)
            if owner is not None:
                namespace = found.metadata.namespace
                inner = Workload(namespace, found.kind, found.metadata.name)
                self._outer[inner] = Workload(namespace, owner.kind, owner.name)

    def owner_of(self, pod: Pod) -> Workload | None:
        """The workload that made the pod; None for a bare pod."""
        if not pod.metadata.owner_references:
            return None
        owner = controller_of(pod.metadata)
        if owner is None:
            return None
        direct = Workload(pod.metadata.namespace, owner.kind, owner.name)
        return self._outer.get(direct, direct)


def group_name(pod: str, owner: str) -> str:
    """What pods are listed under: their workload, or for bare pods the name without its number: `Pod/batch-*`."""
    if owner:
        return owner
    numbered = _NUMBERED.fullmatch(pod)
    return f"Pod/{numbered[1]}-*" if numbered else f"Pod/{pod}"
