"""The PodGroup of the KAI scheduler (`scheduling.run.ai`): a tree of subgroups whose leaves have the pods."""

from collections.abc import Mapping

import msgspec

from mooring.model.api.kai_labels import PREEMPTIBILITIES, may_kai_evict
from mooring.model.api.meta import KubeObject, ObjectMeta, timestamp_seconds
from mooring.model.api.policies import PriorityClass
from mooring.model.gangs.checks import check_at_most, check_count, check_level, check_minimum, check_names
from mooring.model.gangs.gang import Gang, Role, RoleGroup, gang_key
from mooring.model.gangs.membership import KAI_KIND
from mooring.model.places import show
from mooring.model.topology.requests import TopologyRequest
from mooring.model.validation.kueue import find_cohort_cycle
from mooring.model.validation.terms import Subject, check_choice

GROUP = "scheduling.run.ai"


class KaiTopologyConstraint(KubeObject):
    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class SubGroup(KubeObject):
    name: str = ""
    min_member: int | None = None
    min_sub_group: int | None = None
    parent: str | None = None
    topology_constraint: KaiTopologyConstraint | None = None


class KaiPodGroupSpec(KubeObject):
    min_member: int | None = None
    min_sub_group: int | None = None
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""
    topology_constraint: KaiTopologyConstraint | None = None
    sub_groups: list[SubGroup] | None = None


class KaiPodGroup(KubeObject):
    api_version: str = f"{GROUP}/v2alpha2"
    kind: str = "PodGroup"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: KaiPodGroupSpec = msgspec.field(default_factory=KaiPodGroupSpec)


def check_pod_group(subject: Subject, found: KaiPodGroup) -> None:
    spec = found.spec
    groups = spec.sub_groups or []
    if not groups or spec.min_member is not None:
        check_minimum(subject, "spec.minMember", spec.min_member)
    if spec.preemptibility:
        check_choice(subject, "spec.preemptibility", spec.preemptibility, PREEMPTIBILITIES)
    _check_constraint(subject, "spec.topologyConstraint", spec.topology_constraint)
    check_names(subject, "spec.subGroups", (group.name for group in groups))
    by_name = {group.name: group for group in groups}
    for index, group in enumerate(groups):
        if group.parent and group.parent not in by_name:
            expected = f"the name of a subgroup ({', '.join(sorted(by_name))})"
            subject.refuse(f"spec.subGroups[{index}].parent", expected=expected, found=show(group.parent))
    cycle = find_cohort_cycle({group.name: group.parent or "" for group in groups})
    if cycle:
        index = next(index for index, group in enumerate(groups) if group.name == cycle[0])
        found_text = f"a cycle, {' -> '.join([*cycle, cycle[0]])}"
        expected = "a subgroup that is not inside this one"
        subject.refuse(f"spec.subGroups[{index}].parent", expected=expected, found=found_text)
    children = _children(groups)
    _check_inner_minimum(subject, "spec", spec.min_member, spec.min_sub_group, len(children.get("", ())))
    for index, group in enumerate(groups):
        path = f"spec.subGroups[{index}]"
        _check_constraint(subject, f"{path}.topologyConstraint", group.topology_constraint)
        inside = len(children.get(group.name, ()))
        if not inside:
            if group.min_member is None:
                subject.refuse(f"{path}.minMember", expected="a number of at least 0", found="none")
            check_count(subject, f"{path}.minMember", group.min_member)
        elif group.min_member:
            expected = "none, as it has subgroups inside"
            subject.refuse(f"{path}.minMember", expected=expected, found=show(group.min_member))
        _check_inner_minimum(subject, path, group.min_member, group.min_sub_group, inside)


def _check_inner_minimum(
    subject: Subject, path: str, min_member: int | None, min_sub_group: int | None, inside: int
) -> None:
    if min_sub_group is None:
        return
    if min_member:
        subject.refuse(f"{path}.minSubGroup", expected="none beside minMember", found=show(min_sub_group))
    check_minimum(subject, f"{path}.minSubGroup", min_sub_group)
    check_at_most(subject, f"{path}.minSubGroup", min_sub_group, inside, "the subgroups directly inside")


def _check_constraint(subject: Subject, path: str, constraint: KaiTopologyConstraint | None) -> None:
    if constraint is not None:
        check_level(subject, f"{path}.requiredTopologyLevel", constraint.required_topology_level or None)
        check_level(subject, f"{path}.preferredTopologyLevel", constraint.preferred_topology_level or None)


def _children(groups: list[SubGroup]) -> dict[str, list[SubGroup]]:
    """The subgroups directly inside each; those directly inside the PodGroup under the empty name."""
    children: dict[str, list[SubGroup]] = {}
    for group in groups:
        children.setdefault(group.parent or "", []).append(group)
    return children


def _leaves(name: str, children: Mapping[str, list[SubGroup]]) -> list[str]:
    inside = children.get(name)
    return [name] if inside is None else [leaf for group in inside for leaf in _leaves(group.name, children)]


def pod_group_gang(found: KaiPodGroup, classes: Mapping[str, PriorityClass]) -> Gang:
    """Leaves become roles, subgroups with leaves inside and a place of their own become groups of roles.

    All subgroups have to be there, also where minSubGroup would be content with fewer: a gang here is whole or not.
    """
    spec, metadata = found.spec, found.metadata
    named = classes.get(spec.priority_class_name)
    groups = spec.sub_groups or []
    children = _children(groups)
    roles, role_groups = [], []
    for group in groups:
        topology_request = _topology_request(group.topology_constraint)
        if group.name not in children:
            roles.append(Role(group.name, group.min_member or 0, topology_request))
        elif topology_request is not None:
            role_groups.append(RoleGroup(tuple(_leaves(group.name, children)), topology_request))
    return Gang(
        key=gang_key(KAI_KIND, metadata.namespace, metadata.name),
        name=f"{metadata.namespace}/{metadata.name}",
        minimum=max(spec.min_member or 0, sum(role.minimum for role in roles), 1),
        roles=tuple(roles),
        role_groups=tuple(role_groups),
        queue=spec.queue,
        created=timestamp_seconds(metadata.creation_timestamp),
        topology_request=_topology_request(spec.topology_constraint),
        preemptible=may_kai_evict(spec.preemptibility, None if named is None else named.value),
    )


def _topology_request(constraint: KaiTopologyConstraint | None) -> TopologyRequest | None:
    if constraint is None or not (constraint.required_topology_level or constraint.preferred_topology_level):
        return None
    return TopologyRequest(
        required=constraint.required_topology_level or None,
        preferred=constraint.preferred_topology_level or None,
        topology=constraint.topology,
    )
