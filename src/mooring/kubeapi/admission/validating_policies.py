"""ValidatingAdmissionPolicies: rules in CEL about what may be written, and their bindings."""

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from mooring.kubeapi.api import Api
from mooring.kubeapi.kinds.admission_policies import VARIABLES, check_binding, check_policy
from mooring.kubeapi.requests import CREATE, DELETE, Request
from mooring.kubeapi.selectors import selects
from mooring.kubeapi.status import ApiError, FieldError, Object, forbidden
from mooring.kubeapi.store.records import Event
from mooring.model.cel.program import ANY, Budget, Program, compile_expression
from mooring.model.cel.values import CelCompileError, CelEvaluationError

log = logging.getLogger(__name__)
GROUP = "admissionregistration.k8s.io"
POLICIES, BINDINGS = f"validatingadmissionpolicies.{GROUP}", f"validatingadmissionpolicybindings.{GROUP}"
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}


class Denial(NamedTuple):
    message: str
    reason: str = "Invalid"


@lru_cache(maxsize=4096)
def _compile(expression: str) -> Program:
    return compile_expression(expression, dict.fromkeys(VARIABLES, ANY))


class ValidatingPolicies:
    """Refuses what a policy that is bound does not allow, or warns of it, as the binding says."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._bound: list[tuple[Object, list[Object]]] = []
        self._is_stale = True
        for resource in (POLICIES, BINDINGS):
            api.subscribe(resource, self._changed)

    def _changed(self, event: Event) -> None:
        self._is_stale = True

    def validate(self, request: Request) -> None:
        if request.resource.group == GROUP:
            return
        if self._is_stale:
            self._read()
        if not self._bound:
            return
        namespace = self._api.find("namespaces", None, request.namespace) if request.namespace else None
        for policy, bindings in self._bound:
            if not _matches(policy["spec"].get("matchConstraints") or {}, request, namespace):
                continue
            for binding in bindings:
                if _matches(binding["spec"].get("matchResources") or {}, request, namespace):
                    self._apply(policy, binding, request, namespace)

    def _read(self) -> None:
        by_policy: dict[str, list[Object]] = {}
        for binding in self._usable(BINDINGS, check_binding):
            by_policy.setdefault(binding["spec"]["policyName"], []).append(binding)
        policies = (
            (policy, by_policy.get(policy["metadata"]["name"])) for policy in self._usable(POLICIES, check_policy)
        )
        self._bound = [(policy, bindings) for policy, bindings in policies if bindings]
        self._is_stale = False

    def _usable(self, resource: str, check: Callable[[Object], list[FieldError]]) -> Iterator[Object]:
        """The objects that can be used. Others may be in a file that an older version wrote: they are named in the log
        and refuse nothing."""
        for obj in self._api.list(resource):
            if errors := check(obj):
                log.warning("%s %s is not used: %s", obj["kind"], obj["metadata"]["name"], errors[0])
            else:
                yield obj

    def _apply(self, policy: Object, binding: Object, request: Request, namespace: Object | None) -> None:
        about = f"ValidatingAdmissionPolicy '{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
        actions = binding["spec"].get("validationActions") or ()
        for params in self._params(policy, binding, request):
            for denial in _denials(policy["spec"], _facts(request, namespace, params)):
                if "Deny" in actions:
                    raise _refusal(request, f"{about} denied request: {denial.message}", denial.reason)
                if "Warn" in actions:
                    request.warnings.append(f"Validation failed for {about}: {denial.message}")

    def _params(self, policy: Object, binding: Object, request: Request) -> list[Object | None]:
        """What the policy is about in this binding: one nothing, where it takes no parameters."""
        kind, reference = policy["spec"].get("paramKind"), binding["spec"].get("paramRef")
        if not kind or not reference:
            return [None]
        try:
            resource = self._api.registry.of_kind(kind["apiVersion"], kind["kind"])
        except ApiError as error:
            return self._without_params(policy, request, str(error))
        namespace = reference.get("namespace") or request.namespace
        if name := reference.get("name"):
            one = self._api.find(resource, namespace, name)
            found = [one] if one is not None else []
        else:
            listed = self._api.list(resource, namespace if resource.namespaced else None)
            found = [
                each for each in listed if selects(reference.get("selector"), each["metadata"].get("labels") or {})
            ]
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            why = "no params found for policy binding with `Deny` parameterNotFoundAction"
            return self._without_params(policy, request, why)
        return list(found)

    def _without_params(self, policy: Object, request: Request, why: str) -> list[Object | None]:
        if policy["spec"].get("failurePolicy", "Fail") == "Fail":
            about = f"ValidatingAdmissionPolicy '{policy['metadata']['name']}'"
            raise _refusal(request, f"{about} denied request: failed to configure binding: {why}")
        return []


def _refusal(request: Request, message: str, reason: str = "Invalid") -> ApiError:
    refused = forbidden(request.resource.group, request.resource.plural, request.name, message)
    return ApiError(
        _CODES.get(reason, 422), reason, refused.message, {**(refused.details or {}), "causes": [{"message": message}]}
    )


# What a policy is about


def _matches(constraints: Object, request: Request, namespace: Object | None) -> bool:
    rules = constraints.get("resourceRules")
    if rules and not any(_rule_matches(rule, request) for rule in rules):
        return False
    if any(_rule_matches(rule, request) for rule in constraints.get("excludeResourceRules") or ()):
        return False
    if selector := constraints.get("namespaceSelector"):
        of = request.object if request.resource.key == "namespaces" else namespace
        if of is not None and not selects(selector, of["metadata"].get("labels") or {}):
            return False
    if selector := constraints.get("objectSelector"):
        states = [each for each in (request.object, request.old) if each is not None]
        return any(selects(selector, (each.get("metadata") or {}).get("labels") or {}) for each in states)
    return True


def _rule_matches(rule: Object, request: Request) -> bool:
    resource = request.resource
    scope = "Namespaced" if resource.namespaced else "Cluster"
    return (
        _has(rule.get("apiGroups"), resource.group)
        and any(_has(rule.get("apiVersions"), version) for version in resource.versions)
        and _has(rule.get("operations"), request.operation)
        and rule.get("scope", "*") in ("*", scope)
        and (not rule.get("resourceNames") or request.name in rule["resourceNames"])
        and any(_names(each, resource.plural, request.subresource) for each in rule.get("resources") or ())
    )


def _has(words: list[str] | None, word: str) -> bool:
    return "*" in (words or ()) or word in (words or ())


def _names(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, part = pattern.partition("/")
    return resource in ("*", plural) and part in ("*", subresource)


# What it says


def _facts(request: Request, namespace: Object | None, params: Object | None) -> dict[str, Any]:
    """The variables of expressions."""
    resource, user = request.resource, request.user
    group_version = {"group": resource.group, "version": resource.storage_version}
    user_info = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
    asked = {
        "kind": {**group_version, "kind": resource.kind},
        "resource": {**group_version, "resource": resource.plural},
        "subResource": request.subresource,
        "name": request.name,
        "namespace": request.namespace,
        "operation": request.operation,
        "userInfo": user_info,
        "dryRun": request.dry_run,
    }
    return {
        "object": None if request.operation == DELETE else request.object,
        "oldObject": None if request.operation == CREATE else request.old,
        "request": asked,
        "params": params,
        "namespaceObject": namespace,
        "variables": {},
    }


def _denials(spec: Object, facts: dict[str, Any]) -> Iterator[Denial]:
    """What is wrong with a request by the rules of a policy; rules that fail count as its `failurePolicy` says."""
    fails = spec.get("failurePolicy", "Fail") == "Fail"
    budget = Budget()
    errors = []
    for condition in spec.get("matchConditions") or ():
        try:
            if _value(condition["expression"], facts, budget) is False:
                return
        except (CelCompileError, CelEvaluationError) as error:
            errors.append(Denial(f"match condition '{condition['name']}' failed: {error}"))
    if errors:
        yield from errors[:1] if fails else ()
        return
    for variable in spec.get("variables") or ():
        try:
            facts["variables"][variable["name"]] = _value(variable["expression"], facts, budget)
        except (CelCompileError, CelEvaluationError):
            continue  # who uses it finds it missing
    for validation in spec.get("validations") or ():
        try:
            if _value(validation["expression"], facts, budget) is not True:
                yield Denial(_message(validation, facts, budget), validation.get("reason") or "Invalid")
        except (CelCompileError, CelEvaluationError) as error:
            if fails:
                yield Denial(f"expression '{validation['expression']}' resulted in error: {error}")


def _value(expression: str, facts: Mapping[str, Any], budget: Budget) -> Any:
    return _compile(expression).evaluate(facts, budget=budget)


def _message(validation: Object, facts: Mapping[str, Any], budget: Budget) -> str:
    if written := validation.get("messageExpression"):
        try:
            said = _value(written, facts, budget)
        except (CelCompileError, CelEvaluationError):
            said = ""
        if isinstance(said, str) and said.strip() and "\n" not in said:
            return said
    return str(validation.get("message") or f"failed expression: {validation['expression'].strip()}")
