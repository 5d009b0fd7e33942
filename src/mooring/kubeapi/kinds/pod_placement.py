"""Checks of where a pod may go: tolerations, affinity, spreading."""

from collections.abc import Iterable

from mooring.kubeapi.kinds.field_errors import forbidden, invalid, not_supported, required
from mooring.kubeapi.kinds.metadata import label_value, qualified_name
from mooring.kubeapi.kinds.selectors import check_selector
from mooring.kubeapi.status import FieldError, Object

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def check_placement(spec: Object, path: str) -> list[FieldError]:
    """All that is wrong with what a spec says about nodes and about pods beside it."""
    found = _check_tolerations(spec.get("tolerations") or (), f"{path}.tolerations")
    if affinity := spec.get("affinity"):
        found += _check_node_affinity(affinity.get("nodeAffinity") or {}, f"{path}.affinity.nodeAffinity")
        for side in ("podAffinity", "podAntiAffinity"):
            found += _check_pod_affinity(affinity.get(side) or {}, f"{path}.affinity.{side}")
    return found + _check_spread(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")


def _check_pod_affinity(affinity: Object, path: str) -> list[FieldError]:
    found = []
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        found += _check_pod_term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        found += _check_weight(weighted, here)
        found += _check_pod_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")
    return found


def _check_weight(weighted: Object, path: str) -> list[FieldError]:
    weight = weighted.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _check_pod_term(term: Object, path: str) -> list[FieldError]:
    found = check_selector(term.get("labelSelector"), f"{path}.labelSelector")
    found += check_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    key = term.get("topologyKey", "")
    if term.get("labelSelector") is None:
        for field in ("matchLabelKeys", "mismatchLabelKeys"):
            if term.get(field):
                found.append(forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set"))
    if not key:
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    if wrong := qualified_name(key):
        found.append(invalid(f"{path}.topologyKey", key, wrong))
    return found


def _check_spread(constraints: list[Object], path: str) -> list[FieldError]:
    found = []
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        skew, key, policy = (constraint.get(name) for name in ("maxSkew", "topologyKey", "whenUnsatisfiable"))
        if (skew or 0) <= 0:
            found.append(invalid(f"{here}.maxSkew", skew or 0, "must be greater than zero"))
        if not key:
            found.append(required(f"{here}.topologyKey", "can not be empty"))
        if policy not in ("DoNotSchedule", "ScheduleAnyway"):
            allowed = ("DoNotSchedule", "ScheduleAnyway")
            found.append(not_supported(f"{here}.whenUnsatisfiable", policy or "", allowed))
        for other in constraints[index + 1 :]:
            if (other.get("topologyKey"), other.get("whenUnsatisfiable")) == (key, policy):
                name = "{topologyKey, whenUnsatisfiable}"
                found.append(FieldError("FieldValueDuplicate", f"{here}.{name}", "", "{" + f"{key}, {policy}" + "}"))
        if (domains := constraint.get("minDomains")) is not None:
            found += _check_domains(domains, policy, f"{here}.minDomains")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) not in (None, "Ignore", "Honor"):
                found.append(not_supported(f"{here}.{name}", constraint[name], ("Honor", "Ignore")))
        if constraint.get("matchLabelKeys") and constraint.get("labelSelector") is None:
            found.append(forbidden(f"{here}.matchLabelKeys", "must not be specified when labelSelector is not set"))
        found += check_selector(constraint.get("labelSelector"), f"{here}.labelSelector")
    return found


def _check_domains(domains: int, policy: str | None, path: str) -> list[FieldError]:
    found = []
    if domains <= 0:
        found.append(invalid(path, domains, "must be greater than zero"))
    if policy != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {policy}"
        found.append(invalid(path, domains, detail))
    return found


def _check_tolerations(tolerations: Iterable[Object], path: str) -> list[FieldError]:
    found = []
    for index, toleration in enumerate(tolerations):
        here, key, operator = f"{path}[{index}]", toleration.get("key", ""), toleration.get("operator") or "Equal"
        if key and (wrong := qualified_name(key)):
            found.append(invalid(f"{here}.key", key, wrong))
        if not key and operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            found.append(invalid(f"{here}.operator", operator, detail))
        if operator not in ("Equal", "Exists", "Lt", "Gt"):
            found.append(not_supported(f"{here}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
        elif operator == "Exists" and toleration.get("value"):
            detail = "value must be empty when `operator` is 'Exists'"
            found.append(invalid(f"{here}.operator", toleration["value"], detail))
        elif operator == "Equal" and (wrong := label_value(toleration.get("value", ""))):
            found.append(invalid(f"{here}.operator", toleration.get("value", ""), wrong))
        effect = toleration.get("effect")
        if effect and effect not in _EFFECTS:
            found.append(not_supported(f"{here}.effect", effect, _EFFECTS))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.append(invalid(f"{here}.effect", effect or "", detail))
    return found


def _check_node_affinity(affinity: Object, path: str) -> list[FieldError]:
    wanted = affinity.get(_REQUIRED)
    found: list[FieldError] = []
    if wanted is not None:
        here = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        if not wanted.get("nodeSelectorTerms"):
            found.append(required(here, "must have at least one node selector term"))
        for index, term in enumerate(wanted.get("nodeSelectorTerms") or ()):
            found += _check_expressions(term.get("matchExpressions") or (), f"{here}[{index}].matchExpressions")
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        here = f"{path}.{_PREFERRED}[{index}]"
        found += _check_weight(weighted, here)
        expressions = (weighted.get("preference") or {}).get("matchExpressions") or ()
        found += _check_expressions(expressions, f"{here}.preference.matchExpressions")
    return found


def _check_expressions(expressions: Iterable[Object], path: str) -> list[FieldError]:
    found = []
    for index, expression in enumerate(expressions):
        here, operator, values = f"{path}[{index}]", expression.get("operator", ""), expression.get("values") or ()
        if operator in ("In", "NotIn") and not values:
            found.append(required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist") and values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(forbidden(f"{here}.values", detail))
        elif operator in ("Gt", "Lt") and len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            found.append(required(f"{here}.values", detail))
        elif operator not in _OPERATORS:
            found.append(invalid(f"{here}.operator", operator, "not a valid selector operator"))
        if wrong := qualified_name(expression.get("key", "")):
            found.append(invalid(f"{here}.key", expression.get("key", ""), wrong))
    return found
