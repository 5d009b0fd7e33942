"""Everything that queues in Kueue's way, each with its Workload and its pods.

A Workload that the manifests hold is used as it is; for the rest one is built as Kueue would. Work that is over is left
out. `hold_queued` makes the pods wait until their work is admitted; `resume` lets one go.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from mooring.model.api.kueue import ResourceFlavor
from mooring.model.api.kueue_labels import ROLE_HASH, pod_group
from mooring.model.api.kueue_workload import ADMITTED, AdmissionCheckState, PodSetAssignment, Workload
from mooring.model.api.pods import Pod, Toleration
from mooring.model.jobs.pod_sets import role_hash
from mooring.model.keys import PodKey
from mooring.model.objects.picture import Manifests
from mooring.model.objects.tables import Tables
from mooring.model.places import Place
from mooring.model.pod_patch import PodPatch
from mooring.model.queued.gates import ResumeError as ResumeError
from mooring.model.queued.gates import flavor_terms as flavor_terms
from mooring.model.queued.gates import hold_pods, merge_selectors
from mooring.model.queued.gates import resume as resume
from mooring.model.queued.gates import resume_pods as resume_pods
from mooring.model.queued.gathering import Gathering
from mooring.model.queued.gathering import QueuedWorkload as QueuedWorkload


def queued_workloads(manifests: Manifests) -> list[QueuedWorkload]:
    """Find all work that queues or holds quota, jobs first, then pods, then Workloads of whatever is not here."""
    return list(Gathering(manifests, Tables.of(manifests)).workloads())


def hold_queued(manifests: Manifests, tables: Tables, places: Mapping[str, Place]) -> set[str]:
    """Make pods wait whose workload is not admitted, and let those go whose workload is; pods that run are left alone.

    Return the keys of all pods that queue.

    `places` says where the Workloads stood, by key. Raise ManifestError for one that was given flavors on which its
    pods do not want to run.
    """
    gathering = Gathering(manifests, tables)
    workloads = list(gathering.workloads())
    if not gathering.claimed:
        return set()
    by_key = {pod.key: pod for pod in manifests.pods if pod.key in gathering.claimed}
    _name_roles(by_key)
    started: set[str] = set()
    for queued in workloads:
        workload = queued.workload
        if workload.status.admission is None or workload.condition(ADMITTED) is None:
            continue
        for assignment in workload.status.admission.pod_set_assignments:
            pods = _let_go(assignment, [by_key[key] for key in queued.pods.get(assignment.name, ())])
            started.update(pod.key for pod in pods)
            try:
                _start(pods, *admission_terms(workload, assignment, tables.flavor))
            except ResumeError as error:
                place = places.get(workload.key)
                if place is None:  # nobody wrote this admission down; it is only what the other pods' nodes suggest
                    _start(pods, {}, [])
                    continue
                expected = f"flavors that the pods of pod set {assignment.name} can run on"
                raise place.error("status.admission", expected=expected, found=str(error), subject=workload) from error
    hold_pods(pod for key, pod in by_key.items() if key not in started and _is_waiting(pod))
    return gathering.claimed


def _is_waiting(pod: Pod) -> bool:
    return not pod.spec.node_name and not pod.is_terminal


def _name_roles(pods: Mapping[PodKey, Pod]) -> None:
    """Write the roles of grouped pods on them, as Kueue does: what admission adds to a pod must not change its role."""
    for pod in pods.values():
        if pod_group(pod.metadata):
            annotations = {**(pod.metadata.annotations or {}), ROLE_HASH: role_hash(pod)}
            pod.metadata = replace(pod.metadata, annotations=annotations)


def _let_go(assignment: PodSetAssignment, pods: list[Pod]) -> list[Pod]:
    """The waiting pods that quota was given for, besides those that run."""
    waiting = [pod for pod in pods if _is_waiting(pod)]
    if assignment.count is None:
        return waiting
    return waiting[: max(0, assignment.count - (len(pods) - len(waiting)))]


def admission_terms(
    workload: Workload, assignment: PodSetAssignment, flavor: Callable[[str], ResourceFlavor | None]
) -> tuple[dict[str, str], list[Toleration]]:
    """What flavors and admission checks add to the pods of a pod set."""
    names = (assignment.flavors or {}).values()
    flavors = {name: found for name in names if (found := flavor(name)) is not None}
    node_selector, tolerations = flavor_terms(flavors, names)
    for check in workload.status.admission_checks or ():
        for update in check.pod_set_updates or ():
            if update.name == assignment.name:
                node_selector = merge_selectors(node_selector, update.node_selector or {})
                tolerations += [found for found in update.tolerations or () if found not in tolerations]
    return node_selector, tolerations


def admission_patch(
    workload: Workload, assignment: PodSetAssignment, flavor: Callable[[str], ResourceFlavor | None]
) -> PodPatch:
    """What flavors and admission checks give the pods of a pod set, as one patch."""
    names = list((assignment.flavors or {}).values())
    flavors = {name: found for name in names if (found := flavor(name)) is not None}
    return terms_patch(flavor_terms(flavors, names), workload.status.admission_checks or (), assignment.name)


def terms_patch(
    of_flavors: tuple[Mapping[str, str], Sequence[Toleration]], checks: Iterable[AdmissionCheckState], pod_set: str
) -> PodPatch:
    """The terms of flavors with what admission checks add to the pods of a pod set."""
    node_selector, tolerations = dict(of_flavors[0]), list(of_flavors[1])
    labels, annotations = dict[str, str](), dict[str, str]()
    for check in checks:
        for update in check.pod_set_updates or ():
            if update.name == pod_set:
                node_selector |= update.node_selector or {}
                tolerations += [found for found in update.tolerations or () if found not in tolerations]
                labels |= update.labels or {}
                annotations |= update.annotations or {}
    return PodPatch.of(node_selector=node_selector, tolerations=tolerations, labels=labels, annotations=annotations)


def _start(pods: list[Pod], node_selector: Mapping[str, str], tolerations: list[Toleration]) -> None:
    for pod, started in zip(pods, resume_pods(pods, node_selector, tolerations), strict=True):
        pod.spec = started.spec
