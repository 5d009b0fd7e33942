"""Checks of whole objects, like the API server's, for everything that scheduling reads.

Each object is checked once, as written and before its defaults: a template once for all its replicas. A reference to
something that is missing and only makes a pod wait (a claim, a node) is no mistake.
"""

import re
from collections.abc import Callable
from typing import Any

from mooring.model.meta import LabelSelector, ObjectMeta
from mooring.model.nodes import Node
from mooring.model.places import Place, show
from mooring.model.pods import Pod, PodTemplateSpec
from mooring.model.policies import PodDisruptionBudget, PriorityClass
from mooring.model.priorities import HIGHEST_USER_PRIORITY, SYSTEM_CLASSES
from mooring.model.selectors import compile_label_selector
from mooring.model.validation_pods import PREEMPTION_POLICIES, check_pod_spec
from mooring.model.validation_terms import (
    Subject,
    check_choice,
    check_label_selector,
    check_node_selector,
    check_quantity,
    check_resources,
    check_taints,
)
from mooring.model.volumes import CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.model.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    JobSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
COMPLETION_MODES = ("NonIndexed", "Indexed")
_BUDGET = re.compile(r"\d+%", re.ASCII)


def validate(found: Any, place: Place) -> None:
    """Raise ManifestError for the first thing that is wrong with an object."""
    subject = Subject(found, place)
    metadata: ObjectMeta = found.metadata
    if not metadata.name and not metadata.generate_name:
        subject.refuse("metadata.name", expected="a name", found="none")
    check = _CHECKS.get(type(found))
    if check is not None:
        check(subject, found)


def _check_pod(subject: Subject, pod: Pod) -> None:
    check_pod_spec(subject, "spec", pod.spec)


def _check_node(subject: Subject, node: Node) -> None:
    check_taints(subject, "spec.taints", node.spec.taints)
    check_resources(subject, "status.allocatable", node.status.allocatable)
    check_resources(subject, "status.capacity", node.status.capacity)


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


def _check_template(
    subject: Subject, template: PodTemplateSpec, selector: LabelSelector | None, path: str = "spec"
) -> None:
    check_pod_spec(subject, f"{path}.template.spec", template.spec)
    if selector is None:
        return
    check_label_selector(subject, f"{path}.selector", selector)
    labels = template.metadata.labels or {}
    if not compile_label_selector(selector).matches(labels):
        shown = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        expected = f"labels that match {path}.selector"
        subject.refuse(f"{path}.template.metadata.labels", expected=expected, found=shown or "none")


def _check_count(subject: Subject, path: str, count: int | None) -> None:
    if count is not None and count < 0:
        subject.refuse(path, expected="a number of at least 0", found=show(count))


def _check_replicated(subject: Subject, owner: Deployment | ReplicaSet) -> None:
    _check_count(subject, "spec.replicas", owner.spec.replicas)
    _check_template(subject, owner.spec.template, owner.spec.selector)


def _check_controller(subject: Subject, owner: ReplicationController) -> None:
    _check_count(subject, "spec.replicas", owner.spec.replicas)
    selector = LabelSelector(match_labels=owner.spec.selector) if owner.spec.selector else None
    _check_template(subject, owner.spec.template, selector)


def _check_stateful_set(subject: Subject, owner: StatefulSet) -> None:
    _check_count(subject, "spec.replicas", owner.spec.replicas)
    if owner.spec.ordinals is not None:
        _check_count(subject, "spec.ordinals.start", owner.spec.ordinals.start)
    _check_template(subject, owner.spec.template, owner.spec.selector)
    for index, claim in enumerate(owner.spec.volume_claim_templates or ()):
        path = f"spec.volumeClaimTemplates[{index}]"
        if not claim.metadata.name:
            subject.refuse(f"{path}.metadata.name", expected="a name", found="none")
        _check_claim(subject, claim, f"{path}.spec")


def _check_daemon_set(subject: Subject, owner: DaemonSet) -> None:
    _check_template(subject, owner.spec.template, owner.spec.selector)


def _check_job(subject: Subject, owner: Job) -> None:
    _check_job_spec(subject, "spec", owner.spec)


def _check_cron_job(subject: Subject, owner: CronJob) -> None:
    _check_job_spec(subject, "spec.jobTemplate.spec", owner.spec.job_template.spec)


def _check_job_spec(subject: Subject, path: str, spec: JobSpec) -> None:
    _check_count(subject, f"{path}.parallelism", spec.parallelism)
    _check_count(subject, f"{path}.completions", spec.completions)
    if spec.completion_mode is not None:
        check_choice(subject, f"{path}.completionMode", spec.completion_mode, COMPLETION_MODES)
        if spec.completion_mode == "Indexed" and spec.completions is None:
            subject.refuse(f"{path}.completions", expected="a number, as completionMode is Indexed", found="none")
    _check_template(subject, spec.template, None, path)


def _check_volume(subject: Subject, volume: PersistentVolume) -> None:
    check_resources(subject, "spec.capacity", volume.spec.capacity)
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        check_node_selector(subject, "spec.nodeAffinity.required", affinity.required)


def _check_claim(subject: Subject, claim: PersistentVolumeClaim, path: str = "spec") -> None:
    if claim.spec.resources is not None:
        check_resources(subject, f"{path}.resources.requests", claim.spec.resources.requests)
    check_label_selector(subject, f"{path}.selector", claim.spec.selector)


def _check_storage_class(subject: Subject, found: StorageClass) -> None:
    if found.volume_binding_mode is not None:
        check_choice(subject, "volumeBindingMode", found.volume_binding_mode, BINDING_MODES)


def _check_capacity(subject: Subject, found: CsiStorageCapacity) -> None:
    for field, text in (("capacity", found.capacity), ("maximumVolumeSize", found.maximum_volume_size)):
        if text is not None:
            check_quantity(subject, field, text)
    check_label_selector(subject, "nodeTopology", found.node_topology)


_CHECKS: dict[type, Callable[[Subject, Any], None]] = {
    Pod: _check_pod,
    Node: _check_node,
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
}
"""Kinds that are not here have nothing that could be wrong beyond their types and their name."""
