"""Work that runs already holds quota, even where no Workload says so: its pods' nodes tell which flavors it has."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mooring.model.api.kueue import ClusterQueue, LocalQueue, ResourceFlavor, ResourceGroup
from mooring.model.api.kueue_workload import (
    ADMITTED,
    QUOTA_RESERVED,
    PodSet,
    PodSetAssignment,
    QuotaAdmission,
    Workload,
    WorkloadCondition,
)
from mooring.model.api.meta import Resources
from mooring.model.api.pods import Pod
from mooring.model.values.requests import CPU, PODS, pod_requests, to_column_units

if TYPE_CHECKING:
    from mooring.model.loading.collection import Manifests

Members = Mapping[str, Sequence[Pod]]


def is_running(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not pod.is_terminal


class RunningWorkload:
    """Gives work that runs the admission that it must have had."""

    def __init__(self, manifests: "Manifests") -> None:
        self._local = {
            (found.metadata.namespace, found.metadata.name): found.spec.cluster_queue
            for found in manifests.of(LocalQueue)
        }
        self._queues = {found.metadata.name: found for found in manifests.of(ClusterQueue)}
        self._flavors = {found.metadata.name: found for found in manifests.of(ResourceFlavor)}
        self._nodes = manifests.nodes
        self._labels: dict[str, Mapping[str, str]] | None = None

    def admit(self, workload: Workload, members: Members) -> None:
        """Note on a workload of running pods what it holds; leave it waiting if no queue could have given it that."""
        running = [pod for pods in members.values() for pod in pods if is_running(pod)]
        if not running:
            return
        name = self._local.get((workload.metadata.namespace, workload.spec.queue_name), "")
        queue = self._queues.get(name)
        if queue is None:
            return
        assignments = []
        for pod_set in workload.spec.pod_sets:
            own = (pod for pod in members.get(pod_set.name, ()) if is_running(pod))
            assignment = self._assign(pod_set, next(own, running[0]), queue)
            if assignment is None:
                return
            assignments.append(assignment)
        workload.status.admission = QuotaAdmission(cluster_queue=name, pod_set_assignments=assignments)
        since = min((pod.status.start_time for pod in running if pod.status.start_time), default=None)
        workload.status.conditions = [
            WorkloadCondition(type=type_, status="True", reason=type_, last_transition_time=since)
            for type_ in (QUOTA_RESERVED, ADMITTED)
        ]

    def _assign(self, pod_set: PodSet, pod: Pod, queue: ClusterQueue) -> PodSetAssignment | None:
        amounts = {name: nanos for name, nanos in pod_requests(Pod(spec=pod_set.template.spec)).items() if nanos > 0}
        each = {name: to_column_units(name, nanos) for name, nanos in amounts.items()}
        labels = self._node_labels(pod.spec.node_name)
        flavors: dict[str, str] = {}
        for group in queue.spec.resource_groups or ():
            wanted = [name for name in group.covered_resources if name in each or name == PODS]
            if not wanted:
                continue
            flavor = self._matching(group, labels)
            if flavor is None:
                return None
            flavors.update(dict.fromkeys(wanted, flavor))
        usage: Resources = {name: _amount_text(name, each.get(name, 1) * pod_set.count) for name in flavors}
        return PodSetAssignment(name=pod_set.name, flavors=flavors, resource_usage=usage, count=pod_set.count)

    def _matching(self, group: ResourceGroup, labels: Mapping[str, str]) -> str | None:
        """The first flavor of a group that the node is of."""
        for option in group.flavors:
            flavor = self._flavors.get(option.name)
            if flavor is not None and _contains(labels, (flavor.spec.node_labels or {}).items()):
                return option.name
        return None

    def _node_labels(self, node: str) -> Mapping[str, str]:
        if self._labels is None:
            self._labels = {found.metadata.name: found.metadata.labels or {} for found in self._nodes}
        return self._labels.get(node, {})


def _contains(labels: Mapping[str, str], wanted: Iterable[tuple[str, str]]) -> bool:
    return all(labels.get(key) == value for key, value in wanted)


def _amount_text(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU else str(amount)
