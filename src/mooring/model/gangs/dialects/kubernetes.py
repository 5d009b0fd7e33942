"""Gangs in Kubernetes' own words: PodGroup, CompositePodGroup and Workload of `scheduling.k8s.io`.

All forms that were served are read: v1alpha1 (Workload with pod groups inside, which pods name by workloadRef),
v1alpha2, v1alpha3 and v1beta1 (PodGroups of their own). There a Workload is but a template, and makes no gang.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, timestamp_seconds
from mooring.model.gangs.checks import check_level, check_minimum, check_names
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import NATIVE_KIND, gang_of_workload
from mooring.model.keys import NO_GANG, GangKey
from mooring.model.places import Place
from mooring.model.topology.requests import TopologyRequest
from mooring.model.validation.kueue import find_cohort_cycle
from mooring.model.validation.pods import PREEMPTION_POLICIES
from mooring.model.validation.terms import Subject, check_choice

GROUP = "scheduling.k8s.io"
COMPOSITE_KIND = f"CompositePodGroup.{GROUP}"
MOST_TEMPLATES = 8
DISRUPTION_MODES = ("Pod", "PodGroup")
"""How v1alpha2 spells single and all."""

Presence: TypeAlias = dict[str, Any]
"""An object without fields: that it is there says all."""


class GangPolicy(KubeObject):
    min_count: int | None = None
    min_group_count: int | None = None
    """In a CompositePodGroup."""


class SchedulingPolicy(KubeObject):
    """Exactly one of the two."""

    basic: Presence | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(KubeObject):
    key: str = ""
    topology_key: str = ""
    """What v1alpha2 calls key."""


class SchedulingConstraints(KubeObject):
    topology: list[TopologyConstraint] | None = None
    topology_constraints: list[TopologyConstraint] | None = None
    """What v1alpha2 calls topology."""


class DisruptionMode(KubeObject):
    """Exactly one of the two."""

    single: Presence | None = None
    all: Presence | None = None


class PodGroupSpec(KubeObject):
    parent_composite_pod_group_name: str = ""
    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | str | None = None
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None


class NativePodGroup(KubeObject):
    api_version: str = f"{GROUP}/v1beta1"
    kind: str = "PodGroup"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)


class CompositePodGroup(KubeObject):
    api_version: str = f"{GROUP}/v1alpha3"
    kind: str = "CompositePodGroup"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)


class GroupTemplate(PodGroupSpec):
    name: str = ""
    policy: SchedulingPolicy | None = None
    """What v1alpha1 calls schedulingPolicy."""
    pod_group_templates: list["GroupTemplate"] | None = None
    composite_pod_group_templates: list["GroupTemplate"] | None = None


class WorkloadSpec(KubeObject):
    pod_groups: list[GroupTemplate] | None = None
    """In v1alpha1: not templates, but the groups themselves."""
    pod_group_templates: list[GroupTemplate] | None = None
    composite_pod_group_templates: list[GroupTemplate] | None = None


class NativeWorkload(KubeObject):
    api_version: str = f"{GROUP}/v1beta1"
    kind: str = "Workload"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)


def check_pod_group(subject: Subject, found: NativePodGroup) -> None:
    _check_group(subject, "spec", found.spec, "schedulingPolicy", "minCount")


def check_composite(subject: Subject, found: CompositePodGroup) -> None:
    _check_group(subject, "spec", found.spec, "schedulingPolicy", "minGroupCount")


def check_workload(subject: Subject, found: NativeWorkload) -> None:
    spec = found.spec
    lists = {
        "podGroups": spec.pod_groups,
        "podGroupTemplates": spec.pod_group_templates,
        "compositePodGroupTemplates": spec.composite_pod_group_templates,
    }
    given = [name for name, templates in lists.items() if templates]
    if len(given) != 1:
        subject.refuse(
            "spec", expected="podGroupTemplates or compositePodGroupTemplates", found=" and ".join(given) or "neither"
        )
    for name, templates in lists.items():
        _check_templates(subject, f"spec.{name}", templates, is_composite=name == "compositePodGroupTemplates")


def _check_templates(
    subject: Subject, path: str, templates: list[GroupTemplate] | None, *, is_composite: bool = False
) -> None:
    if not templates:
        return
    if len(templates) > MOST_TEMPLATES:
        subject.refuse(path, expected=f"at most {MOST_TEMPLATES} groups", found=str(len(templates)))
    check_names(subject, path, (template.name for template in templates))
    for index, template in enumerate(templates):
        here = f"{path}[{index}]"
        policy = "policy" if template.policy is not None or path == "spec.podGroups" else "schedulingPolicy"
        _check_group(subject, here, template, policy, "minGroupCount" if is_composite else "minCount")
        if is_composite:
            inner, composite = template.pod_group_templates, template.composite_pod_group_templates
            if not inner and not composite:
                subject.refuse(here, expected="podGroupTemplates or compositePodGroupTemplates", found="neither")
            _check_templates(subject, f"{here}.podGroupTemplates", inner)
            _check_templates(subject, f"{here}.compositePodGroupTemplates", composite, is_composite=True)


def _check_group(subject: Subject, path: str, spec: PodGroupSpec, policy_name: str, count_name: str) -> None:
    policy = _policy_of(spec)
    given = [name for name in ("basic", "gang") if policy is not None and getattr(policy, name) is not None]
    if len(given) != 1:
        subject.refuse(f"{path}.{policy_name}", expected="basic or gang", found="both" if given else "neither")
    if policy is not None and policy.gang is not None:
        count = policy.gang.min_count if count_name == "minCount" else policy.gang.min_group_count
        check_minimum(subject, f"{path}.{policy_name}.gang.{count_name}", count)
    _check_constraints(subject, f"{path}.schedulingConstraints", spec.scheduling_constraints)
    mode = spec.disruption_mode
    if isinstance(mode, str):
        check_choice(subject, f"{path}.disruptionMode", mode, DISRUPTION_MODES)
    elif mode is not None and (mode.single is None) == (mode.all is None):
        subject.refuse(
            f"{path}.disruptionMode", expected="single or all", found="neither" if mode.all is None else "both"
        )
    if spec.preemption_policy is not None:
        check_choice(subject, f"{path}.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES)


def _check_constraints(subject: Subject, path: str, constraints: SchedulingConstraints | None) -> None:
    if constraints is None:
        return
    for name, terms in (("topology", constraints.topology), ("topologyConstraints", constraints.topology_constraints)):
        if len(terms or ()) > 1:
            subject.refuse(f"{path}.{name}", expected="at most one constraint", found=str(len(terms or ())))
        for term in terms or ():
            field = "key" if name == "topology" else "topologyKey"
            check_level(subject, f"{path}.{name}[0].{field}", term.key or term.topology_key)


def check_composite_tree(groups: Iterable[tuple[CompositePodGroup, Place]]) -> None:
    """Refuse composite groups that are their own ancestors."""
    placed: dict[str, tuple[CompositePodGroup, Place]] = {_key_of(found): (found, place) for found, place in groups}
    parents: dict[str, str] = {
        key: gang_key(COMPOSITE_KIND, found.metadata.namespace, name) if name else NO_GANG
        for key, (found, _) in placed.items()
        for name in (found.spec.parent_composite_pod_group_name,)
    }
    cycle = find_cohort_cycle(parents)
    if cycle:
        found, place = placed[cycle[0]]
        names = [placed[key][0].metadata.name for key in (*cycle, cycle[0])]
        raise place.error(
            "spec.parentCompositePodGroupName",
            expected="a group that is not inside this one",
            found=f"a cycle, {' -> '.join(names)}",
            subject=found,
        )


def pod_group_gang(found: NativePodGroup) -> Gang:
    metadata = found.metadata
    return _gang(gang_key(NATIVE_KIND, metadata.namespace, metadata.name), metadata.name, metadata, found.spec)


def composite_gang(found: CompositePodGroup) -> Gang:
    return _gang(_key_of(found), found.metadata.name, found.metadata, found.spec, of_gangs=True)


def workload_gangs(found: NativeWorkload, replica_keys: Callable[[str], Iterable[str]]) -> Iterator[Gang]:
    """The gangs of a v1alpha1 Workload: each of its groups, and each replica of it that some pod names.

    `replica_keys` tells which keys of replicas pods use for the group with the given gang key.
    """
    metadata = found.metadata
    for group in found.spec.pod_groups or ():
        whole = gang_of_workload(metadata.namespace, metadata.name, group.name, "")
        for replica in ("", *replica_keys(whole)):
            key = gang_of_workload(metadata.namespace, metadata.name, group.name, replica)
            yield _gang(key, key.split("/", 2)[2], metadata, group)


def _key_of(found: CompositePodGroup) -> GangKey:
    return gang_key(COMPOSITE_KIND, found.metadata.namespace, found.metadata.name)


def _policy_of(spec: PodGroupSpec) -> SchedulingPolicy | None:
    if isinstance(spec, GroupTemplate) and spec.policy is not None:
        return spec.policy
    return spec.scheduling_policy


def _gang(key: GangKey, name: str, metadata: ObjectMeta, spec: PodGroupSpec, *, of_gangs: bool = False) -> Gang:
    policy = _policy_of(spec)
    gang = policy.gang if policy is not None else None
    count = None if gang is None else gang.min_group_count if of_gangs else gang.min_count
    mode = spec.disruption_mode
    parent = spec.parent_composite_pod_group_name
    return Gang(
        key=key,
        name=f"{metadata.namespace}/{name}",
        minimum=count or 1,  # the basic policy asks for no more than one at a time
        created=timestamp_seconds(metadata.creation_timestamp),
        topology_request=_topology_request(spec.scheduling_constraints),
        parent=gang_key(COMPOSITE_KIND, metadata.namespace, parent) if parent else NO_GANG,
        of_gangs=of_gangs,
        evicted_whole=mode == "PodGroup" if isinstance(mode, str) else mode is not None and mode.all is not None,
    )


def _topology_request(constraints: SchedulingConstraints | None) -> TopologyRequest | None:
    if constraints is None:
        return None
    for term in (*(constraints.topology or ()), *(constraints.topology_constraints or ())):
        return TopologyRequest(required=term.key or term.topology_key)
    return None
