"""ClusterQueues, Cohorts and ResourceFlavors compiled: the tree of quotas, and what each queue's policies are.

A queue that cannot work (a flavor that does not exist, a cohort that is its own ancestor, a stop policy) stays in the
tree with what it holds, but is inactive and says why.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mooring.model.api.kueue import (
    HOLD,
    HOLD_AND_DRAIN,
    NEVER,
    PREEMPTION_OVER_BORROWING,
    STRICT_FIFO,
    TRY_NEXT_FLAVOR,
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    ResourceFlavor,
    ResourceGroup,
    default_queueing,
)
from mooring.model.api.pods import PodSpec
from mooring.model.validation.kueue import find_cohort_cycle
from mooring.model.values.quantity import NANO, parse_quantity
from mooring.model.values.requests import to_column_units
from mooring.model.values.selectors import (
    Requirement,
    Selector,
    compile_equality,
    compile_label_selector,
    make_selector,
)
from mooring.model.values.tolerations import untolerated
from mooring.state.quota_tree import NO_PARENT, FlavorResource, Quota, QuotaTree, TreeNode
from mooring.state.remembered import Derived
from mooring.state.undo import UndoLog

MOST_ANSWERS = 20_000


class FlavorMatcher:
    """Answers once for each flavor and each distinct way of selecting nodes; workloads repeat these endlessly."""

    def __init__(self, flavors: Mapping[str, ResourceFlavor]) -> None:
        self._flavors = flavors
        self._answers: Derived[tuple[str, int], str] = Derived(MOST_ANSWERS)

    def mismatch(self, flavor_name: str, selection: int, spec: PodSpec) -> str:
        """Say why the pods cannot use the flavor; empty if they can. Equal numbers mean equal selections."""
        flavor = self._flavors.get(flavor_name)
        return self._answers.of((flavor_name, selection), _mismatch, flavor, flavor_name, spec)


def _mismatch(flavor: ResourceFlavor | None, name: str, spec: PodSpec) -> str:
    if flavor is None:
        return f"flavor {name} not found"
    tolerations = [*(spec.tolerations or ()), *(flavor.spec.tolerations or ())]
    left = untolerated(tolerations, flavor.spec.node_taints or ())
    if left:
        return f"untolerated taint {left[0].key}={left[0].value}:{left[0].effect} in flavor {name}"
    if not _selects(spec, flavor.spec.node_labels or {}):
        return f"flavor {name} doesn't match node affinity"
    return ""


def _selects(spec: PodSpec, labels: Mapping[str, str]) -> bool:
    """Ask only for labels that the flavor speaks of; about the others its nodes may differ."""
    known = {key: value for key, value in (spec.node_selector or {}).items() if key in labels}
    if not compile_equality(known).matches(labels):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    terms = []
    for term in affinity.required.node_selector_terms:
        requirements = [
            Requirement(found.key, found.operator, frozenset(found.values or ()))
            for found in term.match_expressions or ()
            if found.key in labels
        ]
        if not requirements:
            return True  # one term that this flavor cannot contradict is enough, as terms are alternatives
        terms.append(make_selector(requirements))
    return any(term.matches(labels) for term in terms) if terms else True


USAGE_BASED = "UsageBasedAdmissionFairSharing"


@dataclass(frozen=True, slots=True)
class FlavorOption:
    """One flavor of a group: the column of each resource that it provides."""

    flavor: str
    columns: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FlavorGroup:
    """Resources that always come from one flavor together, and the flavors in the order in which they are tried."""

    resources: frozenset[str]
    options: tuple[FlavorOption, ...]

    def column(self, flavor: str, resource: str) -> int:
        return next(option.columns[resource] for option in self.options if option.flavor == flavor)


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """A ClusterQueue, compiled."""

    name: str
    node: int
    root: int
    has_cohort: bool
    group_by_resource: Mapping[str, FlavorGroup]
    namespaces: Selector
    is_strict: bool
    tries_next_instead_of_borrowing: bool
    tries_next_instead_of_preempting: bool
    prefers_preemption: bool
    within_queue: str
    reclaim: str
    borrows_while_preempting: bool
    priority_threshold: int | None
    inactive_reason: str
    """Why nothing is admitted here; empty for an active queue."""
    is_stopped: bool
    is_drained: bool
    """Whether those who hold quota here have to give it back."""
    checks: Mapping[str, frozenset[str]]
    """The admission checks, each with the flavors for which it is asked; none named: for all."""
    orders_by_usage: bool = False
    """Whether its LocalQueues take turns by what they used before."""
    topology_flavors: frozenset[str] = frozenset()
    """Those of its flavors that have a topology."""
    is_topology_only: bool = False
    """Whether all of them have: then every workload here is placed in one."""

    def checks_for(self, flavors: Iterable[str]) -> list[str]:
        """The checks that a workload with these flavors has to pass."""
        used = set(flavors)
        return sorted(name for name, on_flavors in self.checks.items() if not on_flavors or on_flavors & used)

    @property
    def is_active(self) -> bool:
        return not self.inactive_reason


def _columns(all_groups: Iterable[list[ResourceGroup]]) -> dict[FlavorResource, int]:
    """The quotas that anybody has, numbered in the order in which they are met first."""
    quotas = (
        FlavorResource(flavor.name, quota.name)
        for groups in all_groups
        for group in groups
        for flavor in group.flavors
        for quota in flavor.resources
    )
    return {found: index for index, found in enumerate(dict.fromkeys(quotas))}


class Structure:
    """Everything about queues that does not change while workloads come and go."""

    def __init__(
        self,
        queues: Iterable[ClusterQueue],
        cohorts: Iterable[Cohort] = (),
        flavors: Iterable[ResourceFlavor] = (),
        checks: Iterable[AdmissionCheck] | None = None,
        *,
        log: UndoLog,
    ) -> None:
        """Without `checks`, every admission check that a queue names is taken to be there.

        `log` is the one by which what is tried out is undone.
        """
        given_queues = sorted(queues, key=lambda queue: queue.metadata.name)
        given_cohorts = sorted(cohorts, key=lambda cohort: cohort.metadata.name)
        owners: list[ClusterQueue | Cohort] = [*given_cohorts, *given_queues]
        for found in owners:
            default_queueing(found)
        self.flavors = {flavor.metadata.name: flavor for flavor in flavors}
        self.matcher = FlavorMatcher(self.flavors)
        self.topology_flavors = frozenset(name for name, found in self.flavors.items() if found.spec.topology_name)
        self._checks = None if checks is None else {check.metadata.name: check for check in checks}
        self.column_of: dict[FlavorResource, int] = {}
        self.column_of = _columns(found.spec.resource_groups or [] for found in owners)
        self._cut = _members_of_cycles({cohort.metadata.name: cohort.spec.parent_name for cohort in given_cohorts})
        nodes = self._make_cohort_nodes(given_cohorts, given_queues)
        self.cohort_node = {node.name: index for index, node in enumerate(nodes)}
        first_queue = len(nodes)
        nodes += [self._make_queue_node(queue) for queue in given_queues]
        self.tree = QuotaTree(nodes, tuple(self.column_of), log)
        self.queues = {
            queue.metadata.name: self._compile(queue, first_queue + index) for index, queue in enumerate(given_queues)
        }
        self.queue_of_node = {queue.node: queue for queue in self.queues.values()}

    def _make_cohort_nodes(self, cohorts: list[Cohort], queues: list[ClusterQueue]) -> list[TreeNode]:
        """Cohorts, those included that are only named somewhere, parents first."""
        given = {cohort.metadata.name: cohort for cohort in cohorts}
        parent_of = {name: cohort.spec.parent_name for name, cohort in given.items()}
        for name in [*parent_of.values(), *(queue.spec.cohort_name for queue in queues)]:
            if name:
                parent_of.setdefault(name, "")
        nodes: list[TreeNode] = []
        index_of: dict[str, int] = {}
        for start in sorted(parent_of):
            chain = []
            name = start
            while name and name not in index_of and name not in chain:
                chain.append(name)
                name = "" if name in self._cut else parent_of[name]
            for found in reversed(chain):
                parent = "" if found in self._cut else parent_of[found]
                cohort = given.get(found)
                index_of[found] = len(nodes)
                nodes.append(
                    TreeNode(
                        found,
                        index_of[parent] if parent else NO_PARENT,
                        weight=_weight(cohort) if cohort else 1.0,
                        quotas=self._quotas(cohort.spec.resource_groups) if cohort else {},
                    )
                )
        return nodes

    def _make_queue_node(self, queue: ClusterQueue) -> TreeNode:
        cohort = queue.spec.cohort_name
        return TreeNode(
            queue.metadata.name,
            self.cohort_node[cohort] if cohort else NO_PARENT,
            is_queue=True,
            weight=_weight(queue),
            quotas=self._quotas(queue.spec.resource_groups),
        )

    def _quotas(self, groups: list[ResourceGroup] | None) -> dict[int, Quota]:
        quotas = {}
        for group in groups or ():
            for flavor in group.flavors:
                for found in flavor.resources:
                    column = self.column_of[FlavorResource(flavor.name, found.name)]
                    nominal, borrowing, lending = (
                        None if text is None else to_column_units(found.name, parse_quantity(text))
                        for text in (found.nominal_quota, found.borrowing_limit, found.lending_limit)
                    )
                    quotas[column] = Quota(nominal or 0, borrowing, lending)
        return quotas

    def _compile(self, queue: ClusterQueue, node: int) -> Queue:
        spec = queue.spec
        fungibility, preemption = spec.flavor_fungibility, spec.preemption
        assert fungibility is not None and preemption is not None and preemption.borrow_within_cohort is not None
        borrow = preemption.borrow_within_cohort
        flavors = frozenset(flavor.name for group in spec.resource_groups or () for flavor in group.flavors)
        return Queue(
            name=queue.metadata.name,
            node=node,
            root=self.tree.paths[node][-1],
            has_cohort=bool(spec.cohort_name),
            group_by_resource=self._groups(spec.resource_groups),
            namespaces=compile_label_selector(spec.namespace_selector),
            is_strict=spec.queueing_strategy == STRICT_FIFO,
            tries_next_instead_of_borrowing=fungibility.when_can_borrow == TRY_NEXT_FLAVOR,
            tries_next_instead_of_preempting=fungibility.when_can_preempt == TRY_NEXT_FLAVOR,
            prefers_preemption=fungibility.preference == PREEMPTION_OVER_BORROWING,
            within_queue=preemption.within_cluster_queue,
            reclaim=preemption.reclaim_within_cohort,
            borrows_while_preempting=borrow.policy != NEVER,
            priority_threshold=borrow.max_priority_threshold,
            inactive_reason=self._inactive_reason(queue, node),
            is_stopped=spec.stop_policy in (HOLD, HOLD_AND_DRAIN),
            is_drained=spec.stop_policy == HOLD_AND_DRAIN,
            checks=_check_rules(queue),
            orders_by_usage=spec.admission_scope is not None and spec.admission_scope.admission_mode == USAGE_BASED,
            topology_flavors=flavors & self.topology_flavors,
            is_topology_only=bool(flavors) and flavors <= self.topology_flavors,
        )

    def _groups(self, groups: list[ResourceGroup] | None) -> dict[str, FlavorGroup]:
        by_resource = {}
        for group in groups or ():
            options = tuple(
                FlavorOption(
                    flavor.name,
                    {quota.name: self.column_of[FlavorResource(flavor.name, quota.name)] for quota in flavor.resources},
                )
                for flavor in group.flavors
            )
            compiled = FlavorGroup(frozenset(group.covered_resources), options)
            by_resource.update(dict.fromkeys(group.covered_resources, compiled))
        return by_resource

    def _inactive_reason(self, queue: ClusterQueue, node: int) -> str:
        """Everything that keeps a queue from admitting, in Kueue's words and order."""
        reasons = []
        if queue.spec.stop_policy in (HOLD, HOLD_AND_DRAIN):
            reasons.append("is stopped")
        for above in self.tree.paths[node][1:]:
            name = self.tree.nodes[above].name
            if name in self._cut:
                reasons.append(f"cohort {name} is part of a cycle of cohorts")
                break
        missing = sorted(
            {
                flavor.name
                for group in queue.spec.resource_groups or ()
                for flavor in group.flavors
                if flavor.name not in self.flavors
            }
        )
        if missing:
            reasons.append(f"references missing ResourceFlavor(s): {','.join(missing)}")
        if self._checks is not None:
            named = sorted(_check_rules(queue))
            absent = [name for name in named if name not in self._checks]
            if absent:
                reasons.append(f"references missing AdmissionCheck(s): {','.join(absent)}")
            inactive = [name for name in named if name in self._checks and not _is_active(self._checks[name])]
            if inactive:
                reasons.append(f"references inactive AdmissionCheck(s): {','.join(inactive)}")
        return ", ".join(reasons)


def _check_rules(queue: ClusterQueue) -> dict[str, frozenset[str]]:
    strategy = queue.spec.admission_checks_strategy
    rules = strategy.admission_checks if strategy is not None else None
    return {rule.name: frozenset(rule.on_flavors or ()) for rule in rules or ()}


def _is_active(check: AdmissionCheck) -> bool:
    """A check counts as active unless its controller says otherwise: manifests have no status."""
    return all(found.status == "True" for found in check.status.conditions or () if found.type == "Active")


def _weight(found: ClusterQueue | Cohort) -> float:
    sharing = found.spec.fair_sharing
    return 1.0 if sharing is None or sharing.weight is None else parse_quantity(sharing.weight) / NANO


def _members_of_cycles(parents: Mapping[str, str]) -> frozenset[str]:
    """All cohorts that are their own ancestors; cut from their parents, so that the tree is one."""
    left = dict(parents)
    cut: set[str] = set()
    while cycle := find_cohort_cycle(left):
        cut.update(cycle)
        left.update(dict.fromkeys(cycle, ""))
    return frozenset(cut)
