"""Policies that cannot be used are refused, and one that is stored all the same stops nothing."""

import logging
from pathlib import Path
from typing import Any

import pytest
from running import Client, running

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (None, "spec.policyName"),
        ({}, "spec.policyName"),
        ({"validationActions": ["Deny"]}, "spec.policyName"),
        ({"policyName": "a"}, "spec.validationActions"),
        ({"policyName": "a", "validationActions": ["Refuse"]}, "spec.validationActions[0]"),
        (
            {"policyName": "a", "validationActions": ["Deny"], "paramRef": {"name": "x"}},
            "spec.paramRef.parameterNotFoundAction",
        ),
        (
            {
                "policyName": "a",
                "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {"matchExpressions": [{"key": "a"}]}},
            },
            "spec.matchResources.namespaceSelector.matchExpressions[0].operator",
        ),
    ],
)
def test_a_bad_binding_is_refused(client: Client, spec: Any, field: str) -> None:
    body = {"metadata": {"name": "bad"}, **({} if spec is None else {"spec": spec})}

    code, status = client.ask("POST", BINDINGS, body)

    assert (code, status["reason"]) == (422, "Invalid")
    assert status["details"]["causes"][0]["field"] == field


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.matchConstraints"),
        ({"matchConstraints": {"resourceRules": RULES}}, "spec.validations"),
        ({"matchConstraints": {"resourceRules": RULES}, "validations": [{}]}, "spec.validations[0].expression"),
        (
            {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": "object."}]},
            "spec.validations[0].expression",
        ),
        ({"matchConstraints": {"resourceRules": [{}]}, "validations": [{"expression": "true"}]},
         "spec.matchConstraints.resourceRules[0].apiGroups"),
    ],
)  # fmt: skip
def test_a_bad_policy_is_refused(client: Client, spec: Any, field: str) -> None:
    code, status = client.ask("POST", POLICIES, {"metadata": {"name": "bad"}, "spec": spec})

    assert (code, status["reason"]) == (422, "Invalid")
    assert status["details"]["causes"][0]["field"] == field


def test_a_bad_binding_in_the_file_is_reported_and_stops_no_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "cluster.db"
    with running(data) as server:
        bad = {"kind": "ValidatingAdmissionPolicyBinding", "apiVersion": "admissionregistration.k8s.io/v1",
               "metadata": {"name": "bad", "uid": "1"}, "spec": {"validationActions": ["Deny"]}}  # fmt: skip
        table = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
        server.call(server.cluster.store.put, table, "", "bad", bad)
    with caplog.at_level(logging.WARNING), running(data) as server:
        client = server.client()
        assert client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})[0] == 201
        assert client.ask("DELETE", f"{BINDINGS}/bad")[0] == 200
    assert "ValidatingAdmissionPolicyBinding bad is not used: spec.policyName: Required value" in caplog.text


def test_a_policy_whose_parameters_are_of_no_known_kind_denies_by_its_failure_policy(client: Client) -> None:
    kind = {"apiVersion": "example.com/v1", "kind": "Nothing"}
    spec = {
        "matchConstraints": {"resourceRules": RULES},
        "paramKind": kind,
        "validations": [{"expression": "object.metadata.name != 'no'"}],
    }
    assert client.ask("POST", POLICIES, {"metadata": {"name": "few"}, "spec": spec})[0] == 201
    reference = {"name": "x", "parameterNotFoundAction": "Allow"}
    bound = {"policyName": "few", "validationActions": ["Deny"], "paramRef": reference}
    assert client.ask("POST", BINDINGS, {"metadata": {"name": "few"}, "spec": bound})[0] == 201

    code, status = client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "denied"}})

    assert (code, status["reason"]) == (422, "Invalid")
    assert client.ask("DELETE", f"{BINDINGS}/few")[0] == 200
    assert client.ask("POST", CONFIG_MAPS, {"metadata": {"name": "denied"}})[0] == 201
