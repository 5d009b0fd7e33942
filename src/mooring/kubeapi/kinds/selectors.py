"""Label selectors as objects: what is wrong with one, and what it selects."""

from mooring.kubeapi.kinds.field_errors import forbidden, invalid, required
from mooring.kubeapi.kinds.metadata import check_labels, qualified_name
from mooring.kubeapi.status import FieldError, Object
from mooring.model.values.selectors import LABEL_OPERATORS, Requirement


def check_selector(selector: Object | None, path: str = "spec.selector") -> list[FieldError]:
    if selector is None:
        return []
    found = check_labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        here, operator, values = (
            f"{path}.matchExpressions[{index}]",
            expression.get("operator"),
            expression.get("values"),
        )
        if operator in ("In", "NotIn") and not values:
            found.append(required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist") and values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(forbidden(f"{here}.values", detail))
        elif operator not in LABEL_OPERATORS:
            found.append(invalid(f"{here}.operator", operator or "", "not a valid selector operator"))
        if wrong := qualified_name(expression.get("key", "")):
            found.append(invalid(f"{here}.key", expression.get("key", ""), wrong))
    return found


def is_selected(selector: Object, labels: dict[str, str]) -> bool:
    equal = [Requirement(key, "In", frozenset((value,))) for key, value in (selector.get("matchLabels") or {}).items()]
    more = [
        Requirement(each.get("key", ""), each.get("operator", ""), frozenset(each.get("values") or ()))
        for each in selector.get("matchExpressions") or ()
    ]
    return all(requirement.matches(labels) for requirement in (*equal, *more))
