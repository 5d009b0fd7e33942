"""What is wrong with a field, in the words of Kubernetes."""

import difflib
import json
from collections.abc import Iterable
from typing import Any

from mooring.kubeapi.status import FieldError, Object

IMMUTABLE = "field is immutable"


def required(field: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", field, detail, value)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, detail)


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", field, "", value)


def not_found(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", field, "", value)


def not_supported(field: str, value: Any, allowed: Iterable[str]) -> FieldError:
    shown = ", ".join(f'"{each}"' for each in allowed)
    return FieldError("FieldValueNotSupported", field, f"supported values: {shown}", value)


def immutable(field: str, new: Any, old: Any) -> list[FieldError]:
    """An error if a field that is set for good was changed; nothing said and zero are the same."""
    return [] if (new or None) == (old or None) else [invalid(field, new, IMMUTABLE)]


def one_of(field: str, value: Any, allowed: Iterable[str]) -> list[FieldError]:
    if not value:
        return [required(field)]
    return [] if value in allowed else [not_supported(field, value, allowed)]


def at_least(field: str, value: Any, lowest: int = 0) -> list[FieldError]:
    if value is None or value >= lowest:
        return []
    return [invalid(field, value, f"must be greater than or equal to {lowest}")]


def differences(old: Object, new: Object) -> str:
    """What changed between two objects, line by line, as `diff -u` shows it."""
    before, after = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (old, new))
    return "\n".join(list(difflib.unified_diff(before, after, lineterm=""))[2:])
