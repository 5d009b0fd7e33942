"""Policies in CEL refuse what they are told to, for whom they are bound."""

from typing import Any

import pytest

from mooring.kubeapi.admission.chain import turn_on
from mooring.kubeapi.admission.validating_policies import BINDINGS, POLICIES
from mooring.kubeapi.api import Api
from mooring.kubeapi.auth.rbac import Rbac
from mooring.kubeapi.auth.user import User
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.store import Store

Object = dict[str, Any]
DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}


@pytest.fixture
def api() -> Api:
    api = Api(Store())
    for name in ("default", "free"):
        api.create("namespaces", {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}})
    turn_on(api, Rbac(api))
    return api


def bind(api: Api, spec: Object, **binding: Any) -> None:
    """A policy about Deployments, bound at once."""
    spec = {"matchConstraints": {"resourceRules": [DEPLOYMENTS]}, "failurePolicy": "Fail", **spec}
    api.create(POLICIES, {"metadata": {"name": "few"}, "spec": spec})
    bound = {"policyName": "few", "validationActions": ["Deny"], **binding}
    api.create(BINDINGS, {"metadata": {"name": "everywhere"}, "spec": bound})
    api.store.flush()


def deploy(api: Api, replicas: int, namespace: str = "default", **options: Any) -> Object:
    name = f"web-{replicas}-{namespace}"
    return api.create(
        "deployments.apps", {"metadata": {"name": name}, "spec": {"replicas": replicas}}, namespace, **options
    )


def test_a_policy_refuses_in_its_own_words(api: Api) -> None:
    rule = {
        "expression": "variables.most >= object.spec.replicas",
        "messageExpression": "'at most ' + string(variables.most) + ' in ' + namespaceObject.metadata.name",
    }
    bind(api, {"variables": [{"name": "most", "expression": "1 + 2"}], "validations": [rule]})

    deploy(api, 3)
    with pytest.raises(ApiError) as refused:
        deploy(api, 4)

    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.message == (
        'deployments.apps "web-4-default" is forbidden: '
        "ValidatingAdmissionPolicy 'few' with binding 'everywhere' denied request: at most 3 in default"
    )


def test_a_policy_is_about_whom_its_conditions_and_binding_name(api: Api) -> None:
    condition = {"name": "people", "expression": "!request.userInfo.username.startsWith('system:')"}
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["free"]}]}
    rules = [{"expression": "object.spec.replicas < 3", "message": "too many", "reason": "Forbidden"}]
    bind(api, {"matchConditions": [condition], "validations": rules}, matchResources={"namespaceSelector": selector})

    jane = User("jane")
    deploy(api, 5)
    deploy(api, 5, "free", user=jane)
    with pytest.raises(ApiError, match="too many") as refused:
        deploy(api, 6, user=jane)

    assert refused.value.code == 403


def test_a_deletion_sees_what_was_there_and_a_warning_refuses_nothing(api: Api) -> None:
    rules = [{"expression": "request.operation != 'DELETE' || oldObject.spec.replicas == 0", "message": "still runs"}]
    deploy(api, 2)
    bind(api, {"validations": rules}, validationActions=["Warn"])
    warnings: list[str] = []

    api.delete("deployments.apps", "default", "web-2-default", warnings=warnings)

    assert warnings == ["Validation failed for ValidatingAdmissionPolicy 'few' with binding 'everywhere': still runs"]


def test_a_rule_that_cannot_be_evaluated_refuses_unless_failures_are_ignored(api: Api) -> None:
    rules = [{"expression": "object.spec.nowhere > 1"}]
    bind(api, {"validations": rules})

    with pytest.raises(ApiError, match="resulted in error: no such key: nowhere"):
        deploy(api, 1)
    policy = api.get(POLICIES, None, "few")
    api.update(POLICIES, {**policy, "spec": {**policy["spec"], "failurePolicy": "Ignore"}})
    api.store.flush()

    assert deploy(api, 1)["spec"]["replicas"] == 1


def test_parameters_are_read_from_the_object_that_the_binding_names(api: Api) -> None:
    api.create("configmaps", {"metadata": {"name": "limits"}, "data": {"most": "2"}}, "default")
    rules = [{"expression": "object.spec.replicas <= int(params.data.most)", "message": "too many"}]
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    reference = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
    bind(api, {"paramKind": kind, "validations": rules}, paramRef=reference)

    deploy(api, 2)
    with pytest.raises(ApiError, match="too many"):
        deploy(api, 3)
    api.delete("configmaps", "default", "limits")
    with pytest.raises(ApiError, match="no params found"):
        deploy(api, 1)
