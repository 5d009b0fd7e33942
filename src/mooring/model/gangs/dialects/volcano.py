"""Volcano's PodGroup (`scheduling.volcano.sh`), and what it shares with Volcano's Job: network topology, roles."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from mooring.model.api.meta import KubeObject, LabelSelector, ObjectMeta, Resources, timestamp_seconds
from mooring.model.api.volcano_queue import DEFAULT_QUEUE
from mooring.model.gangs.checks import check_count, check_minimum
from mooring.model.gangs.gang import Gang, Role, Stage, gang_key
from mooring.model.gangs.membership import VOLCANO_KIND, VOLCANO_ROLE
from mooring.model.places import show
from mooring.model.topology.requests import (
    HARD,
    SOFT,
    TIER_PREFIX,
    HyperNode,
    NetworkTopology,
    TopologyRequest,
    tier_level,
)
from mooring.model.validation.terms import Subject, check_choice, check_label_selector, check_resources

GROUP = "scheduling.volcano.sh"
PENDING, INQUEUE, RUNNING = "Pending", "Inqueue", "Running"
"""Phases of a PodGroup; those after are Unknown and Completed."""
WAITS = frozenset({"", PENDING})
"""In these Volcano's controllers make no pods for it."""


class SubGroupPolicy(KubeObject):
    """Pods of one role in groups of equal size, each in a part of the network of its own."""

    name: str = ""
    network_topology: NetworkTopology | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None


class VolcanoPodGroupSpec(KubeObject):
    min_member: int | None = None
    min_task_member: dict[str, int] | None = None
    queue: str = ""
    priority_class_name: str = ""
    min_resources: Resources | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] | None = None
    scheduler_name: str = ""
    """No field of Volcano's: whoever has but a part of a cluster marks by it the groups that are others'."""


class VolcanoPodGroupStatus(KubeObject):
    phase: str = ""


class VolcanoPodGroup(KubeObject):
    api_version: str = f"{GROUP}/v1beta1"
    kind: str = "PodGroup"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolcanoPodGroupSpec = msgspec.field(default_factory=VolcanoPodGroupSpec)
    status: VolcanoPodGroupStatus = msgspec.field(default_factory=VolcanoPodGroupStatus)


@dataclass(frozen=True, slots=True)
class Tiers:
    """What the HyperNodes of a cluster call their tiers."""

    lowest: int = 1
    """Volcano's own examples count from 1; that is meant where there are no HyperNodes."""
    by_name: Mapping[str, int] = field(default_factory=dict)


def tiers_of(hypernodes: Iterable[HyperNode]) -> Tiers:
    found = list(hypernodes)
    if not found:
        return Tiers()
    by_name = {node.spec.tier_name: node.spec.tier for node in found if node.spec.tier_name}
    return Tiers(min(node.spec.tier for node in found), by_name)


def check_pod_group(subject: Subject, found: VolcanoPodGroup) -> None:
    spec = found.spec
    check_minimum(subject, "spec.minMember", spec.min_member)
    for name, count in (spec.min_task_member or {}).items():
        check_count(subject, f"spec.minTaskMember.{name}", count)
    check_resources(subject, "spec.minResources", spec.min_resources)
    check_network(subject, "spec.networkTopology", spec.network_topology)
    roles: set[str] = set()
    for index, policy in enumerate(spec.sub_group_policy or ()):
        _check_sub_group(subject, f"spec.subGroupPolicy[{index}]", policy, roles)


def check_network(subject: Subject, path: str, network: NetworkTopology | None) -> None:
    if network is None:
        return
    check_choice(subject, f"{path}.mode", network.mode, (HARD, SOFT))
    check_count(subject, f"{path}.highestTierAllowed", network.highest_tier_allowed)
    if network.highest_tier_allowed is not None and network.highest_tier_name:
        expected = "none beside highestTierAllowed"
        subject.refuse(f"{path}.highestTierName", expected=expected, found=show(network.highest_tier_name))


def _check_sub_group(subject: Subject, path: str, policy: SubGroupPolicy, roles: set[str]) -> None:
    check_count(subject, f"{path}.subGroupSize", policy.sub_group_size, least=1)
    check_count(subject, f"{path}.minSubGroups", policy.min_sub_groups)
    check_network(subject, f"{path}.networkTopology", policy.network_topology)
    check_label_selector(subject, f"{path}.labelSelector", policy.label_selector)
    role = _role_selected(policy.label_selector)
    if role is None:
        # A member has one role, the task that it was made for: other groups of pods would be silently left alone.
        expected = f"a selector of one {VOLCANO_ROLE}, or none for all pods"
        subject.refuse(f"{path}.labelSelector", expected=expected, found="another selector")
    if role in roles:
        subject.refuse(f"{path}.labelSelector", expected="other pods than an earlier policy", found=show(role))
    roles.add(role)


def _role_selected(selector: LabelSelector | None) -> str | None:
    """The role whose pods a selector means, empty for all; None if it means anything else."""
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return ""
    labels = dict(selector.match_labels or {})
    for requirement in selector.match_expressions or ():
        if requirement.operator != "In" or len(requirement.values or ()) != 1 or requirement.key in labels:
            return None
        labels[requirement.key] = (requirement.values or [""])[0]
    return labels.get(VOLCANO_ROLE) if len(labels) == 1 else None


def network_topology_request(network: NetworkTopology | None, tiers: Tiers) -> TopologyRequest | None:
    """In one HyperNode of as low a tier as can be, and if that is hard, of no higher tier than is allowed."""
    if network is None:
        return None
    required, preferred = required_tier(network, tiers), tier_level(tiers.lowest)
    return TopologyRequest(required=required, preferred=None if required == preferred else preferred)


def required_tier(network: NetworkTopology | None, tiers: Tiers) -> str | None:
    """The level of which all must share one HyperNode; None if that is but a preference."""
    if network is None or network.mode != HARD:
        return None
    if network.highest_tier_name:
        tier = tiers.by_name.get(network.highest_tier_name)
        # No HyperNode has that name yet: a level that no node is in, so that the gang waits for one.
        return f"{TIER_PREFIX}{network.highest_tier_name}" if tier is None else tier_level(tier)
    return None if network.highest_tier_allowed is None else tier_level(network.highest_tier_allowed)


def enforced_minimums(minimum: int, by_task: Mapping[str, int]) -> dict[str, int]:
    """Volcano looks at the minimums of single tasks only while that of the whole covers them all."""
    return dict(by_task) if minimum >= sum(by_task.values()) else {}


def roles_of(minimums: Mapping[str, int], slices: Mapping[str, TopologyRequest]) -> tuple[Role, ...]:
    """One role for each task that has a minimum or a topology request, in the order of first mention."""
    names = dict.fromkeys([*minimums, *slices])
    roles = (Role(name, minimums.get(name, 0), slices.get(name)) for name in names)
    return tuple(role for role in roles if role.minimum or role.topology_request)


def stage_of(found: VolcanoPodGroup) -> Stage | None:
    """How far a group has come; None for one that is on no cluster, where nobody waits before its pods are made."""
    phase = found.status.phase
    if not phase and not found.metadata.resource_version:
        return None
    if phase in WAITS:
        return Stage.OUTSIDE
    return Stage.LET_IN if phase == INQUEUE else Stage.STARTED


def pod_group_gang(found: VolcanoPodGroup, tiers: Tiers, scheduler_name: str = "") -> Gang:
    """The gang of a group; `scheduler_name` is that of the Job it was made for."""
    spec, metadata = found.spec, found.metadata
    minimum = spec.min_member or 1
    minimums = enforced_minimums(minimum, spec.min_task_member or {})
    slices: dict[str, TopologyRequest] = {}
    topology_request = network_topology_request(spec.network_topology, tiers)
    for policy in spec.sub_group_policy or ():
        size, role = policy.sub_group_size or 1, _role_selected(policy.label_selector) or ""
        needed = (policy.min_sub_groups or 0) * size
        level = required_tier(policy.network_topology, tiers)
        if not role:
            minimum = max(minimum, needed)
            topology_request = (
                topology_request
                if level is None
                else replace(topology_request or TopologyRequest(), slice_size=size, slice_level=level)
            )
            continue
        if needed:
            minimums[role] = max(minimums.get(role, 0), needed)
        if level is not None:
            slices[role] = TopologyRequest(slice_size=size, slice_level=level)
    return Gang(
        key=gang_key(VOLCANO_KIND, metadata.namespace, metadata.name),
        name=f"{metadata.namespace}/{metadata.name}",
        minimum=minimum,
        roles=roles_of(minimums, slices),
        min_resources=spec.min_resources,
        queue=spec.queue or DEFAULT_QUEUE,
        created=timestamp_seconds(metadata.creation_timestamp),
        topology_request=topology_request,
        stage=stage_of(found),
        scheduler_name=spec.scheduler_name or scheduler_name,
    )
