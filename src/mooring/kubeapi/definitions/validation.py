"""Checks of custom objects by their schema, in the words of Kubernetes."""

import re
from collections.abc import Callable
from typing import Any

from mooring.kubeapi.definitions.rules import check_rules, has_rules
from mooring.kubeapi.definitions.structural import EMBEDDED, INT_OR_STRING
from mooring.kubeapi.kinds.field_errors import duplicate, invalid, not_supported, required
from mooring.kubeapi.status import FieldError, Object
from mooring.model.values.patterns import PatternError, linear_pattern

_BLOCKING = {
    "FieldValueRequired",
    "FieldValueTypeInvalid",
    "FieldValueNotSupported",
    "FieldValueTooLong",
    "FieldValueTooMany",
}
"""Mistakes that rules cannot be asked about: they rely on what the schema promises."""
_UNCHECKED = FieldError(
    "FieldValueInvalid",
    "<nil>",
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation",
)


def check_schema(value: Any, schema: Object, path: str, old: Any = None) -> list[FieldError]:
    """All that is wrong with a value; `old` is what it was, for rules that compare."""
    found = _check(value, schema, path)
    if not has_rules(schema):
        return found
    if any(error.type in _BLOCKING for error in found):
        return [*found, _UNCHECKED]
    return found + check_rules(value, schema, path, old)


def _check(value: Any, schema: Object, path: str) -> list[FieldError]:
    if value is None and schema.get("nullable"):
        return []
    if wrong := _check_type(value, schema, path):
        return [wrong]
    found: list[FieldError] = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(not_supported(path, value, (str(each) for each in schema["enum"])))
    match value:
        case str():
            found += _check_string(value, schema, path)
        case bool():
            pass
        case int() | float():
            found += _check_number(value, schema, path)
        case list():
            found += _check_list(value, schema, path)
        case dict():
            found += _check_object(value, schema, path)
    return found + _check_combinations(value, schema, path)


def _json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _check_type(value: Any, schema: Object, path: str) -> FieldError | None:
    found, wanted = _json_type(value), schema.get("type")
    if schema.get(INT_OR_STRING):
        is_right = found in ("integer", "string")
        wanted = "integer,string"
    else:
        is_right = wanted is None or found == wanted or (wanted == "number" and found == "integer")
    if is_right:
        return None
    name = path or "<nil>"
    return FieldError("FieldValueTypeInvalid", path, f'{name} in body must be of type {wanted}: "{found}"', found)


def _is_date_time(value: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", value) is not None


_FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _is_date_time,
    "date": lambda value: re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None,
    "uuid": lambda value: re.fullmatch(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}", value) is not None,
    "byte": lambda value: re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", value) is not None,
    "ipv4": lambda value: re.fullmatch(r"(\d{1,3}\.){3}\d{1,3}", value) is not None,
    "email": lambda value: "@" in value,
    "uri": lambda value: re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|/", value) is not None,
}


def _matches(pattern: str, value: str) -> bool:
    try:
        return linear_pattern(pattern).matches(value)
    except PatternError:
        return False


def _check_string(value: str, schema: Object, path: str) -> list[FieldError]:
    found = []
    if (most := schema.get("maxLength")) is not None and len(value) > most:
        found.append(FieldError("FieldValueTooLong", path, f"may not be more than {most} bytes", value))
    if (least := schema.get("minLength")) is not None and len(value) < least:
        found.append(invalid(path, value, f"{path} in body should be at least {least} chars long"))
    if (pattern := schema.get("pattern")) and not _matches(pattern, value):
        found.append(invalid(path, value, f"{path} in body should match '{pattern}'"))
    check = _FORMATS.get(schema.get("format", ""))
    if check is not None and not check(value):
        detail = f'{path} in body must be of type {schema["format"]}: "{value}"'
        found.append(FieldError("FieldValueTypeInvalid", path, detail, value))
    return found


def _check_number(value: float, schema: Object, path: str) -> list[FieldError]:
    found = []
    least, most, multiple = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if least is not None and (value <= least if schema.get("exclusiveMinimum") else value < least):
        words = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        found.append(invalid(path, value, f"{path} in body should be {words} {least}"))
    if most is not None and (value >= most if schema.get("exclusiveMaximum") else value > most):
        words = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        found.append(invalid(path, value, f"{path} in body should be {words} {most}"))
    if multiple and value % multiple:
        found.append(invalid(path, value, f"{path} in body should be a multiple of {multiple}"))
    if schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        found.append(invalid(path, value, f'{path} in body must be of type int32: "{value}"'))
    return found


def _check_list(value: list[Any], schema: Object, path: str) -> list[FieldError]:
    found = []
    if (most := schema.get("maxItems")) is not None and len(value) > most:
        detail = f"must have at most {most} items"
        found.append(FieldError("FieldValueTooMany", path, detail, len(value)))
    if (least := schema.get("minItems")) is not None and len(value) < least:
        found.append(invalid(path, len(value), f"{path} in body should have at least {least} items"))
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind in ("set", "map") or schema.get("uniqueItems"):
        seen: list[Any] = []
        for index, item in enumerate(value):
            name = {key: item.get(key) for key in keys} if kind == "map" and isinstance(item, dict) else item
            if name in seen:
                found.append(duplicate(f"{path}[{index}]", name))
            seen.append(name)
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            found += _check(item, items, f"{path}[{index}]")
    return found


def _check_object(value: Object, schema: Object, path: str) -> list[FieldError]:
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    found = [required(_join(path, name)) for name in schema.get("required") or () if name not in value]
    if schema.get(EMBEDDED):
        found += [
            required(_join(path, name), "must not be empty") for name in ("apiVersion", "kind") if not value.get(name)
        ]
    if (most := schema.get("maxProperties")) is not None and len(value) > most:
        found.append(FieldError("FieldValueTooMany", path, f"must have at most {most} items", len(value)))
    if (least := schema.get("minProperties")) is not None and len(value) < least:
        found.append(invalid(path, len(value), f"{path} in body should have at least {least} properties"))
    for name, inner in value.items():
        if name in properties:
            found += _check(inner, properties[name], _join(path, name))
        elif isinstance(more, dict):
            found += _check(inner, more, _join(path, name))
    return found


def _check_combinations(value: Any, schema: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for each in schema.get("allOf") or ():
        found += _check(value, each, path)
    if any_of := schema.get("anyOf"):
        results = [_check(value, each, path) for each in any_of]
        if all(results):
            found.append(invalid(path, value, f"{path} in body must validate at least one schema (anyOf)"))
            found += results[0]
    if one_of := schema.get("oneOf"):
        valid = sum(not _check(value, each, path) for each in one_of)
        if valid != 1:
            count = "Found none valid" if not valid else f"Found {valid} valid alternatives"
            found.append(invalid(path, value, f"{path} in body must validate one and only one schema (oneOf). {count}"))
    if (negated := schema.get("not")) is not None and not _check(value, negated, path):
        found.append(invalid(path, value, f"{path} in body must not validate the schema (not)"))
    return found


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
