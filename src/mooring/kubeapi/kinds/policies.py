"""What limits and orders pods: budgets, priorities, quotas, limits, runtime classes; and leases, roles and events."""

from typing import ClassVar

from mooring.kubeapi.kinds.field_errors import (
    IMMUTABLE,
    at_least,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from mooring.kubeapi.kinds.metadata import dns_label, path_segment
from mooring.kubeapi.kinds.selectors import check_selector
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.schemas.notation import type_of_kind
from mooring.kubeapi.status import FieldError, Object
from mooring.model.priorities import HIGHEST_USER_PRIORITY, SYSTEM_CLASSES
from mooring.model.quotas.resource_names import is_quota_resource
from mooring.model.values.quantity import parse_quantity

PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")


class PodDisruptionBudgets(Standard):
    allows_unconditional_update = False

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            found.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for name in ("minAvailable", "maxUnavailable"):
            value = spec.get(name)
            if isinstance(value, int):
                found += at_least(f"spec.{name}", value)
            elif isinstance(value, str) and not (value.endswith("%") and value[:-1].isdigit()):
                words = (
                    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                )
                found.append(invalid(f"spec.{name}", value, f"{words}regex used for validation is '[0-9]+%')"))
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy not in (None, "IfHealthyBudget", "AlwaysAllow"):
            allowed = ("AlwaysAllow", "IfHealthyBudget")
            found.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, allowed))
        return found + check_selector(spec.get("selector"))


class PriorityClasses(Standard):
    def is_new_generation(self, new: Object, old: Object) -> bool:
        return False

    def check(self, obj: Object) -> list[FieldError]:
        name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
        found = []
        if name.startswith("system-"):
            if SYSTEM_CLASSES.get(name) != value:
                detail = "priority class names with 'system-' prefix are reserved for system use only"
                known = f"{name} is not a known system priority class"
                found.append(forbidden("metadata.name", f"{detail}. error: {known}"))
        elif value > HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            found.append(forbidden("value", detail))
        if (policy := obj.get("preemptionPolicy")) not in PREEMPTION_POLICIES:
            found.append(not_supported("preemptionPolicy", policy, PREEMPTION_POLICIES))
        return found

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        found = immutable("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))
        if new.get("value", 0) != old.get("value", 0):
            found.insert(0, forbidden("value", "may not be changed in an update."))
        return found


class ResourceQuotas(Standard):
    counts_generation = False
    is_checked_by_model = True
    returns_deleted = True

    def check(self, obj: Object) -> list[FieldError]:
        found = []
        for name, text in ((obj.get("spec") or {}).get("hard") or {}).items():
            here = f"spec.hard[{name}]"
            if "/" not in name and not is_quota_resource(name):
                found.append(invalid(here, name, "must be a standard resource type or fully qualified"))
                found.append(invalid(here, name, "must be a standard resource for quota"))
            if parse_quantity(text) < 0:
                found.append(invalid(here, text, "must be greater than or equal to 0"))
        return found


class LimitRanges(Standard):
    counts_generation = False
    is_checked_by_model = True
    allows_create_on_update = True

    def check(self, obj: Object) -> list[FieldError]:
        found = []
        for index, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
            names = {name for part in _LIMITS for name in item.get(part) or ()}
            for name in sorted(names):
                found += _check_limit(item, name, f"spec.limits[{index}]")
        return found


_LIMITS = ("min", "max", "default", "defaultRequest")
_ORDERS = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)
"""What may not be more than what; whose field is at fault, whose value is shown, and the words for it."""


def _check_limit(item: Object, name: str, path: str) -> list[FieldError]:
    found = []
    for less, more, fault, shown, words in _ORDERS:
        low, high = (item.get(less) or {}).get(name), (item.get(more) or {}).get(name)
        if low is not None and high is not None and parse_quantity(low) > parse_quantity(high):
            value = (item.get(shown) or {}).get(name)
            found.append(invalid(f"{path}.{fault}[{name}]", value, words.format(low, high)))
    return found


class RuntimeClasses(Standard):
    counts_generation = False
    allows_create_on_update = True
    allows_unconditional_update = False
    immutable_fields: ClassVar[tuple[str, ...]] = ("handler",)

    def check(self, obj: Object) -> list[FieldError]:
        handler = obj.get("handler", "")
        wrong = dns_label(handler)
        return [invalid("handler", handler, wrong)] if wrong else []


class Leases(Standard):
    counts_generation = False
    allows_create_on_update = True
    allows_unconditional_update = False

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        seconds = spec.get("leaseDurationSeconds")
        if seconds is not None and seconds <= 0:
            return [invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")]
        return at_least("spec.leaseTransitions", spec.get("leaseTransitions"))


class Roles(Standard):
    counts_generation = False
    allows_create_on_update = True

    def check_name(self, name: str) -> str:
        return path_segment(name)

    def check(self, obj: Object) -> list[FieldError]:
        found = []
        for index, rule in enumerate(obj.get("rules") or ()):
            here = f"rules[{index}]"
            if not rule.get("verbs"):
                found.append(required(f"{here}.verbs", "verbs must contain at least one value"))
            if paths := rule.get("nonResourceURLs"):
                if self.resource.namespaced:
                    detail = "namespaced rules cannot apply to non-resource URLs"
                    found.append(invalid(f"{here}.nonResourceURLs", paths, detail))
                if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
                    detail = "rules cannot apply to both regular resources and non-resource URLs"
                    found.append(invalid(f"{here}.nonResourceURLs", paths, detail))
                continue
            if not rule.get("apiGroups"):
                found.append(required(f"{here}.apiGroups", "resource rules must supply at least one api group"))
            if not rule.get("resources"):
                found.append(required(f"{here}.resources", "resource rules must supply at least one resource"))
        if (aggregation := obj.get("aggregationRule")) is not None:
            selectors, field = aggregation.get("clusterRoleSelectors") or (), "aggregationRule.clusterRoleSelectors"
            if not selectors:
                found.append(required(field, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
            for index, selector in enumerate(selectors):
                found += check_selector(selector, f"{field}[{index}]")
        return found


class RoleBindings(Roles):
    def check(self, obj: Object) -> list[FieldError]:
        role = obj.get("roleRef") or {}
        kinds = ("ClusterRole",) if obj.get("kind") == "ClusterRoleBinding" else ("Role", "ClusterRole")
        found = [] if role.get("name") else [required("roleRef.name")]
        if role.get("kind") not in kinds:
            found.append(not_supported("roleRef.kind", role.get("kind"), kinds))
        for index, subject in enumerate(obj.get("subjects") or ()):
            if not subject.get("name"):
                found.append(required(f"subjects[{index}].name"))
            if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
                found.append(required(f"subjects[{index}].namespace"))
        return found

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        if new.get("roleRef") != old.get("roleRef"):
            return [invalid("roleRef", new.get("roleRef"), IMMUTABLE)]
        return []


class Events(Standard):
    counts_generation = False
    allows_create_on_update = True
    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {
        **{
            f"involvedObject.{name}": ("involvedObject", name)
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        **{
            f"regarding.{name}": ("involvedObject", name)
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reason": ("reason",),
        "reportingComponent": ("reportingComponent",),
        "reportingController": ("reportingComponent",),
        "source": ("source", "component"),
        "type": ("type",),
    }
    fields_instead: ClassVar[dict[str, tuple[str, ...]]] = {"source": ("reportingComponent",)}

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource)
        self._type = type_of_kind("v1", "Event")  # those of events.k8s.io too are stored in the core group's words

    def check(self, obj: Object) -> list[FieldError]:
        namespace, regarding = obj["metadata"].get("namespace", ""), obj.get("involvedObject") or {}
        found = regarding.get("namespace", "")
        if found != namespace and not (not found and namespace in ("default", "kube-system", "")):
            return [invalid("involvedObject.namespace", found, "does not match event.namespace")]
        return []


class Plain(Standard):
    """Kinds that are only stored."""

    counts_generation = False
