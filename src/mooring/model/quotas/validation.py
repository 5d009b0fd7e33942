"""Checks of ResourceQuotas and LimitRanges, like the API server's."""

from collections.abc import Sequence

from mooring.model.api.meta import Resources
from mooring.model.places import show
from mooring.model.quotas.amounts import Amount, Amounts
from mooring.model.quotas.limit_items import LimitItem, read_item
from mooring.model.quotas.objects import (
    CLAIM,
    CONTAINER,
    POD,
    CoreResourceQuota,
    LimitRange,
    LimitRangeItem,
    ScopedSelectorRequirement,
)
from mooring.model.quotas.resource_names import (
    COMPUTE,
    COUNTED,
    HUGE_PAGES,
    QUOTA_RESOURCES,
    REQUESTS,
    STORAGE,
    is_container_resource,
    is_overcommitted,
    is_qualified,
    is_quota_resource,
)
from mooring.model.quotas.scopes import (
    BEST_EFFORT,
    NOT_BEST_EFFORT,
    NOT_TERMINATING,
    PRIORITY_CLASS,
    SCOPES,
    TERMINATING,
    VOLUME_ATTRIBUTES_CLASS,
)
from mooring.model.validation.terms import Subject, check_choice, check_quantity
from mooring.model.values.quantity import NANO
from mooring.model.values.requests import PODS, is_extended
from mooring.model.values.selectors import LABEL_OPERATORS

CONFLICTS = ((BEST_EFFORT, NOT_BEST_EFFORT), (TERMINATING, NOT_TERMINATING))
LIMIT_TYPES = (POD, CONTAINER, CLAIM)

_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def check_resource_quota(subject: Subject, quota: CoreResourceQuota) -> None:
    """Refuse resources, amounts and scopes that the API server would refuse."""
    hard = quota.spec.hard or {}
    for name, text in hard.items():
        path = f"spec.hard.{name}"
        if not is_quota_resource(name):
            expected = "a resource that quotas know, such as requests.cpu, pods or requests.nvidia.com/gpu"
            subject.refuse(path, expected=expected, found=show(name))
        nanos = check_quantity(subject, path, text)
        if nanos % NANO and (name in COUNTED or is_extended(name)):
            subject.refuse(path, expected="a whole number", found=show(text))
    for index, scope in enumerate(quota.spec.scopes or ()):
        _check_scope(subject, f"spec.scopes[{index}]", scope, hard)
    _check_conflicts(subject, "spec.scopes", quota.spec.scopes or ())
    selector = quota.spec.scope_selector
    expressions = (selector.match_expressions if selector else None) or []
    path = "spec.scopeSelector.matchExpressions"
    for index, expression in enumerate(expressions):
        _check_expression(subject, f"{path}[{index}]", expression, hard)
    _check_conflicts(subject, path, [expression.scope_name for expression in expressions])


def _check_scope(subject: Subject, path: str, scope: str, hard: Resources) -> None:
    check_choice(subject, path, scope, SCOPES)
    for name in sorted(hard):
        is_standard = name in QUOTA_RESOURCES or name.startswith((HUGE_PAGES, REQUESTS + HUGE_PAGES))
        if is_standard and name not in _resources_in(scope):
            subject.refuse(path, expected=f"a scope for {name}, which spec.hard has", found=show(scope))


def _resources_in(scope: str) -> Sequence[str]:
    """The standard resources of which a scope can tell who uses them."""
    if scope == BEST_EFFORT:
        return (PODS,)
    if scope == VOLUME_ATTRIBUTES_CLASS:
        return ("persistentvolumeclaims", "requests.storage")
    return (PODS, *COMPUTE)


def _check_conflicts(subject: Subject, path: str, scopes: Sequence[str]) -> None:
    for one, other in CONFLICTS:
        if one in scopes and other in scopes:
            subject.refuse(path, expected=f"{one} or {other}", found="both")


def _check_expression(subject: Subject, path: str, expression: ScopedSelectorRequirement, hard: Resources) -> None:
    scope, operator, values = expression.scope_name, expression.operator, expression.values
    _check_scope(subject, f"{path}.scopeName", scope, hard)
    check_choice(subject, f"{path}.operator", operator, LABEL_OPERATORS)
    if operator != "Exists" and scope not in (PRIORITY_CLASS, VOLUME_ATTRIBUTES_CLASS):
        subject.refuse(f"{path}.operator", expected=f"Exists for {scope}", found=show(operator))
    if operator in ("In", "NotIn") and not values:
        subject.refuse(f"{path}.values", expected=f"at least one value for {operator}", found="none")
    if operator in ("Exists", "DoesNotExist") and values:
        subject.refuse(f"{path}.values", expected=f"no values for {operator}", found=str(len(values)))


def check_limit_range(subject: Subject, found: LimitRange) -> None:
    """Refuse bounds that contradict one another, as the API server does."""
    types: set[str] = set()
    for index, item in enumerate(found.spec.limits):
        path = f"spec.limits[{index}]"
        if "/" not in item.type or not is_qualified(item.type):
            check_choice(subject, f"{path}.type", item.type, LIMIT_TYPES)
        if item.type in types:
            expected = "a type that no other limit has"
            subject.refuse(f"{path}.type", expected=expected, found=show(item.type))
        types.add(item.type)
        _check_amounts(subject, path, item)
        _check_bounds(subject, path, read_item(item))


def _check_amounts(subject: Subject, path: str, item: LimitRangeItem) -> None:
    given = (item.max, item.min, item.default, item.default_request, item.max_limit_request_ratio)
    for field, amounts in zip(_FIELDS, given, strict=True):
        if amounts and item.type == POD and field.startswith("default"):
            subject.refuse(f"{path}.{field}", expected="no defaults for the type Pod", found=", ".join(amounts))
        for name, text in (amounts or {}).items():
            _check_name(subject, f"{path}.{field}.{name}", item.type, name)
            check_quantity(subject, f"{path}.{field}.{name}", text)
    if item.type == CLAIM and STORAGE not in (item.min or {}) and STORAGE not in (item.max or {}):
        subject.refuse(path, expected=f"min.{STORAGE} or max.{STORAGE} for the type {CLAIM}", found="neither")


def _check_name(subject: Subject, path: str, type_: str, name: str) -> None:
    if type_ in (POD, CONTAINER):
        if not is_container_resource(name):
            expected = "a resource of containers, such as cpu, memory or nvidia.com/gpu"
            subject.refuse(path, expected=expected, found=show(name))
    elif name != STORAGE and not is_quota_resource(name):
        subject.refuse(path, expected="a resource such as storage", found=show(name))


def _check_bounds(subject: Subject, path: str, item: LimitItem) -> None:
    """Compare what an item has for each resource, its defaults included."""
    limits, requests = item.default_limits, item.default_requests
    # Requests last: one that nobody wrote is the default limit, and what is wrong with it is wrong with that.
    _check_order(subject, f"{path}.min", item.min, f"{path}.max", item.max)
    _check_order(subject, f"{path}.min", item.min, f"{path}.default", limits)
    _check_order(subject, f"{path}.default", limits, f"{path}.max", item.max)
    _check_order(subject, f"{path}.min", item.min, f"{path}.defaultRequest", requests)
    _check_order(subject, f"{path}.defaultRequest", requests, f"{path}.max", item.max)
    _check_order(subject, f"{path}.defaultRequest", requests, f"{path}.default", limits)
    for name, ratio in item.ratio.items():
        _check_ratio(subject, f"{path}.maxLimitRequestRatio.{name}", ratio, item.min.get(name), item.max.get(name))
    for name, limit in limits.items():
        if name in requests and requests[name].nanos != limit.nanos and not is_overcommitted(name):
            expected = f"{limit}, the default limit, as {name} cannot be overcommitted"
            subject.refuse(f"{path}.defaultRequest.{name}", expected=expected, found=f'"{requests[name]}"')


def _check_order(subject: Subject, low_path: str, low: Amounts, high_path: str, high: Amounts) -> None:
    for name, amount in low.items():
        if name in high and amount.nanos > high[name].nanos:
            field = high_path.rpartition(".")[2]
            expected = f"at most {high[name]}, which is {field}.{name}"
            subject.refuse(f"{low_path}.{name}", expected=expected, found=f'"{amount}"')


def _check_ratio(subject: Subject, path: str, ratio: Amount, low: Amount | None, high: Amount | None) -> None:
    if ratio.nanos < NANO:
        subject.refuse(path, expected="a ratio of at least 1", found=f'"{ratio}"')
    if low is not None and high is not None and low.nanos and ratio.millis / 1000 > high.millis / low.millis:
        expected = f"a ratio of at most max/min = {high.millis / low.millis:f}"
        subject.refuse(path, expected=expected, found=f'"{ratio}"')
