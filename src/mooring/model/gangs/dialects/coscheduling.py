"""The PodGroup of scheduler-plugins' Coscheduling (`scheduling.x-k8s.io`, once `scheduling.sigs.k8s.io`)."""

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, Resources, timestamp_seconds
from mooring.model.gangs.checks import check_count, check_minimum
from mooring.model.gangs.dialects.koordinator import check_koordinator
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import COSCHEDULING_KIND
from mooring.model.validation.terms import Subject, check_resources

GROUP, OLD_GROUP = "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"


class CoschedulingPodGroupSpec(KubeObject):
    min_member: int | None = None
    min_resources: Resources | None = None
    schedule_timeout_seconds: int | None = None


class CoschedulingPodGroup(KubeObject):
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = "PodGroup"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CoschedulingPodGroupSpec = msgspec.field(default_factory=CoschedulingPodGroupSpec)


def check_pod_group(subject: Subject, found: CoschedulingPodGroup) -> None:
    check_koordinator(subject, "metadata.annotations", found.metadata.annotations or {})
    check_minimum(subject, "spec.minMember", found.spec.min_member)
    check_resources(subject, "spec.minResources", found.spec.min_resources)
    check_count(subject, "spec.scheduleTimeoutSeconds", found.spec.schedule_timeout_seconds, least=1)


def pod_group_gang(found: CoschedulingPodGroup) -> Gang:
    spec, metadata = found.spec, found.metadata
    timeout = spec.schedule_timeout_seconds
    return Gang(
        key=gang_key(COSCHEDULING_KIND, metadata.namespace, metadata.name),
        name=f"{metadata.namespace}/{metadata.name}",
        minimum=spec.min_member or 1,
        min_resources=spec.min_resources,
        created=timestamp_seconds(metadata.creation_timestamp),
        timeout_seconds=None if timeout is None else float(timeout),
    )
