"""Checks of whole objects, like the API server's, for everything that scheduling reads.

Each object is checked once, as written and before its defaults: a template once for all its replicas. A reference to
something that is missing and only makes a pod wait (a claim, a node) is no mistake.
"""

import re
from collections.abc import Callable
from typing import Any

from mooring.errors import ManifestError
from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.colocation_profile import ClusterColocationProfile
from mooring.model.api.karpenter import NodeClaim, NodePool
from mooring.model.api.meta import LabelSelector
from mooring.model.api.node_resource_topology import NodeResourceTopology
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PriorityClass
from mooring.model.api.volumes import CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.model.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.model.colocation.classes import QOS_CLASSES
from mooring.model.gangs.dialects.annotations import check_annotations, check_job_gang
from mooring.model.gangs.kinds import GANG_CHECKS
from mooring.model.numa.nodes import WrongAnnotation, kubelet_of_annotations
from mooring.model.places import Place, show
from mooring.model.priorities import HIGHEST_USER_PRIORITY, SYSTEM_CLASSES
from mooring.model.quotas.objects import CoreResourceQuota, LimitRange
from mooring.model.quotas.validation import check_limit_range, check_resource_quota
from mooring.model.validation.cards import check_card_shares, check_node_cards
from mooring.model.validation.checkpoints import check_checkpoint
from mooring.model.validation.devices import DEVICE_CHECKS
from mooring.model.validation.jobs import JOB_CHECKS
from mooring.model.validation.kueue import QUEUEING_CHECKS
from mooring.model.validation.names import check_names
from mooring.model.validation.node_pools import check_node_claim, check_node_pool
from mooring.model.validation.numa import check_node_topology
from mooring.model.validation.pods import PREEMPTION_POLICIES, check_pod_spec
from mooring.model.validation.rightsizing import check_vertical_pod_autoscaler
from mooring.model.validation.templates import check_count, check_job_spec, check_replicas, check_template
from mooring.model.validation.terms import (
    PodSubject,
    Subject,
    check_choice,
    check_label_selector,
    check_node_selector,
    check_quantity,
    check_resources,
    check_taints,
)
from mooring.model.validation.versions import OWN_VERSIONS, check_own_version

BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_BUDGET = re.compile(r"\d+%", re.ASCII)


def validate(found: Any, place: Place) -> list[ManifestError]:
    """Raise ManifestError for the first thing that is wrong with an object.

    Return what is wrong with a pod unless a LimitRange of its namespace fills it in.
    """
    errors: list[ManifestError] = []
    subject = PodSubject(found, place, errors) if type(found) is Pod else Subject(found, place)
    check_names(subject, found.metadata, found.kind)
    if found.api_version not in OWN_VERSIONS:
        check_own_version(subject, found.api_version)
    check = _CHECKS.get(type(found))
    if check is not None:
        check(subject, found)
    return errors


def _check_pod(subject: Subject, pod: Pod) -> None:
    check_pod_spec(subject, "spec", pod.spec)
    check_annotations(subject, "metadata.annotations", pod.metadata, spec=pod.spec)
    check_card_shares(subject, "", pod.metadata, pod.spec)
    check_checkpoint(subject, "metadata.annotations", pod.metadata)


def _check_node(subject: Subject, node: Node) -> None:
    check_taints(subject, "spec.taints", node.spec.taints)
    check_resources(subject, "status.allocatable", node.status.allocatable)
    check_resources(subject, "status.capacity", node.status.capacity)
    check_node_cards(subject, node)
    try:
        kubelet_of_annotations(node.metadata.annotations or {})
    except WrongAnnotation as wrong:
        subject.refuse(f"metadata.annotations[{wrong.key}]", expected=wrong.expected, found=wrong.found)


def _check_priority_class(subject: Subject, found: PriorityClass) -> None:
    name = found.metadata.name
    if name.startswith("system-"):
        if name not in SYSTEM_CLASSES:
            expected = f"no name with the prefix system- but {', '.join(sorted(SYSTEM_CLASSES))}"
            subject.refuse("metadata.name", expected=expected, found=show(name))
        if found.value != SYSTEM_CLASSES[name]:
            subject.refuse("value", expected=f"{SYSTEM_CLASSES[name]} for {name}", found=show(found.value))
    elif found.value > HIGHEST_USER_PRIORITY:
        subject.refuse("value", expected=f"at most {HIGHEST_USER_PRIORITY}", found=show(found.value))
    if found.preemption_policy is not None:
        check_choice(subject, "preemptionPolicy", found.preemption_policy, PREEMPTION_POLICIES)


def _check_budget(subject: Subject, found: PodDisruptionBudget) -> None:
    spec = found.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        subject.refuse("spec", expected="minAvailable or maxUnavailable", found="both")
    for field, value in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        is_count = isinstance(value, int) and value >= 0
        if value is not None and not is_count and not (isinstance(value, str) and _BUDGET.fullmatch(value)):
            subject.refuse(f"spec.{field}", expected="a count or a percentage such as 50%", found=show(value))
    check_label_selector(subject, "spec.selector", spec.selector)


def _check_replicated(subject: Subject, owner: Deployment | ReplicaSet) -> None:
    check_replicas(subject, "spec.replicas", owner.spec.replicas)
    check_template(subject, owner.spec.template, owner.spec.selector)


def _check_controller(subject: Subject, owner: ReplicationController) -> None:
    check_replicas(subject, "spec.replicas", owner.spec.replicas)
    selector = LabelSelector(match_labels=owner.spec.selector) if owner.spec.selector else None
    check_template(subject, owner.spec.template, selector)


def _check_stateful_set(subject: Subject, owner: StatefulSet) -> None:
    check_replicas(subject, "spec.replicas", owner.spec.replicas)
    if owner.spec.ordinals is not None:
        check_count(subject, "spec.ordinals.start", owner.spec.ordinals.start)
    check_template(subject, owner.spec.template, owner.spec.selector)
    for index, claim in enumerate(owner.spec.volume_claim_templates or ()):
        path = f"spec.volumeClaimTemplates[{index}]"
        if not claim.metadata.name:
            subject.refuse(f"{path}.metadata.name", expected="a name", found="none")
        _check_claim(subject, claim, f"{path}.spec")


def _check_daemon_set(subject: Subject, owner: DaemonSet) -> None:
    check_template(subject, owner.spec.template, owner.spec.selector)


def _check_job(subject: Subject, owner: Job) -> None:
    check_job_spec(subject, "spec", owner.spec)
    check_job_gang(subject, "metadata.annotations", owner.metadata, owner.spec)


def _check_cron_job(subject: Subject, owner: CronJob) -> None:
    template = owner.spec.job_template
    check_job_spec(subject, "spec.jobTemplate.spec", template.spec)
    check_job_gang(subject, "spec.jobTemplate.metadata.annotations", template.metadata, template.spec)


def _check_volume(subject: Subject, volume: PersistentVolume) -> None:
    check_resources(subject, "spec.capacity", volume.spec.capacity)
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        check_node_selector(subject, "spec.nodeAffinity.required", affinity.required)


def _check_claim(subject: Subject, claim: PersistentVolumeClaim, path: str = "spec") -> None:
    if claim.spec.resources is not None:
        check_resources(subject, f"{path}.resources.requests", claim.spec.resources.requests)
    check_label_selector(subject, f"{path}.selector", claim.spec.selector)
    check_resources(subject, "status.allocatedResources", claim.status.allocated_resources)


def _check_storage_class(subject: Subject, found: StorageClass) -> None:
    if found.volume_binding_mode is not None:
        check_choice(subject, "volumeBindingMode", found.volume_binding_mode, BINDING_MODES)


def _check_capacity(subject: Subject, found: CsiStorageCapacity) -> None:
    for field, text in (("capacity", found.capacity), ("maximumVolumeSize", found.maximum_volume_size)):
        if text is not None:
            check_quantity(subject, field, text)
    check_label_selector(subject, "nodeTopology", found.node_topology)


def _check_profile(subject: Subject, found: ClusterColocationProfile) -> None:
    spec = found.spec
    check_label_selector(subject, "spec.namespaceSelector", spec.namespace_selector)
    check_label_selector(subject, "spec.selector", spec.selector)
    given = spec.probability
    percent = given if not isinstance(given, str) else int(given[:-1]) if _BUDGET.fullmatch(given) else -1
    if percent is not None and not 0 <= percent <= 100:
        subject.refuse("spec.probability", expected="0 to 100, or a percentage such as 50%", found=show(given))
    if spec.qos_class:
        check_choice(subject, "spec.qosClass", spec.qos_class, QOS_CLASSES)


_CHECKS: dict[type, Callable[[Subject, Any], None]] = {
    Pod: _check_pod,
    Node: _check_node,
    NodeResourceTopology: check_node_topology,
    PriorityClass: _check_priority_class,
    PodDisruptionBudget: _check_budget,
    Deployment: _check_replicated,
    ReplicaSet: _check_replicated,
    ReplicationController: _check_controller,
    StatefulSet: _check_stateful_set,
    DaemonSet: _check_daemon_set,
    Job: _check_job,
    CronJob: _check_cron_job,
    PersistentVolume: _check_volume,
    PersistentVolumeClaim: _check_claim,
    StorageClass: _check_storage_class,
    CsiStorageCapacity: _check_capacity,
    ClusterColocationProfile: _check_profile,
    **DEVICE_CHECKS,
    **QUEUEING_CHECKS,
    **JOB_CHECKS,
    **GANG_CHECKS,
    CoreResourceQuota: check_resource_quota,
    LimitRange: check_limit_range,
    VerticalPodAutoscaler: check_vertical_pod_autoscaler,
    NodePool: check_node_pool,
    NodeClaim: check_node_claim,
}
"""Kinds that are not here have nothing that could be wrong beyond their types and their name."""
