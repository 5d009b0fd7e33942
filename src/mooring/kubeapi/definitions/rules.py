"""CEL rules of a schema (x-kubernetes-validations)."""

from functools import lru_cache
from typing import Any

from mooring.kubeapi.kinds.field_errors import invalid
from mooring.kubeapi.status import OMITTED, FieldError, Object
from mooring.model.cel.program import ANY, Budget, Program, compile_expression
from mooring.model.cel.values import CelCompileError, CelEvaluationError
from mooring.model.values.patterns import PatternError, linear_pattern

RULES = "x-kubernetes-validations"
_REASONS = {"FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"}


@lru_cache(maxsize=4096)
def compile_rule(text: str) -> Program:
    """A rule over `self` and `oldSelf`; raises CelCompileError."""
    return compile_expression(text, {"self": ANY, "oldSelf": ANY})


def wrong_rules(schema: Object, path: str) -> list[FieldError]:
    """The rules and patterns of a schema that cannot be compiled."""
    found = []
    try:
        linear_pattern(schema.get("pattern") or "")
    except PatternError as error:
        detail = f"must be a valid regular expression, but isn't: {error}"
        found.append(invalid(f"{path}.pattern", schema["pattern"], detail))
    for index, rule in enumerate(schema.get(RULES) or ()):
        try:
            compile_rule(rule.get("rule", ""))
        except CelCompileError as error:
            detail = f"compilation failed: ERROR: <input>: {error}"
            found.append(invalid(f"{path}.{RULES}[{index}].rule", rule.get("rule", ""), detail))
    for name, inner in (schema.get("properties") or {}).items():
        found += wrong_rules(inner, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found += wrong_rules(schema[name], f"{path}.{name}")
    return found


def has_rules(schema: Object) -> bool:
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return RULES in schema or any(has_rules(part) for part in parts if isinstance(part, dict))


def check_rules(value: Any, schema: Object, path: str, old: Any = None) -> list[FieldError]:
    """What the rules of a schema and of its parts say of a value; rules that compare need a value before. All rules of
    an object have one budget, as in Kubernetes."""
    return _check_rules(value, schema, path, old, Budget())


def _check_rules(value: Any, schema: Object, path: str, old: Any, budget: Budget) -> list[FieldError]:
    found = []
    for rule in schema.get(RULES) or ():
        if value is not None and (error := _check_rule(value, rule, path, old, budget)) is not None:
            found.append(error)
    if isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, inner in value.items():
            part = properties.get(name) or (more if isinstance(more, dict) else None)
            before = old.get(name) if isinstance(old, dict) else None
            if part is not None:
                found += _check_rules(inner, part, f"{path}.{name}" if path else name, before, budget)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        for index, item in enumerate(value):
            before = _same_item(item, old, keys)
            found += _check_rules(item, schema["items"], f"{path}[{index}]", before, budget)
    return found


def _same_item(item: Any, old: Any, keys: Any) -> Any:
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return None
    return next((each for each in old if all(each.get(key) == item.get(key) for key in keys)), None)


def _check_rule(value: Any, rule: Object, path: str, old: Any, budget: Budget) -> FieldError | None:
    text = rule.get("rule", "")
    if "oldSelf" in text and old is None and not rule.get("optionalOldSelf"):
        return None
    try:
        program = compile_rule(text)
        if program.evaluate({"self": value, "oldSelf": old}, budget=budget) is True:
            return None
        message = _message(rule, value, old, budget) or f"failed rule: {text}"
    except (CelCompileError, CelEvaluationError) as error:
        message = f"rule evaluation error: {error}: {text}"
    where = f"{path}{rule.get('fieldPath', '')}".lstrip(".")
    reason = rule.get("reason", "FieldValueInvalid")
    shown = value if not isinstance(value, dict | list) else OMITTED
    return FieldError(reason if reason in _REASONS else "FieldValueInvalid", where, message, shown)


def _message(rule: Object, value: Any, old: Any, budget: Budget) -> str:
    if text := rule.get("messageExpression"):
        try:
            found = compile_rule(text).evaluate({"self": value, "oldSelf": old}, budget=budget)
        except (CelCompileError, CelEvaluationError):
            found = None
        if isinstance(found, str) and found.strip():
            return found
    return str(rule.get("message", ""))
