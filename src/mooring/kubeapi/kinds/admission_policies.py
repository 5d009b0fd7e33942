"""ValidatingAdmissionPolicies and their bindings: rules that the server itself reads before every write."""

from typing import Any

from mooring.kubeapi.kinds.field_errors import invalid, not_supported, required
from mooring.kubeapi.kinds.selectors import check_selector
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.status import FieldError, Object
from mooring.model.cel.program import ANY, compile_expression
from mooring.model.cel.values import CelCompileError

VARIABLES = ("object", "oldObject", "request", "params", "namespaceObject", "variables")
"""What an expression of a policy may name."""
MOST_EXPRESSIONS, MOST_CONDITIONS = 64, 64
_RULE_FIELDS = ("apiGroups", "apiVersions", "operations", "resources")
_ACTIONS = ("Audit", "Deny", "Warn")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")


class ValidatingAdmissionPolicies(Standard):
    def check(self, obj: Object) -> list[FieldError]:
        return check_policy(obj)


class ValidatingAdmissionPolicyBindings(Standard):
    def check(self, obj: Object) -> list[FieldError]:
        return check_binding(obj)


def check_policy(obj: Object) -> list[FieldError]:
    """What is wrong with a policy."""
    spec = obj.get("spec") or {}
    found = []
    if (failure := spec.get("failurePolicy") or "Fail") not in ("Fail", "Ignore"):
        found.append(not_supported("spec.failurePolicy", failure, ("Fail", "Ignore")))
    if (constraints := spec.get("matchConstraints")) is None:
        found.append(required("spec.matchConstraints"))
    else:
        if not constraints.get("resourceRules"):
            found.append(required("spec.matchConstraints.resourceRules"))
        found += _check_match(constraints, "spec.matchConstraints")
    if (kind := spec.get("paramKind")) is not None:
        found += [required(f"spec.paramKind.{name}") for name in ("apiVersion", "kind") if not kind.get(name)]
    validations = spec.get("validations") or []
    if not validations and not spec.get("auditAnnotations"):
        found.append(required("spec.validations", "validations or auditAnnotations must be specified"))
    named = (("variables", MOST_EXPRESSIONS), ("validations", MOST_EXPRESSIONS), ("matchConditions", MOST_CONDITIONS))
    for field, most in named:
        items = spec.get(field) or []
        if len(items) > most:
            found.append(
                FieldError("FieldValueTooMany", f"spec.{field}", f"must have at most {most} items", len(items))
            )
            continue
        for index, item in enumerate(items):
            found += _check_expression(item, f"spec.{field}[{index}]", needs_name=field != "validations")
    return found


def _check_expression(item: Object, path: str, *, needs_name: bool) -> list[FieldError]:
    found = [required(f"{path}.name")] if needs_name and not item.get("name") else []
    if not (item.get("expression") or "").strip():
        return [*found, required(f"{path}.expression", "expression is not specified")]
    for field in ("expression", "messageExpression"):
        if text := item.get(field):
            try:
                compile_expression(text, dict.fromkeys(VARIABLES, ANY))
            except CelCompileError as error:
                found.append(invalid(f"{path}.{field}", text, f"compilation failed: {error}"))
    if (reason := item.get("reason") or "Invalid") not in _REASONS:
        found.append(not_supported(f"{path}.reason", reason, _REASONS))
    return found


def check_binding(obj: Object) -> list[FieldError]:
    """What is wrong with a binding."""
    spec = obj.get("spec") or {}
    found = [] if spec.get("policyName") else [required("spec.policyName")]
    actions = spec.get("validationActions") or []
    if not actions:
        found.append(required("spec.validationActions", "at least one validation action is required"))
    found += [
        not_supported(f"spec.validationActions[{index}]", action, _ACTIONS)
        for index, action in enumerate(actions)
        if action not in _ACTIONS
    ]
    if "Deny" in actions and "Warn" in actions:
        found.append(invalid("spec.validationActions", actions, "must not contain both Deny and Warn"))
    if (reference := spec.get("paramRef")) is not None:
        if bool(reference.get("name")) == bool(reference.get("selector") is not None):
            found.append(required("spec.paramRef.name", "one of name or selector must be specified"))
        found += check_selector(reference.get("selector"), "spec.paramRef.selector")
        action = reference.get("parameterNotFoundAction")
        if not action:
            found.append(required("spec.paramRef.parameterNotFoundAction"))
        elif action not in ("Allow", "Deny"):
            found.append(not_supported("spec.paramRef.parameterNotFoundAction", action, ("Allow", "Deny")))
    return found + _check_match(spec.get("matchResources") or {}, "spec.matchResources")


def _check_match(constraints: Object, path: str) -> list[FieldError]:
    found = []
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(constraints.get(field) or ()):
            here = f"{path}.{field}[{index}]"
            found += [required(f"{here}.{name}") for name in _RULE_FIELDS if not rule.get(name)]
    for field in ("namespaceSelector", "objectSelector"):
        selector: Any = constraints.get(field)
        found += check_selector(selector, f"{path}.{field}")
    return found
