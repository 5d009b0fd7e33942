"""Checks of a Workload: its pod sets, where they want to be, and what its status says of them."""

from mooring.model.api.kueue_workload import (
    CHECK_PENDING,
    CHECK_READY,
    CHECK_REJECTED,
    CHECK_RETRY,
    PodSet,
    TopologyAssignment,
    TopologyRequest,
    Workload,
    WorkloadStatus,
)
from mooring.model.api.meta import timestamp_seconds
from mooring.model.places import show
from mooring.model.validation.pods import check_pod_spec
from mooring.model.validation.terms import PodSubject, Subject, check_amount, check_choice

MOST_POD_SETS = 18
MOST_LAYERS = 3
MOST_LEVELS = 16
MOST_DOMAINS = 100_000
"""In one slice of a topology assignment, as in Kueue's CRD."""
MOST_PODS = 2**31 - 1
CHECK_STATES = (CHECK_PENDING, CHECK_READY, CHECK_RETRY, CHECK_REJECTED)


def check_workload(subject: Subject, workload: Workload) -> None:
    pod_sets = workload.spec.pod_sets
    if not 1 <= len(pod_sets) <= MOST_POD_SETS:
        subject.refuse("spec.podSets", expected=f"1 to {MOST_POD_SETS} pod sets", found=str(len(pod_sets)))
    for index, pod_set in enumerate(pod_sets):
        path = f"spec.podSets[{index}]"
        if any(other.name == pod_set.name for other in pod_sets[:index]):
            subject.refuse(f"{path}.name", expected="a name that is not taken", found=show(pod_set.name))
        _check_pod_set(subject, path, pod_set)
    reducible = sum(pod_set.min_count is not None for pod_set in pod_sets)
    if reducible > 1:
        subject.refuse("spec.podSets", expected="minCount in at most one pod set", found=str(reducible))
    seconds = workload.spec.maximum_execution_time_seconds
    if seconds is not None and seconds <= 0:
        subject.refuse("spec.maximumExecutionTimeSeconds", expected="a number greater than 0", found=show(seconds))
    _check_time(subject, "metadata.creationTimestamp", workload.metadata.creation_timestamp)
    _check_status(subject, workload.status, {pod_set.name for pod_set in pod_sets})


def _check_pod_set(subject: Subject, path: str, pod_set: PodSet) -> None:
    if pod_set.count < 0:
        subject.refuse(f"{path}.count", expected="a number of at least 0", found=show(pod_set.count))
    if pod_set.min_count is not None and not 1 <= pod_set.min_count <= pod_set.count:
        subject.refuse(f"{path}.minCount", expected=f"1 to {pod_set.count}", found=show(pod_set.min_count))
    # No pods are made from it: whether devices have limits is for the job to say.
    check_pod_spec(PodSubject(subject.found, subject.place, []), f"{path}.template.spec", pod_set.template.spec)
    request = pod_set.topology_request
    if request is None:
        return
    topology_requests = [
        name
        for name, given in (
            ("required", request.required is not None),
            ("preferred", request.preferred is not None),
            ("unconstrained", bool(request.unconstrained)),
        )
        if given
    ]
    if len(topology_requests) > 1:
        expected = "one of required, preferred and unconstrained"
        subject.refuse(f"{path}.topologyRequest", expected=expected, found=" and ".join(topology_requests))
    size = request.pod_set_slice_size
    if size is not None and size < 1:
        expected = "a number of at least 1"
        subject.refuse(f"{path}.topologyRequest.podSetSliceSize", expected=expected, found=show(size))
    _check_layers(subject, f"{path}.topologyRequest", request)


def _check_layers(subject: Subject, path: str, request: TopologyRequest) -> None:
    """Slices inside slices: at most three, each of a size that divides the one around it."""
    layers = request.podset_slice_required_topology_constraints or []
    path = f"{path}.podsetSliceRequiredTopologyConstraints"
    if layers and request.pod_set_slice_required_topology is not None:
        subject.refuse(path, expected="none beside podSetSliceRequiredTopology", found=f"{len(layers)}")
    if len(layers) > MOST_LAYERS:
        subject.refuse(path, expected=f"at most {MOST_LAYERS} layers", found=str(len(layers)))
    for index, layer in enumerate(layers):
        around = layers[index - 1].size if index else None
        if layer.size < 1 or (around is not None and around % layer.size):
            expected = "a number of at least 1" if around is None else f"a number that divides {around}"
            subject.refuse(f"{path}[{index}].size", expected=expected, found=show(layer.size))


def _check_status(subject: Subject, status: WorkloadStatus, names: set[str]) -> None:
    admission = status.admission
    for index, assignment in enumerate(admission.pod_set_assignments if admission else ()):
        path = f"status.admission.podSetAssignments[{index}]"
        if assignment.name not in names:
            subject.refuse(f"{path}.name", expected="the name of a pod set", found=show(assignment.name))
        for name, text in (assignment.resource_usage or {}).items():
            check_amount(subject, f"{path}.resourceUsage.{name}", text)
        if assignment.topology_assignment is not None:
            _check_topology_assignment(subject, f"{path}.topologyAssignment", assignment.topology_assignment)
    for index, pods in enumerate(status.reclaimable_pods or ()):
        if pods.name not in names:
            path = f"status.reclaimablePods[{index}].name"
            subject.refuse(path, expected="the name of a pod set", found=show(pods.name))
    for index, check in enumerate(status.admission_checks or ()):
        check_choice(subject, f"status.admissionChecks[{index}].state", check.state, CHECK_STATES)
    for index, condition in enumerate(status.conditions or ()):
        _check_time(subject, f"status.conditions[{index}].lastTransitionTime", condition.last_transition_time)
    if status.requeue_state is not None:
        _check_time(subject, "status.requeueState.requeueAt", status.requeue_state.requeue_at)


def _check_topology_assignment(subject: Subject, path: str, found: TopologyAssignment) -> None:
    """Every domain has a value of each level and a count, in either way of writing them."""
    levels = len(found.levels)
    if not 1 <= levels <= MOST_LEVELS:
        subject.refuse(f"{path}.levels", expected=f"1 to {MOST_LEVELS} levels", found=str(levels))
    for index, written in enumerate(found.slices or ()):
        here = f"{path}.slices[{index}]"
        if not 1 <= written.domain_count <= MOST_DOMAINS:
            expected = f"1 to {MOST_DOMAINS} domains"
            subject.refuse(f"{here}.domainCount", expected=expected, found=show(written.domain_count))
        _check_length(subject, f"{here}.valuesPerLevel", len(written.values_per_level), levels)
        for level, values in enumerate(written.values_per_level):
            if (values.universal is None) == (values.individual is None):
                expected = "either universal or individual"
                subject.refuse(f"{here}.valuesPerLevel[{level}]", expected=expected, found="both or none")
            if values.individual is not None:
                given = len(values.individual.roots)
                _check_length(subject, f"{here}.valuesPerLevel[{level}].individual.roots", given, written.domain_count)
        counts = written.pod_counts
        if (counts.universal is None) == (counts.individual is None):
            subject.refuse(f"{here}.podCounts", expected="either universal or individual", found="both or none")
        if counts.individual is not None:
            _check_length(subject, f"{here}.podCounts.individual", len(counts.individual), written.domain_count)
    for index, domain in enumerate(found.each_domain()):
        if len(domain.values) != levels:
            _check_length(subject, f"{path}.domains[{index}].values", len(domain.values), levels)
        if not 1 <= domain.count <= MOST_PODS:
            subject.refuse(path, expected=f"1 to {MOST_PODS} pods in each domain", found=show(domain.count))


def _check_length(subject: Subject, path: str, found: int, wanted: int) -> None:
    if found != wanted:
        subject.refuse(path, expected=f"{wanted} of them", found=str(found))


def _check_time(subject: Subject, path: str, text: str | None) -> None:
    if text and timestamp_seconds(text) is None:
        subject.refuse(path, expected="a time such as 2025-06-01T12:00:00Z", found=show(text))
