"""LeaderWorkerSet (`leaderworkerset.x-k8s.io`): each replica a leader and its workers, which start together."""

from collections.abc import Iterator

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, Resources, timestamp_seconds
from mooring.model.api.pods import Pod, PodTemplateSpec
from mooring.model.gangs.checks import check_at_most, check_count, check_level, check_pods
from mooring.model.gangs.gang import Gang, Role, gang_key
from mooring.model.gangs.membership import LEADER, LWS_KIND, WORKER
from mooring.model.places import show
from mooring.model.topology.requests import TopologyRequest
from mooring.model.validation.pods import check_pod_spec
from mooring.model.validation.terms import Subject, check_choice
from mooring.model.values.quantity import NANO
from mooring.model.values.requests import pod_requests

GROUP = "leaderworkerset.x-k8s.io"
PREFIX = "leaderworkerset.sigs.k8s.io"
EXCLUSIVE = f"{PREFIX}/exclusive-topology"
SUBGROUP_EXCLUSIVE = f"{PREFIX}/subgroup-exclusive-topology"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"

RECREATE = "RecreateGroupOnPodRestart"
_RECREATING = frozenset({RECREATE, "RecreateGroupAfterStart"})
RESTART_POLICIES = (RECREATE, "RecreateGroupAfterStart", "None", "Default")
LEADER_READY = "LeaderReady"
STARTUP_POLICIES = ("LeaderCreated", LEADER_READY)
LEADER_WORKER, LEADER_EXCLUDED = "LeaderWorker", "LeaderExcluded"

_MILLI = 10**6


class SubGroupPolicy(KubeObject):
    type: str = msgspec.field(default=LEADER_WORKER, name="subGroupPolicyType")
    sub_group_size: int | None = None


class LeaderWorkerTemplate(KubeObject):
    worker_template: PodTemplateSpec
    leader_template: PodTemplateSpec | None = None
    size: int = 1
    restart_policy: str = RECREATE
    sub_group_policy: SubGroupPolicy | None = None


class LeaderWorkerSetSpec(KubeObject):
    leader_worker_template: LeaderWorkerTemplate
    replicas: int = 1
    startup_policy: str = STARTUP_POLICIES[0]


class LeaderWorkerSet(KubeObject):
    spec: LeaderWorkerSetSpec
    api_version: str = f"{GROUP}/v1"
    kind: str = "LeaderWorkerSet"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def size(self) -> int:
        return self.spec.leader_worker_template.size

    @property
    def leader_template(self) -> PodTemplateSpec:
        template = self.spec.leader_worker_template
        return template.leader_template or template.worker_template

    @property
    def sub_group_size(self) -> int:
        """0 without subgroups."""
        policy = self.spec.leader_worker_template.sub_group_policy
        return 0 if policy is None else policy.sub_group_size or 0

    def annotation(self, key: str) -> str:
        return (self.metadata.annotations or {}).get(key, "")


def check_set(subject: Subject, found: LeaderWorkerSet) -> None:
    template, path = found.spec.leader_worker_template, "spec.leaderWorkerTemplate"
    check_count(subject, "spec.replicas", found.spec.replicas)
    check_count(subject, f"{path}.size", template.size, least=1)
    check_pods(subject, "spec.replicas", found.spec.replicas * template.size)
    check_choice(subject, f"{path}.restartPolicy", template.restart_policy, RESTART_POLICIES)
    check_choice(subject, "spec.startupPolicy", found.spec.startup_policy, STARTUP_POLICIES)
    for field, inner in templates_of(found):
        check_pod_spec(subject, f"{field}.spec", inner.spec)
    for key in (EXCLUSIVE, SUBGROUP_EXCLUSIVE):
        check_level(subject, f"metadata.annotations.{key}", (found.metadata.annotations or {}).get(key))
    policy = template.sub_group_policy
    if policy is not None:
        _check_sub_groups(subject, f"{path}.subGroupPolicy", policy, template.size)
    elif found.annotation(SUBGROUP_EXCLUSIVE):
        expected = "none without a subGroupPolicy"
        level = show(found.annotation(SUBGROUP_EXCLUSIVE))
        subject.refuse(f"metadata.annotations.{SUBGROUP_EXCLUSIVE}", expected=expected, found=level)


def _check_sub_groups(subject: Subject, path: str, policy: SubGroupPolicy, size: int) -> None:
    check_choice(subject, f"{path}.subGroupPolicyType", policy.type, (LEADER_WORKER, LEADER_EXCLUDED))
    count = policy.sub_group_size
    field = f"{path}.subGroupSize"
    if count is None:
        subject.refuse(field, expected="a number of at least 1", found="none")
    check_count(subject, field, count, least=1)
    check_at_most(subject, field, count, size, "the size of a group")
    without_leader = (size - 1) % count == 0
    if policy.type == LEADER_EXCLUDED and not without_leader:
        subject.refuse(field, expected=f"a divisor of {size - 1}, the workers of a group", found=show(count))
    if not without_leader and size % count:
        expected = f"a divisor of {size}, the size of a group, or of {size - 1}, its workers"
        subject.refuse(field, expected=expected, found=show(count))


def templates_of(found: LeaderWorkerSet) -> Iterator[tuple[str, PodTemplateSpec]]:
    template = found.spec.leader_worker_template
    if template.leader_template is not None:
        yield "spec.leaderWorkerTemplate.leaderTemplate", template.leader_template
    yield "spec.leaderWorkerTemplate.workerTemplate", template.worker_template


def set_gangs(found: LeaderWorkerSet) -> Iterator[Gang]:
    """One gang for each replica.

    Under LeaderReady workers follow their leader, so it may start alone, but not where they would find no room.
    """
    metadata, workers = found.metadata, found.size - 1
    follows = found.spec.startup_policy == LEADER_READY
    topology_request, worker_topology_request = _topology_requests(found)
    roles = [Role(LEADER, 1)]
    if workers:
        roles.append(Role(WORKER, 0 if follows else workers, worker_topology_request))
    for index in range(found.spec.replicas):
        name = f"{metadata.name}-{index}"
        yield Gang(
            key=gang_key(LWS_KIND, metadata.namespace, name),
            name=f"{metadata.namespace}/{name}",
            minimum=1 if follows else found.size,
            roles=tuple(roles),
            min_resources=_requests(found) if follows else None,
            queue=found.annotation(QUEUE_NAME),
            created=timestamp_seconds(metadata.creation_timestamp),
            topology_request=topology_request,
            restarts_whole=found.spec.leader_worker_template.restart_policy in _RECREATING,
        )


def _topology_requests(found: LeaderWorkerSet) -> tuple[TopologyRequest | None, TopologyRequest | None]:
    """Where a group and where its workers want to be. A leader that is one too many belongs to no slice."""
    required = found.annotation(EXCLUSIVE) or None
    level, count = found.annotation(SUBGROUP_EXCLUSIVE) or None, found.sub_group_size
    whole = TopologyRequest(required=required) if required else None
    if level is None:
        return whole, None
    slices = TopologyRequest(slice_size=count, slice_level=level)
    if (found.size - 1) % count == 0:
        return whole, slices
    return TopologyRequest(required=required, slice_size=count, slice_level=level), None


def _requests(found: LeaderWorkerSet) -> Resources:
    """What a whole group asks for."""
    total = pod_requests(Pod(spec=found.leader_template.spec))
    for name, nanos in pod_requests(Pod(spec=found.spec.leader_worker_template.worker_template.spec)).items():
        total[name] = total.get(name, 0) + nanos * (found.size - 1)
    return {name: nanos // NANO if nanos % NANO == 0 else f"{-(-nanos // _MILLI)}m" for name, nanos in total.items()}
