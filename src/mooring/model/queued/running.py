"""Work that runs already holds quota, even where no Workload says so: its pods' nodes tell which flavors it has."""

from collections.abc import Iterable, Mapping, Sequence

from mooring.model.api.kueue import ClusterQueue, ResourceGroup
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
from mooring.model.objects.tables import Tables
from mooring.model.values.requests import CPU, PODS, pod_requests, to_column_units

Members = Mapping[str, Sequence[Pod]]


def is_running(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and not pod.is_terminal


class RunningWorkload:
    """Gives work that runs the admission that it must have had."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def admit(self, workload: Workload, members: Members) -> None:
        """Note on a workload of running pods what it holds; leave it waiting if no queue could have given it that."""
        running = [pod for pods in members.values() for pod in pods if is_running(pod)]
        if not running:
            return
        local = self._tables.local_queue(workload.metadata.namespace, workload.spec.queue_name)
        name = local.spec.cluster_queue if local is not None else ""
        queue = self._tables.cluster_queue(name)
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
        labels = self._tables.node_labels(pod.spec.node_name)
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
            flavor = self._tables.flavor(option.name)
            if flavor is not None and _contains(labels, (flavor.spec.node_labels or {}).items()):
                return option.name
        return None


def _contains(labels: Mapping[str, str], wanted: Iterable[tuple[str, str]]) -> bool:
    return all(labels.get(key) == value for key, value in wanted)


def _amount_text(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU else str(amount)
