"""What users call things: the workload that they wrote, and the pods that a name stands for."""

import difflib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from mooring.errors import InputError
from mooring.model.api.pods import Pod
from mooring.model.api.workloads import Job, ReplicaSet
from mooring.model.gangs.membership import membership
from mooring.model.jobs.expansion import controller_of
from mooring.model.jobs.jobset import JOB_SET_NAME, JobSet
from mooring.model.jobs.ray import RayCluster, RayJob, RayService, cluster_name
from mooring.model.loading.manifests import Manifests

_NUMBERED = re.compile(r"(.+?)[-.]?\d+")
MOST_LEVELS = 8
"""Owners above owners that are followed: there are three at most where nobody writes a circle."""
MOST_COMPARED = 5000
"""Comparing with every name of a large cluster takes longer than reading it: beyond so many, those that begin alike."""


class Workload(NamedTuple):
    """What a user would name as the owner of pods: `Deployment/web`."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Workloads:
    """Finds the outermost controller of each pod: a Deployment for its ReplicaSet, a TrainJob for its JobSet."""

    def __init__(self, manifests: Manifests) -> None:
        self._outer: dict[Workload, Workload] = {}
        refused = [refusal.found for refusal in manifests.refused if isinstance(refusal.found, ReplicaSet | Job)]
        sets = (*manifests.of(JobSet), *manifests.of(RayCluster))
        controllers: tuple[Any, ...] = (*manifests.replica_sets, *manifests.jobs, *sets, *refused)
        for found in controllers:
            owner = controller_of(found.metadata)
            if owner is not None:
                namespace = found.metadata.namespace
                inner = Workload(namespace, found.kind, found.metadata.name)
                self._outer[inner] = Workload(namespace, owner.kind, owner.name)
        jobs = {(job.metadata.namespace, job.metadata.name) for job in manifests.jobs}
        of_ray: tuple[RayJob | RayService, ...] = (*manifests.of(RayJob), *manifests.of(RayService))
        for ray in of_ray:  # what they make may be no object yet
            namespace, name = ray.metadata.namespace, ray.metadata.name
            outer = Workload(namespace, ray.kind, name)
            self._outer.setdefault(Workload(namespace, "RayCluster", cluster_name(ray)), outer)
            if (namespace, name) not in jobs and isinstance(ray, RayJob):
                self._outer.setdefault(Workload(namespace, "Job", name), outer)

    def owner_of(self, pod: Pod) -> Workload | None:
        """The workload that made the pod; None for a bare pod."""
        if not pod.metadata.owner_references:
            return None
        owner = controller_of(pod.metadata)
        if owner is None:
            return None
        found = Workload(pod.metadata.namespace, owner.kind, owner.name)
        job_set = (pod.metadata.labels or {}).get(JOB_SET_NAME)
        if job_set and owner.kind == "Job":  # the Job itself may be no object
            found = Workload(pod.metadata.namespace, "JobSet", job_set)
        for _ in range(MOST_LEVELS):
            if found not in self._outer:
                break
            found = self._outer[found]
        return found

    def name_of(self, pod: Pod) -> str:
        """`Deployment/web`; empty for a bare pod."""
        owner = self.owner_of(pod)
        return str(owner) if owner else ""


def group_name(pod: str, owner: str) -> str:
    """What pods are listed under: their workload, or for bare pods the name without its number: `Pod/batch-*`."""
    if owner:
        return owner
    numbered = _NUMBERED.fullmatch(pod)
    return f"Pod/{numbered[1]}-*" if numbered else f"Pod/{pod}"


SHORT_NAMES = {
    "po": "pod",
    "deploy": "deployment",
    "rs": "replicaset",
    "sts": "statefulset",
    "ds": "daemonset",
    "rc": "replicationcontroller",
    "cj": "cronjob",
    "pg": "podgroup",
}
"""As kubectl has them."""


def _as_kubectl(wanted: str) -> str:
    """A name without kubectl's ways to write its kind: deploy/web, deployments/web and deployment.apps/web are one."""
    *before, last = wanted.split("/")
    if not before:
        return wanted
    kind = before[-1].lower().partition(".")[0]
    kind = SHORT_NAMES.get(kind, kind.removesuffix("s") if kind in _PLURALS else kind)
    return "/".join([*before[:-1], kind if kind in _KNOWN else before[-1], last])


_KNOWN = {*SHORT_NAMES.values(), "job"}
_PLURALS = {f"{kind}s" for kind in _KNOWN}


def find_pods(manifests: Manifests, wanted: str, namespace: str = "") -> list[Pod]:
    """The pod of this name or namespace/name, or the pods of one workload: `train`, `job/train`, `team-a/train`; as
    kubectl writes them also `pod/train-0` and `deploy/web`. Of one namespace, if it is given."""
    refused = [refusal.found for refusal in manifests.refused if isinstance(refusal.found, Pod)]
    pods = [*manifests.pods, *refused] if refused else manifests.pods
    if namespace:
        pods = [pod for pod in pods if pod.metadata.namespace == namespace]
    wanted = _as_kubectl(wanted)
    before, _, last = wanted.rpartition("/")
    place, _, kind = before.rpartition("/")
    is_pod = kind == "pod"
    if is_pod:
        wanted = f"{place}/{last}" if place else last
    exact = [pod for pod in pods if wanted in (pod.key, pod.metadata.name)]
    if len(exact) == 1:
        return exact
    if exact:
        keys = ", ".join(pod.key for pod in exact[:5])
        raise InputError(f"pod {wanted}: expected a name that one pod has (namespace/name), found {keys}")
    if is_pod:
        raise InputError(f"pod {wanted}: expected the name of a pod{_near(wanted, pods)}, found none with it")
    workloads = Workloads(manifests)
    owned: dict[Workload, list[Pod]] = {}
    for pod in pods:
        owner = workloads.owner_of(pod)
        if owner is not None and _means(wanted, owner):
            owned.setdefault(owner, []).append(pod)
    if len(owned) == 1:
        return next(iter(owned.values()))
    if owned:
        several = ", ".join(f"{owner.namespace}/{owner.kind.lower()}/{owner.name}" for owner in owned)
        raise InputError(f"pod {wanted}: expected the name of one workload, found {several}")
    members = _members(manifests, wanted, pods)
    if members:
        return members
    raise InputError(f"pod {wanted}: expected the name of a pod{_near(wanted, pods)}, found none with it")


def _members(manifests: Manifests, wanted: str, pods: Sequence[Pod]) -> list[Pod]:
    """The pods of the gang of this name: `train`, `research/train`, `gang/train`."""
    name = wanted.removeprefix("gang/").removeprefix("podgroup/")
    keys = {gang.key for gang in manifests.gangs if name in (gang.name, gang.name.rpartition("/")[2])}
    found = [(pod, membership(pod)) for pod in pods] if keys else []
    return [pod for pod, member in found if member is not None and member.gang in keys]


def _means(wanted: str, owner: Workload) -> bool:
    before, _, last = wanted.rpartition("/")
    kind = owner.kind.lower()
    return last == owner.name and before.lower() in ("", owner.namespace, kind, f"{owner.namespace}/{kind}")


def _near(wanted: str, pods: Sequence[Pod]) -> str:
    names = [pod.key if "/" in wanted else pod.metadata.name for pod in pods]
    alike = [name for name in names if name[:2] == wanted[:2]] if len(names) > MOST_COMPARED else names
    near = difflib.get_close_matches(wanted, alike[:20000], n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(dict.fromkeys(near))}?)" if near else ""
