"""What can be wrong with Karpenter's kinds, beyond their types and names."""

from mooring.model.api.karpenter import (
    BALANCED,
    DRIFTED,
    EMPTY,
    NEVER,
    UNDERUTILIZED,
    WHEN_EMPTY,
    WHEN_EMPTY_OR_UNDERUTILIZED,
    WHEN_UNDERUTILIZED,
    NodeClaim,
    NodePool,
    NodeRequirement,
)
from mooring.model.capacity.budgets import scaled_count
from mooring.model.capacity.cron import is_open
from mooring.model.capacity.requirements import collect, make_requirement
from mooring.model.places import show
from mooring.model.validation.terms import Subject, check_choice, check_resources, check_taints
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration
from mooring.model.values.selectors import parse_int64

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
POLICIES = (WHEN_EMPTY_OR_UNDERUTILIZED, WHEN_EMPTY, BALANCED)
REASONS = (UNDERUTILIZED, EMPTY, DRIFTED)
MOST_MIN_VALUES = 50
HEAVIEST = 100


def check_node_pool(subject: Subject, pool: NodePool) -> None:
    spec = pool.spec.template.spec
    check_requirements(subject, "spec.template.spec.requirements", spec.requirements)
    check_taints(subject, "spec.template.spec.taints", spec.taints)
    check_taints(subject, "spec.template.spec.startupTaints", spec.startup_taints)
    _check_duration(subject, "spec.template.spec.expireAfter", spec.expire_after)
    check_resources(subject, "spec.limits", pool.spec.limits)
    if not 0 <= pool.spec.weight <= HEAVIEST:
        subject.refuse("spec.weight", expected=f"a number from 1 to {HEAVIEST}", found=show(pool.spec.weight))
    disruption = pool.spec.disruption
    if disruption.consolidation_policy != WHEN_UNDERUTILIZED:  # what v1beta1 calls the first of them
        check_choice(subject, "spec.disruption.consolidationPolicy", disruption.consolidation_policy, POLICIES)
    _check_duration(subject, "spec.disruption.consolidateAfter", disruption.consolidate_after)
    for index, budget in enumerate(disruption.budgets):
        path = f"spec.disruption.budgets[{index}]"
        if scaled_count(budget.nodes, 1) is None:
            subject.refuse(f"{path}.nodes", expected="a count or a percentage such as 10%", found=show(budget.nodes))
        for reason in budget.reasons or ():
            check_choice(subject, f"{path}.reasons", reason, REASONS)
        if (budget.schedule is None) != (budget.duration is None):
            found = "schedule alone" if budget.duration is None else "duration alone"
            subject.refuse(path, expected="schedule and duration together", found=found)
        if budget.duration is not None and parse_duration(budget.duration) is None:
            subject.refuse(f"{path}.duration", expected=EXPECTED_DURATION, found=show(budget.duration))
        if budget.schedule is not None and is_open(budget.schedule, budget.duration or "0s", 0.0) is None:
            subject.refuse(
                f"{path}.schedule", expected="a cron schedule such as 0 9 * * *", found=show(budget.schedule)
            )


def check_node_claim(subject: Subject, claim: NodeClaim) -> None:
    check_requirements(subject, "spec.requirements", claim.spec.requirements)
    check_taints(subject, "spec.taints", claim.spec.taints)
    check_taints(subject, "spec.startupTaints", claim.spec.startup_taints)
    check_resources(subject, "status.capacity", claim.status.capacity)
    check_resources(subject, "status.allocatable", claim.status.allocatable)


def check_requirements(subject: Subject, path: str, requirements: list[NodeRequirement]) -> None:
    for index, each in enumerate(requirements):
        where = f"{path}[{index}]"
        check_choice(subject, f"{where}.operator", each.operator, OPERATORS)
        values = each.values or []
        if each.operator in ("In", "NotIn") and not values:
            subject.refuse(f"{where}.values", expected="at least one value", found="none")
        if each.operator in ("Gt", "Lt", "Gte", "Lte"):
            bound = parse_int64(values[0]) if len(values) == 1 else None
            if bound is None or bound < 0:
                subject.refuse(f"{where}.values", expected="one number of at least 0", found=show(", ".join(values)))
        if each.min_values is not None and not 1 <= each.min_values <= MOST_MIN_VALUES:
            expected = f"a number from 1 to {MOST_MIN_VALUES}"
            subject.refuse(f"{where}.minValues", expected=expected, found=show(each.min_values))
        if each.operator == "In" and each.min_values is not None and len(set(values)) < each.min_values:
            expected = f"at least {each.min_values} values, as minValues says"
            subject.refuse(f"{where}.values", expected=expected, found=str(len(set(values))))
    _check_contradictions(subject, path, requirements)


def _check_contradictions(subject: Subject, path: str, requirements: list[NodeRequirement]) -> None:
    """Refuse requirements on one key that no value meets: such a pool never has a node."""
    made = [(each.key, make_requirement(each.operator, each.values or ())) for each in requirements]
    for key, left in collect(made).items():
        on_key = [requirement for name, requirement in made if name == key]
        if len(on_key) > 1 and left.operator == "DoesNotExist" and not all(one.may_be_absent for one in on_key):
            subject.refuse(path, expected=f"requirements on {key} that some value meets", found="none does")


def _check_duration(subject: Subject, path: str, text: str) -> None:
    if text != NEVER and parse_duration(text) is None:
        subject.refuse(path, expected=f"{EXPECTED_DURATION}, or {NEVER}", found=show(text))
