"""Gangs that pods declare by annotations (or labels) alone, without any object for the gang.

`mooring.dev/gang: "true"` or `mooring.dev/gang-minimum: "8"` on a Job or its template makes all its pods one gang;
`mooring.dev/gang-name` does so for pods of any origin. The lightweight forms of Volcano, Coscheduling and
LeaderWorkerSet are read too, task groups of YuniKorn, and pod sets that ask Kueue for a place in the topology.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from mooring.model.api.kueue_labels import MIN_PARALLELISM, POD_GROUP_TOTAL, positive_count, queue_name
from mooring.model.api.meta import ObjectMeta, timestamp_seconds
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.api.workloads import Job, JobSpec
from mooring.model.gangs.checks import check_at_most, check_duration
from mooring.model.gangs.dialects.koordinator import WAITING_TIME, check_koordinator
from mooring.model.gangs.dialects.lws import EXCLUSIVE
from mooring.model.gangs.dialects.lws_pods import SIZE
from mooring.model.gangs.dialects.yunikorn import check_task_groups, task_group_gang
from mooring.model.gangs.gang import Gang, Membership, Role
from mooring.model.gangs.membership import (
    APPLICATION_KIND,
    COSCHEDULING_KIND,
    COSCHEDULING_MINIMUM,
    GANG,
    GANG_MINIMUM,
    GANG_NAME,
    GANG_TIMEOUT,
    GROVE_KIND,
    KAI_KIND,
    KOORDINATOR_MINIMUM,
    LWS_KIND,
    NATIVE_KIND,
    VOLCANO_KIND,
    VOLCANO_MINIMUM,
    WORKLOAD_KIND,
)
from mooring.model.jobs.expansion import OwnerKey, controller_of, job_pod_count, owner_key
from mooring.model.keys import GangKey
from mooring.model.kubelet.distributions import NEVER, parse_distribution
from mooring.model.kubelet.plan import GANG_RESTART, IN_PLACE, RECREATE
from mooring.model.places import Place, describe, show
from mooring.model.topology.requests import (
    KAI_PREFERRED,
    KAI_REQUIRED,
    KUEUE_PREFERRED,
    KUEUE_REQUIRED,
    KUEUE_SLICE_LAYERS,
    KUEUE_SLICE_LEVEL,
    KUEUE_SLICE_SIZE,
    KUEUE_UNCONSTRAINED,
    TopologyRequest,
    TopologyRequestError,
    topology_request_of,
)
from mooring.model.validation.terms import Subject, check_choice, one_of
from mooring.model.validation.topology import check_topology_request
from mooring.model.values.durations import DURATION, EXPECTED_DURATION, JOB_DEADLINE, parse_duration

VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"

CARRIED = (GANG, GANG_NAME, GANG_MINIMUM, GANG_TIMEOUT, VOLCANO_MINIMUM, JOB_DEADLINE)
"""What an owner's annotations say of the gang that its pods are, and of when they are over."""
_WISHES = (KUEUE_REQUIRED, KUEUE_PREFERRED, KUEUE_UNCONSTRAINED, KUEUE_SLICE_LEVEL, KUEUE_SLICE_SIZE)
_MORE_WISHES = (KUEUE_SLICE_LAYERS, KAI_REQUIRED, KAI_PREFERRED)
_READ = frozenset({*CARRIED, DURATION, GANG_RESTART, *_WISHES, *_MORE_WISHES})
_OWNED = frozenset({GANG, GANG_MINIMUM})
_OUR_KEYS = (GANG, GANG_NAME, GANG_MINIMUM, GANG_TIMEOUT, GANG_RESTART)
_EXPECTED_MINIMUM = "a whole number of at least 1"
_NEEDS_OBJECT = frozenset({NATIVE_KIND, WORKLOAD_KIND, KAI_KIND, GROVE_KIND})


class Member(NamedTuple):
    pod: Pod
    membership: Membership


def check_annotations(subject: Subject, path: str, metadata: ObjectMeta, *, spec: PodSpec | None = None) -> None:
    """Check what annotations of a pod, a template or an owner say of gangs, durations and topology.

    Only of a pod, its spec is given too.
    """
    if spec is not None and spec.workload_ref is not None:
        for field, text in (("name", spec.workload_ref.name), ("podGroup", spec.workload_ref.pod_group)):
            if not text:
                subject.refuse(f"spec.workloadRef.{field}", expected="a name", found="none")
    minimum = (metadata.labels or {}).get(COSCHEDULING_MINIMUM)
    if minimum is not None and _whole(minimum) is None:
        field = f"{path.removesuffix('annotations')}labels.{COSCHEDULING_MINIMUM}"
        subject.refuse(field, expected=_EXPECTED_MINIMUM, found=show(minimum))
    annotations = metadata.annotations
    if not annotations:
        return
    check_koordinator(subject, path, annotations)
    check_task_groups(subject, path, annotations)
    for key in annotations:
        if key.startswith(GANG) and key not in _OUR_KEYS:  # a typo would silently leave the pods without their gang
            subject.refuse(f"{path}.{key}", expected=one_of(_OUR_KEYS), found=show(key))
    if _READ.isdisjoint(annotations):
        return
    if GANG in annotations:
        check_choice(subject, f"{path}.{GANG}", annotations[GANG], ("true", "false"))
    if GANG_RESTART in annotations:
        check_choice(subject, f"{path}.{GANG_RESTART}", annotations[GANG_RESTART], (IN_PLACE, RECREATE))
    if annotations.get(GANG) == "false" and GANG_MINIMUM in annotations:
        expected = f"none beside {GANG}: {show('false')}"
        subject.refuse(f"{path}.{GANG_MINIMUM}", expected=expected, found=show(annotations[GANG_MINIMUM]))
    for key in (GANG_MINIMUM, VOLCANO_MINIMUM):
        if key in annotations and _whole(annotations[key]) is None:
            subject.refuse(f"{path}.{key}", expected=_EXPECTED_MINIMUM, found=show(annotations[key]))
    if GANG_NAME in annotations and not annotations[GANG_NAME]:
        subject.refuse(f"{path}.{GANG_NAME}", expected="a name", found="none")
    check_duration(subject, f"{path}.{GANG_TIMEOUT}", annotations.get(GANG_TIMEOUT))
    if _is_length(run_time := annotations.get(DURATION)):
        check_duration(subject, f"{path}.{DURATION}", run_time)
    needs_owner = GANG_NAME not in annotations and not _OWNED.isdisjoint(annotations)
    if spec is not None and needs_owner and annotations.get(GANG) != "false" and controller_of(metadata) is None:
        subject.refuse(f"{path}.{GANG_NAME}", expected="a name, as the pod has no controller", found="none")
    check_topology_request(subject, path, annotations)


def _is_length(run_time: str | None) -> bool:
    """False for `never` and for distributions, which only simulated nodes follow: to a scheduler they tell nothing."""
    found = parse_distribution(run_time) if run_time is not None else None
    return found is None or (not found.kind and found != NEVER)


def check_job_gang(subject: Subject, path: str, metadata: ObjectMeta, spec: JobSpec) -> None:
    """A Job cannot have a gang of more pods than it runs at once."""
    check_annotations(subject, path, metadata)
    annotations = metadata.annotations or {}
    minimum = _whole(annotations.get(GANG_MINIMUM, ""))
    if minimum is not None and GANG_NAME not in annotations:
        check_at_most(subject, f"{path}.{GANG_MINIMUM}", minimum, job_pod_count(spec), "the pods that it runs at once")


def carry_annotations(owners: Iterable[Any], pods: Iterable[Pod]) -> None:
    """Write on pods what their owners' annotations say of their gang; what a pod says itself goes first.

    A ReplicaSet says what its Deployment says, if that comes before it. Beyond that, owners of owners have no say: the
    pods of each owner are a gang of their own.
    """
    carried: dict[OwnerKey, dict[str, str]] = {}
    for owner in owners:
        annotations = owner.metadata.annotations or {}
        above = controller_of(owner.metadata)
        if above is not None and above.kind == "Deployment":
            annotations = {**carried.get((above.kind, owner.metadata.namespace, above.name), {}), **annotations}
        found = {key: annotations[key] for key in CARRIED if key in annotations}
        if found:
            carried[owner_key(owner)] = found
    if not carried:
        return
    # Pods of one template share their annotations, before as after. The old ones are kept: else ids would be reused.
    merged: dict[tuple[int, OwnerKey], tuple[dict[str, str] | None, dict[str, str]]] = {}
    for pod in pods:
        metadata = pod.metadata
        owner_ = controller_of(metadata) if metadata.owner_references else None
        if owner_ is None:
            continue
        key = (owner_.kind, metadata.namespace, owner_.name)
        if key in carried:
            at = (id(metadata.annotations), key)
            if at not in merged:
                merged[at] = metadata.annotations, {**carried[key], **(metadata.annotations or {})}
            metadata.annotations = merged[at][1]


def declared_by_pods(
    key: GangKey, members: list[Member], place_of: Callable[[Pod], Place], job: Job | None = None
) -> Gang | None:
    """The gang that its members declare between them; None if they only name it.

    Where none of them says how many it needs, it needs all: of a Job, all that it runs at once.
    """
    kind, namespace, name = key.split("/", 2)
    if kind in _NEEDS_OBJECT:
        return None
    if kind == APPLICATION_KIND:
        return task_group_gang(key, members)
    minimum = _agreed(members, place_of, lambda pod: _minimum_text(key, pod), _whole)
    if minimum is None:
        if kind in (VOLCANO_KIND, COSCHEDULING_KIND, LWS_KIND):
            return None
        minimum = _without_left_over(_alive(members) if job is None else _pods_to_start(job), members)
    dated = [job] if job is not None else [member.pod for member in members]
    times = [timestamp_seconds(found.metadata.creation_timestamp) for found in dated]
    annotations = members[0].pod.metadata.annotations or {}
    level = annotations.get(EXCLUSIVE) if kind == LWS_KIND else None
    return Gang(
        key=key,
        name=f"{namespace}/{name}",
        minimum=minimum,
        queue=annotations.get(VOLCANO_QUEUE, "") if kind == VOLCANO_KIND else "",
        created=min((time for time in times if time is not None), default=None),
        timeout_seconds=_agreed(
            members,
            place_of,
            lambda pod: _annotation(pod, WAITING_TIME if kind == COSCHEDULING_KIND else GANG_TIMEOUT),
            parse_duration,
        ),
        topology_request=TopologyRequest(required=level) if level else None,
    )


def _alive(members: list[Member]) -> int:
    """How many members may run; those of a group that queues beyond its total never will."""
    alive = sum(1 for member in members if not member.pod.is_terminal)
    total = positive_count((members[0].pod.metadata.annotations or {}).get(POD_GROUP_TOTAL))
    return alive if total is None else min(alive, total)


def _without_left_over(count: int, members: list[Member]) -> int:
    """So many, without those that make no whole slice: as in Kueue, these are assigned no place and never start."""
    size = positive_count((members[0].pod.metadata.annotations or {}).get(KUEUE_SLICE_SIZE)) or 1
    return max(1, count - count % size)


def _pods_to_start(job: Job) -> int:
    """All that a Job runs at once, or fewer if that is how many it may be admitted with."""
    count = job_pod_count(job.spec)
    fewer = positive_count((job.metadata.annotations or {}).get(MIN_PARALLELISM)) if queue_name(job.metadata) else None
    return count if fewer is None else min(count, fewer)


def with_topology_requests(gang: Gang, members: list[Member], place_of: Callable[[Pod], Place]) -> Gang:
    """Give a gang that says nothing of topology what its pods' annotations request, for all or role by role."""
    if gang.topology_request is not None or gang.role_groups or any(role.topology_request for role in gang.roles):
        return gang
    by_role: dict[str, tuple[Pod, TopologyRequest | None]] = {}
    read: dict[int, TopologyRequest | None] = {}
    for pod, membership in members:
        annotations = pod.metadata.annotations
        topology_request = read.get(id(annotations))
        if id(annotations) not in read:
            try:
                topology_request = read[id(annotations)] = topology_request_of(annotations)
            except TopologyRequestError as error:  # of a template that nobody has looked at before
                raise place_of(pod).error(
                    error.field, expected=error.expected, found=error.found, subject=pod
                ) from error
        first, said = by_role.setdefault(membership.role, (pod, topology_request))
        if said != topology_request:
            raise place_of(pod).error(
                "metadata.annotations",
                expected=f"the topology that {describe(first)} asks for, as they are one gang",
                found="another",
                subject=pod,
            )
    topology_requests = {role: topology_request for role, (_, topology_request) in by_role.items()}
    if len(set(topology_requests.values())) == 1:
        return replace(gang, topology_request=next(iter(topology_requests.values())))
    minimums = {role.name: role.minimum for role in gang.roles}
    names = dict.fromkeys(
        [*minimums, *(role for role, topology_request in topology_requests.items() if topology_request is not None)]
    )
    roles = tuple(Role(name, minimums.get(name, 0), topology_requests.get(name)) for name in names)
    return replace(gang, roles=roles)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 1 <= int(text) < 2**31 else None


def _annotation(pod: Pod, key: str) -> tuple[str, str | None]:
    return f"metadata.annotations.{key}", (pod.metadata.annotations or {}).get(key)


def _minimum_text(key: str, pod: Pod) -> tuple[str, str | None]:
    """Where and how a pod says how many its gang needs."""
    kind = key.partition("/")[0]
    if kind == COSCHEDULING_KIND:
        minimum = (pod.metadata.labels or {}).get(COSCHEDULING_MINIMUM)
        if minimum is None:
            return _annotation(pod, KOORDINATOR_MINIMUM)
        return f"metadata.labels.{COSCHEDULING_MINIMUM}", minimum
    return _annotation(pod, {VOLCANO_KIND: VOLCANO_MINIMUM, LWS_KIND: SIZE}.get(kind, GANG_MINIMUM))


Value = TypeVar("Value", int, float)


def _agreed(
    members: list[Member],
    place_of: Callable[[Pod], Place],
    read: Callable[[Pod], tuple[str, str | None]],
    parse: Callable[[str], Value | None],
) -> Value | None:
    """What the members say that say anything; refuse the first who contradicts, or says what cannot be read."""
    first: Pod | None = None
    agreed: Value | None = None
    said = ""
    for pod, _ in members:
        field, text = read(pod)
        if text is None:
            continue
        value = parse(text)
        if value is None:
            expected = EXPECTED_DURATION if field.endswith((GANG_TIMEOUT, WAITING_TIME)) else _EXPECTED_MINIMUM
            raise place_of(pod).error(field, expected=expected, found=show(text), subject=pod)
        if first is None:
            first, agreed, said = pod, value, text
        elif value != agreed:
            expected = f"{said}, as {describe(first)} says of the same gang"
            raise place_of(pod).error(field, expected=expected, found=show(text), subject=pod)
    return agreed
