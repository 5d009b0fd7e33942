"""Check admission as it goes, from its decisions alone: quotas nowhere exceeded, nobody preempted who may not be.

Who holds what is counted here a second time, from the queues as they are written and the decisions as they come.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mooring.model.api.kueue import ANY, LOWER_PRIORITY, NEVER, ClusterQueue, Cohort, ResourceGroup
from mooring.model.api.pods import Pod
from mooring.model.decisions import Admit, Decision, Suspend
from mooring.model.keys import WorkloadKey
from mooring.model.queued.workloads import QueuedWorkload
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import PODS, pod_requests, to_column_units
from mooring.state.cluster import Cluster

Resource = tuple[str, str]
"""Of a flavor."""


@dataclass(slots=True)
class Owner:
    """A queue or a cohort, and its quotas."""

    parent: str
    nominal: dict[Resource, int] = field(default_factory=dict)
    borrowing: dict[Resource, int] = field(default_factory=dict)
    lending: dict[Resource, int] = field(default_factory=dict)


class QuotaWatch:
    """Who holds quota, told by the decisions; `note` them all, before they are carried out."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._held: dict[str, Admit] = {}
        self._owners: dict[str, Owner] = {}
        self._version = -1

    def note(self, decisions: Iterable[Decision]) -> list[str]:
        """What is wrong with the decisions of a cycle, one line each."""
        suspended: list[Suspend] = []
        for decision in decisions:
            if isinstance(decision, Admit):
                self._held[decision.workload] = decision
            elif isinstance(decision, Suspend):
                suspended.append(decision)
        if not self._held:
            return []
        if self._version != self._cluster.tenants.version:
            self._version = self._cluster.tenants.version
            self._owners = dict(_owners(self._cluster))
        problems = [problem for found in suspended if (problem := self._wronged(found))]
        # As in Kueue, what is on its way out may be given to others in the same cycle, so it does not count.
        for found in suspended:
            self._held.pop(found.workload, None)
        return problems + list(_exceeded(self._owners, self._usage()))

    def _usage(self) -> dict[str, Counter[Resource]]:
        """What each queue's workloads hold; those that are over hold nothing."""
        usage: dict[str, Counter[Resource]] = defaultdict(Counter)
        for key, admitted in list(self._held.items()):
            workload = self._cluster.tenants.workloads.get(WorkloadKey(key))
            held = _held_by(admitted, workload, self._cluster) if workload is not None else Counter[Resource]()
            if held:
                usage[f"queue {admitted.cluster_queue}"].update(held)
            else:
                del self._held[key]
        return usage

    def _wronged(self, found: Suspend) -> str:
        """Say so if a victim was out of reach: in another tree of cohorts, or of too high a priority.

        Whether its queue borrowed is not asked: that depends on what others of the same cycle were to get.
        """
        tenants = self._cluster.tenants
        victim = tenants.workloads.get(WorkloadKey(found.workload))
        preemptor = tenants.workloads.get(WorkloadKey(found.preemptor))
        if victim is None or preemptor is None or found.workload not in self._held:
            return ""
        said = f"{found.workload} was preempted by {found.preemptor}"
        metadata, spec = preemptor.workload.metadata, preemptor.workload.spec
        ours = tenants.local_queues[f"{metadata.namespace}/{spec.queue_name}"].spec.cluster_queue
        theirs = self._held[found.workload].cluster_queue
        if _root(self._owners, ours) != _root(self._owners, theirs):
            return f"{said}, whose queue shares no quota with its own"
        policy = _policy(tenants.cluster_queues[ours], is_own=ours == theirs)
        if policy == NEVER:
            return f"{said}, whose queue preempts nobody there"
        lead = (spec.priority or 0) - (victim.workload.spec.priority or 0)
        if policy != ANY and lead < (1 if policy == LOWER_PRIORITY else 0):
            return f"{said}, whose priority is not higher"
        return ""


def _root(owners: Mapping[str, Owner], queue: str) -> str:
    name = f"queue {queue}"
    while owners[name].parent:
        name = owners[name].parent
    return name


def _held_by(admitted: Admit, workload: QueuedWorkload, cluster: Cluster) -> Counter[Resource]:
    """What an admitted workload holds: so much for each of its pods that was admitted and is not done."""
    held: Counter[Resource] = Counter()
    pod_sets = {found.name: found for found in workload.workload.spec.pod_sets}
    done = cluster.tenants.finished_pods(workload.workload.key)
    for given in admitted.podsets:
        count = max(0, min(given.count, pod_sets[given.name].count - done.get(given.name, 0)))
        requests = pod_requests(Pod(spec=pod_sets[given.name].template.spec))
        for resource, flavor in given.flavors.items():
            each = 1 if resource == PODS else to_column_units(resource, requests.get(resource, 0))
            if count * each:
                held[flavor, resource] += count * each
    return held


def _policy(queue: ClusterQueue, *, is_own: bool) -> str:
    preemption = queue.spec.preemption
    if preemption is None:
        return NEVER
    return (preemption.within_cluster_queue if is_own else preemption.reclaim_within_cohort) or NEVER


def _owners(cluster: Cluster) -> Iterator[tuple[str, Owner]]:
    """Queues and cohorts; a cohort that is only named somewhere has no quota of its own."""
    tenants = cluster.tenants
    named: dict[str, Cohort | None] = dict.fromkeys(
        (queue.spec.cohort_name for queue in tenants.cluster_queues.values() if queue.spec.cohort_name), None
    )
    named |= dict.fromkeys(found.spec.parent_name for found in tenants.cohorts.values() if found.spec.parent_name)
    named |= tenants.cohorts
    for name, cohort in named.items():
        parent = cohort.spec.parent_name if cohort is not None else ""
        yield f"cohort {name}", _with_quotas(parent, cohort.spec.resource_groups if cohort is not None else None)
    for name, queue in tenants.cluster_queues.items():
        yield f"queue {name}", _with_quotas(queue.spec.cohort_name, queue.spec.resource_groups)


def _with_quotas(cohort: str, groups: list[ResourceGroup] | None) -> Owner:
    owner = Owner(f"cohort {cohort}" if cohort else "")
    for flavor in [flavor for group in groups or () for flavor in group.flavors]:
        for quota in flavor.resources:
            key = (flavor.name, quota.name)
            owner.nominal[key] = to_column_units(quota.name, parse_quantity(quota.nominal_quota))
            for limits, text in ((owner.borrowing, quota.borrowing_limit), (owner.lending, quota.lending_limit)):
                if text is not None:
                    limits[key] = to_column_units(quota.name, parse_quantity(text))
    return owner


def _exceeded(owners: Mapping[str, Owner], usage: Mapping[str, Counter[Resource]]) -> Iterator[str]:
    """Who uses more than its quota and what it may borrow: a queue, or all that is below a cohort together."""
    children: dict[str, list[str]] = defaultdict(list)
    for name, owner in owners.items():
        children[owner.parent].append(name)
    problems: list[str] = []

    def add_up(name: str, resource: Resource) -> tuple[int, int]:
        """(what it lends to its parent, what it uses of its parent's)"""
        owner = owners[name]
        parts = [add_up(child, resource) for child in children[name]]
        quota = owner.nominal.get(resource, 0) + sum(lent for lent, _ in parts)
        used = usage[name][resource] if name in usage else 0
        used += sum(borrowed for _, borrowed in parts)
        limit = owner.borrowing.get(resource) if owner.parent else 0
        if limit is not None and used > quota + limit:
            problems.append(f"{name}: {used} of {'/'.join(resource)} held, {quota + limit} allowed")
        lent = min(quota, owner.lending.get(resource, quota)) if owner.parent else quota
        return lent, max(0, used - (quota - lent))

    for resource in dict.fromkeys(key for owner in owners.values() for key in owner.nominal):
        for root in children[""]:
            add_up(root, resource)
    yield from problems
