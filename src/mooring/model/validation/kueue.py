"""Checks of queueing objects, like the webhooks that guard them: each object on its own, then the cohorts together.

A flavor, a topology or a cohort that is named but missing is no mistake here: objects arrive in any order. It makes the
queue inactive for as long as it is missing, and the queue says so (`mooring.actions.admit.quota.structure`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mooring.model.api.kueue import (
    ANY,
    BEST_EFFORT_FIFO,
    BORROWING_OVER_PREEMPTION,
    HOLD,
    HOLD_AND_DRAIN,
    LOWER_OR_NEWER_EQUAL_PRIORITY,
    LOWER_PRIORITY,
    MAY_STOP_SEARCH,
    NEVER,
    PREEMPTION_OVER_BORROWING,
    STOP_NONE,
    STRICT_FIFO,
    TRY_NEXT_FLAVOR,
    AdmissionCheck,
    ClusterQueue,
    ClusterQueueSpec,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    ResourceGroup,
    Topology,
    Workload,
)
from mooring.model.api.meta import QuantityText
from mooring.model.places import Place, show
from mooring.model.validation.kueue_workload import check_workload
from mooring.model.validation.terms import LARGEST_AMOUNT as LARGEST_AMOUNT
from mooring.model.validation.terms import (
    Subject,
    check_amount,
    check_choice,
    check_label_selector,
    check_quantity,
    check_taints,
    check_tolerations,
)

MOST_GROUPS = 16
MOST_FLAVORS = 256
HOSTNAME = "kubernetes.io/hostname"

MODES = ("UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing")
_OLD_STOPS = ("Borrow", "Preempt")


def validate_queueing(found: Any, place: Place) -> None:
    """Raise ManifestError for the first thing that is wrong with a queueing object."""
    subject = Subject(found, place)
    if not found.metadata.name and not found.metadata.generate_name:
        subject.refuse("metadata.name", expected="a name", found="none")
    check = QUEUEING_CHECKS.get(type(found))
    if check is not None:
        check(subject, found)


def find_cohort_cycle(parents: Mapping[str, str]) -> list[str]:
    """Name the cohorts of one cycle, in order, the first by name in front; none if every chain of parents ends.

    >>> find_cohort_cycle({"a": "b", "b": "c", "c": "b", "d": ""})
    ['b', 'c']
    """
    ended: set[str] = set()
    for start in sorted(parents):
        chain: dict[str, None] = {}
        name = start
        while name and name not in ended and name not in chain:
            chain[name] = None
            name = parents.get(name, "")
        if name in chain:
            cycle = list(chain)[list(chain).index(name) :]
            first = cycle.index(min(cycle))
            return cycle[first:] + cycle[:first]
        ended.update(chain)
    return []


def validate_cohort_tree(cohorts: Iterable[tuple[Cohort, Place]]) -> None:
    """Refuse cohorts that are their own ancestors."""
    placed = {cohort.metadata.name: (cohort, place) for cohort, place in cohorts}
    cycle = find_cohort_cycle({name: cohort.spec.parent_name for name, (cohort, _) in placed.items()})
    if cycle:
        cohort, place = placed[cycle[0]]
        way = " -> ".join([*cycle, cycle[0]])
        expected = "a cohort that is not below this one"
        raise place.error("spec.parentName", expected=expected, found=f"a cycle, {way}", subject=cohort)


def _check_weight(subject: Subject, weight: QuantityText | None) -> None:
    if weight is None:
        return
    path = "spec.fairSharing.weight"
    nanos = check_quantity(subject, path, weight)
    if nanos == 1:
        subject.refuse(path, expected="0 or more than a billionth", found=show(weight))


def _check_groups(subject: Subject, groups: list[ResourceGroup] | None, has_parent: bool, is_queue: bool) -> None:
    if len(groups or ()) > MOST_GROUPS:
        subject.refuse("spec.resourceGroups", expected=f"at most {MOST_GROUPS} groups", found=str(len(groups or ())))
    group_of: dict[str, int] = {}
    flavor_group: dict[str, int] = {}
    for index, group in enumerate(groups or ()):
        path = f"spec.resourceGroups[{index}]"
        if not group.covered_resources:
            subject.refuse(f"{path}.coveredResources", expected="at least one resource", found="none")
        if not group.flavors:
            subject.refuse(f"{path}.flavors", expected="at least one flavor", found="none")
        _refuse_twice(subject, f"{path}.coveredResources", group.covered_resources, "resource")
        _refuse_twice(subject, f"{path}.flavors", [flavor.name for flavor in group.flavors], "flavor")
        for name in group.covered_resources:
            _claim(subject, f"{path}.coveredResources", name, index, group_of, "resource")
        for flavor_index, flavor in enumerate(group.flavors):
            here = f"{path}.flavors[{flavor_index}]"
            _claim(subject, f"{here}.name", flavor.name, index, flavor_group, "flavor")
            names = [quota.name for quota in flavor.resources]
            if names != group.covered_resources:
                expected = f"the covered resources in their order ({', '.join(group.covered_resources)})"
                subject.refuse(f"{here}.resources", expected=expected, found=", ".join(names) or "none")
            for quota_index, quota in enumerate(flavor.resources):
                field = f"{here}.resources[{quota_index}]"
                nominal = check_amount(subject, f"{field}.nominalQuota", quota.nominal_quota)
                for limit_name, limit in (
                    ("borrowingLimit", quota.borrowing_limit),
                    ("lendingLimit", quota.lending_limit),
                ):
                    if limit is None:
                        continue
                    nanos = check_amount(subject, f"{field}.{limit_name}", limit)
                    if not has_parent:
                        missing = "cohortName" if is_queue else "parentName"
                        expected = f"no {limit_name} without {missing}"
                        subject.refuse(f"{field}.{limit_name}", expected=expected, found=show(limit))
                    if limit_name == "lendingLimit" and is_queue and nanos > nominal:
                        expected = f"at most the nominal quota ({quota.nominal_quota})"
                        subject.refuse(f"{field}.{limit_name}", expected=expected, found=show(limit))
    if len(flavor_group) > MOST_FLAVORS:
        subject.refuse("spec.resourceGroups", expected=f"at most {MOST_FLAVORS} flavors", found=str(len(flavor_group)))


def _claim(subject: Subject, path: str, name: str, index: int, owner: dict[str, int], what: str) -> None:
    first = owner.setdefault(name, index)
    if first != index:
        expected = f"each {what} in one group only"
        subject.refuse(path, expected=expected, found=f"{name} also in spec.resourceGroups[{first}]")


def _refuse_twice(subject: Subject, path: str, names: list[str], what: str) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            subject.refuse(f"{path}[{index}]", expected=f"each {what} once", found=f"{name} again")


def _refuse_two_names(subject: Subject, new: tuple[str, str], old: tuple[str, str]) -> None:
    """A field and what it was called before may both be there, but not with different values."""
    if new[1] and old[1] and new[1] != old[1]:
        found = f"{show(new[1])} beside {old[0]} {show(old[1])}"
        subject.refuse(f"spec.{new[0]}", expected=f"the same as spec.{old[0]}, or one of them", found=found)


def _check_admission_rules(subject: Subject, spec: ClusterQueueSpec) -> None:
    strategy = spec.admission_checks_strategy
    if spec.admission_checks and strategy is not None and strategy.admission_checks:
        expected = "none beside admissionChecksStrategy"
        subject.refuse("spec.admissionChecks", expected=expected, found=", ".join(spec.admission_checks))
    names = [rule.name for rule in strategy.admission_checks or ()] if strategy else spec.admission_checks or []
    path = "spec.admissionChecksStrategy.admissionChecks" if strategy else "spec.admissionChecks"
    _refuse_twice(subject, path, names, "check")
    if spec.admission_scope is not None:
        _check_optional(subject, "spec.admissionScope.admissionMode", spec.admission_scope.admission_mode, MODES)


def _check_cluster_queue(subject: Subject, queue: ClusterQueue) -> None:
    spec = queue.spec
    _refuse_two_names(subject, ("cohortName", spec.cohort_name), ("cohort", spec.cohort))
    has_cohort = bool(spec.cohort_name or spec.cohort)
    _check_groups(subject, spec.resource_groups, has_cohort, is_queue=True)
    _check_weight(subject, spec.fair_sharing.weight if spec.fair_sharing else None)
    _check_optional(subject, "spec.queueingStrategy", spec.queueing_strategy, (STRICT_FIFO, BEST_EFFORT_FIFO))
    _check_optional(subject, "spec.stopPolicy", spec.stop_policy, (STOP_NONE, HOLD, HOLD_AND_DRAIN))
    check_label_selector(subject, "spec.namespaceSelector", spec.namespace_selector)
    _check_fungibility(subject, queue)
    _check_preemption(subject, queue)
    _check_admission_rules(subject, spec)


def _check_fungibility(subject: Subject, queue: ClusterQueue) -> None:
    found = queue.spec.flavor_fungibility
    if found is None:
        return
    allowed = (MAY_STOP_SEARCH, TRY_NEXT_FLAVOR)
    path = "spec.flavorFungibility"
    for field, value in (("whenCanBorrow", found.when_can_borrow), ("whenCanPreempt", found.when_can_preempt)):
        if value not in _OLD_STOPS:
            _check_optional(subject, f"{path}.{field}", value, allowed)
    preferences = (BORROWING_OVER_PREEMPTION, PREEMPTION_OVER_BORROWING)
    _check_optional(subject, f"{path}.preference", found.preference, preferences)
    # whenCanBorrow's default is to stop, so an absent one forbids a preference as well.
    tries_all = found.when_can_borrow == TRY_NEXT_FLAVOR and found.when_can_preempt in ("", TRY_NEXT_FLAVOR)
    if found.preference and not tries_all:
        expected = f"none, unless whenCanBorrow and whenCanPreempt are both {TRY_NEXT_FLAVOR}"
        subject.refuse(f"{path}.preference", expected=expected, found=show(found.preference))


def _check_preemption(subject: Subject, queue: ClusterQueue) -> None:
    found = queue.spec.preemption
    if found is None:
        return
    path = "spec.preemption"
    within = (NEVER, LOWER_PRIORITY, LOWER_OR_NEWER_EQUAL_PRIORITY)
    _check_optional(subject, f"{path}.withinClusterQueue", found.within_cluster_queue, within)
    _check_optional(subject, f"{path}.reclaimWithinCohort", found.reclaim_within_cohort, (NEVER, LOWER_PRIORITY, ANY))
    borrow = found.borrow_within_cohort
    if borrow is None:
        return
    _check_optional(subject, f"{path}.borrowWithinCohort.policy", borrow.policy, (NEVER, LOWER_PRIORITY))
    if (found.reclaim_within_cohort or NEVER) == NEVER and (borrow.policy or NEVER) != NEVER:
        expected = "Never, as reclaimWithinCohort is Never"
        subject.refuse(f"{path}.borrowWithinCohort.policy", expected=expected, found=show(borrow.policy))


def _check_optional(subject: Subject, path: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value:
        check_choice(subject, path, value, allowed)


def _check_cohort(subject: Subject, cohort: Cohort) -> None:
    _refuse_two_names(subject, ("parentName", cohort.spec.parent_name), ("parent", cohort.spec.parent))
    parent = cohort.spec.parent_name or cohort.spec.parent
    if parent == cohort.metadata.name and parent:
        subject.refuse("spec.parentName", expected="another cohort", found=show(parent))
    _check_groups(subject, cohort.spec.resource_groups, bool(parent), is_queue=False)
    _check_weight(subject, cohort.spec.fair_sharing.weight if cohort.spec.fair_sharing else None)


def _check_local_queue(subject: Subject, queue: LocalQueue) -> None:
    if not queue.spec.cluster_queue:
        subject.refuse("spec.clusterQueue", expected="a ClusterQueue's name", found="none")
    _check_optional(subject, "spec.stopPolicy", queue.spec.stop_policy, (STOP_NONE, HOLD, HOLD_AND_DRAIN))
    _check_weight(subject, queue.spec.fair_sharing.weight if queue.spec.fair_sharing else None)


def _check_flavor(subject: Subject, flavor: ResourceFlavor) -> None:
    check_taints(subject, "spec.nodeTaints", flavor.spec.node_taints)
    check_tolerations(subject, "spec.tolerations", flavor.spec.tolerations)


def _check_topology(subject: Subject, topology: Topology) -> None:
    labels = [level.node_label for level in topology.spec.levels]
    if not labels:
        subject.refuse("spec.levels", expected="at least one level", found="none")
    for index, label in enumerate(labels):
        if label in labels[:index]:
            subject.refuse(f"spec.levels[{index}].nodeLabel", expected="each label once", found=show(label))
        if label == HOSTNAME and index != len(labels) - 1:
            subject.refuse(
                f"spec.levels[{index}].nodeLabel", expected=f"{HOSTNAME} only as the last", found=show(label)
            )


def _check_admission_check(subject: Subject, check: AdmissionCheck) -> None:
    if not check.spec.controller_name:
        subject.refuse("spec.controllerName", expected="the controller that runs the check", found="none")
    parameters = check.spec.parameters
    for field, value in (("kind", parameters.kind), ("name", parameters.name)) if parameters else ():
        if not value:
            subject.refuse(f"spec.parameters.{field}", expected="a value", found="none")


QUEUEING_CHECKS: dict[type, Callable[[Subject, Any], None]] = {
    ClusterQueue: _check_cluster_queue,
    Cohort: _check_cohort,
    LocalQueue: _check_local_queue,
    ResourceFlavor: _check_flavor,
    Topology: _check_topology,
    Workload: check_workload,
    AdmissionCheck: _check_admission_check,
}
"""A WorkloadPriorityClass has nothing that could be wrong beyond its types and its name."""
