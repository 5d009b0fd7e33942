"""The pods of a LeaderWorkerSet, labelled and kept apart from other groups as its controller and webhook do it."""

import hashlib
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mooring.model.api.meta import Labels, LabelSelector, LabelSelectorRequirement
from mooring.model.api.pods import Affinity, Pod, PodAffinity, PodAffinityTerm, PodSpec, PodTemplateSpec
from mooring.model.api.workloads import StatefulSet
from mooring.model.gangs.dialects.lws import (
    EXCLUSIVE,
    LEADER_EXCLUDED,
    PREFIX,
    SUBGROUP_EXCLUSIVE,
    LeaderWorkerSet,
)
from mooring.model.gangs.membership import LWS_GROUP_INDEX, LWS_NAME, LWS_WORKER_INDEX, VOLCANO_GROUPS
from mooring.model.jobs.expansion import Owned, Stamp, owner_key

SIZE, LEADER_NAME = f"{PREFIX}/size", f"{PREFIX}/leader-name"
GROUP_KEY, SUBGROUP_KEY = f"{PREFIX}/group-key", f"{PREFIX}/subgroup-key"
SUBGROUP_INDEX, SUBGROUP_SIZE = f"{PREFIX}/subgroup-index", f"{PREFIX}/subgroup-size"
SUBGROUP_TYPE = f"{PREFIX}/subgroup-policy-type"


def expand_leader_worker_set(found: LeaderWorkerSet, owned: Owned) -> list[Pod]:
    """Create the missing pods of every group: `set-0` is the leader of the first, `set-0-1` its first worker.

    Workers are created at once, also under LeaderReady: where they would go is what one wants to know.
    """
    pods: list[Pod] = []
    for index in range(found.spec.replicas):
        pods.extend(_group_pods(found, index, owned))
    return pods


def _group_pods(found: LeaderWorkerSet, index: int, owned: Owned) -> Iterator[Pod]:
    metadata = found.metadata
    leader = f"{metadata.name}-{index}"
    pods = _present(found, leader, owned)
    present = {pod.metadata.name for pod in pods} | _made_by_sets(found, leader, owned)
    if len(present) >= found.size:
        return
    template = found.spec.leader_worker_template
    labels = {
        LWS_NAME: metadata.name,
        LWS_GROUP_INDEX: str(index),
        GROUP_KEY: _digest(metadata.namespace, leader),
    }
    shared = {**_annotations(found), **_group_named_by(pods)}
    if leader not in present:
        own = {LWS_WORKER_INDEX: "0", **_sub_group(found, leader, 0)}
        spec = _kept_apart(found.leader_template.spec, found.annotation(EXCLUSIVE), GROUP_KEY, labels[GROUP_KEY])
        if SUBGROUP_KEY in own:
            spec = _kept_apart(spec, found.annotation(SUBGROUP_EXCLUSIVE), SUBGROUP_KEY, own[SUBGROUP_KEY])
        yield Stamp(found, _annotated(found.leader_template, shared), labels).pod(leader, own, spec)
    stamp = Stamp(found, _annotated(template.worker_template, {**shared, LEADER_NAME: leader}), labels)
    specs: dict[str, PodSpec] = {}  # one for each subgroup, shared by its pods
    for worker in range(1, found.size):
        name = f"{leader}-{worker}"
        if name not in present:
            own = {LWS_WORKER_INDEX: str(worker), **_sub_group(found, leader, worker)}
            key = own.get(SUBGROUP_KEY, "")
            if key not in specs:
                level = found.annotation(SUBGROUP_EXCLUSIVE) if key else ""
                specs[key] = _kept_apart(template.worker_template.spec, level, SUBGROUP_KEY, key)
            yield stamp.pod(name, own, specs[key])


def _present(found: LeaderWorkerSet, leader: str, owned: Owned) -> list[Pod]:
    """A group's pods that are there: its leader is made by one StatefulSet, its workers by another."""
    namespace, name = found.metadata.namespace, found.metadata.name
    candidates = (
        *owned.get(owner_key(found), ()),
        *owned.get(("StatefulSet", namespace, name), ()),
        *owned.get(("StatefulSet", namespace, leader), ()),
    )
    names = {leader, *_workers(found, leader)}
    return [pod for pod in candidates if isinstance(pod, Pod) and pod.metadata.name in names]


def _made_by_sets(found: LeaderWorkerSet, leader: str, owned: Owned) -> set[str]:
    """The pods that a StatefulSet makes which is there itself: it belongs to the set, or to a group's leader."""
    names: set[str] = set()
    for owner in owned.get(owner_key(found), ()):
        if isinstance(owner, StatefulSet):
            names.add(leader)
    for owner in owned.get(("Pod", found.metadata.namespace, leader), ()):
        if isinstance(owner, StatefulSet):
            names.update(_workers(found, leader))
    return names


def _workers(found: LeaderWorkerSet, leader: str) -> list[str]:
    return [f"{leader}-{worker}" for worker in range(1, found.size)]


def _annotations(found: LeaderWorkerSet) -> dict[str, str]:
    annotations = {SIZE: str(found.size)}
    policy = found.spec.leader_worker_template.sub_group_policy
    if level := found.annotation(EXCLUSIVE):
        annotations[EXCLUSIVE] = level
    if policy is not None:
        annotations |= {SUBGROUP_SIZE: str(found.sub_group_size), SUBGROUP_TYPE: policy.type}
        if level := found.annotation(SUBGROUP_EXCLUSIVE):
            annotations[SUBGROUP_EXCLUSIVE] = level
    return annotations


def _group_named_by(present: Iterable[Pod]) -> dict[str, str]:
    """The PodGroup that the pods at hand name, if the set's controller makes PodGroups: new ones join it."""
    for pod in present:
        annotations = pod.metadata.annotations or {}
        for key in VOLCANO_GROUPS:
            if annotations.get(key):
                return {key: annotations[key]}
    return {}


def _sub_group(found: LeaderWorkerSet, leader: str, worker: int) -> Labels:
    """Which subgroup a pod is in. A leader that is one too many is in the first, unless it is kept out of all."""
    policy, count = found.spec.leader_worker_template.sub_group_policy, found.sub_group_size
    if policy is None or (policy.type == LEADER_EXCLUDED and worker == 0):
        return {}
    is_extra = (found.size - 1) % count == 0
    index = str(max(worker - 1, 0) // count if is_extra else worker // count)
    return {SUBGROUP_INDEX: index, SUBGROUP_KEY: _digest(leader, index)}


def _digest(first: str, second: str) -> str:
    return hashlib.sha1(f"{first}/{second}".encode(), usedforsecurity=False).hexdigest()


def _annotated(template: PodTemplateSpec, annotations: dict[str, str]) -> PodTemplateSpec:
    merged = {**(template.metadata.annotations or {}), **annotations}
    return replace(template, metadata=replace(template.metadata, annotations=merged))


def _kept_apart(spec: PodSpec, level: str, label: str, value: str) -> PodSpec:
    """Exclusive placement: with pods of the own group, and with no other group's, in one domain of the level."""
    if not level:
        return spec
    own = LabelSelectorRequirement(key=label, operator="In", values=[value])
    others = [
        LabelSelectorRequirement(key=label, operator="Exists"),
        LabelSelectorRequirement(key=label, operator="NotIn", values=[value]),
    ]
    affinity = spec.affinity or Affinity()
    return replace(
        spec,
        affinity=replace(
            affinity,
            pod_affinity=_with_term(affinity.pod_affinity, level, [own]),
            pod_anti_affinity=_with_term(affinity.pod_anti_affinity, level, others),
        ),
    )


def _with_term(affinity: PodAffinity | None, level: str, matching: list[LabelSelectorRequirement]) -> PodAffinity:
    affinity = affinity or PodAffinity()
    term = PodAffinityTerm(topology_key=level, label_selector=LabelSelector(match_expressions=matching))
    return replace(affinity, required=[*(affinity.required or ()), term])
