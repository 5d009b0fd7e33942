"""CustomResourceDefinitions: what they let be served, and how their objects are checked."""

from typing import Any

import pytest

from mooring.kubeapi.api import Api
from mooring.kubeapi.cluster import make_api
from mooring.kubeapi.definitions import Definitions
from mooring.kubeapi.definitions.structural import fill_in, make_type, prune
from mooring.kubeapi.schemas.decoding import parse_json
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.store import Store
from mooring.kubeapi.tables import Tables

KEY = "customresourcedefinitions.apiextensions.k8s.io"
NOW = 1_800_000_000.0
Object = dict[str, Any]


@pytest.fixture
def world() -> tuple[Api, Definitions]:
    return make_api(Store(), lambda: NOW)


@pytest.fixture
def api(world: tuple[Api, Definitions]) -> Api:
    return world[0]


def _schema(**spec: Any) -> Object:
    properties = {
        "spec": {"type": "object", **spec},
        "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }
    return {"type": "object", "properties": properties}


def _definition(schema: Object, **more: Any) -> Object:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}
    names = {"plural": "foos", "kind": "Foo", "shortNames": ["fo"]}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "foos.example.com"}, "spec": spec}


def _foo(**spec: Any) -> Object:
    return {"metadata": {"name": "a"}, "spec": spec}


def _refusal(call: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(ApiError) as refused:
        call(*arguments, **options)
    return refused.value.message


def test_a_definition_is_established_and_its_objects_are_served(api: Api) -> None:
    created = api.create(KEY, _definition(_schema(properties={"size": {"type": "integer"}})))

    conditions = {each["type"]: each["status"] for each in created["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert created["spec"]["names"]["listKind"] == "FooList"
    assert created["status"]["storedVersions"] == ["v1"]
    api.create("foos.example.com", _foo(size=3), "default")
    assert api.get("foos.example.com", "default", "a")["spec"] == {"size": 3}
    assert api.registry.of_kind("example.com/v1", "Foo").short_names == ("fo",)


def test_a_definition_that_is_gone_takes_its_resource_along(api: Api) -> None:
    api.create(KEY, _definition(_schema()))
    obj = api.get(KEY, None, "foos.example.com")

    api.delete(KEY, None, "foos.example.com")
    waiting = api.get(KEY, None, "foos.example.com")
    waiting["metadata"]["finalizers"] = []
    api.update(KEY, waiting)

    assert obj["metadata"].get("finalizers") is None
    assert api.registry.get("foos.example.com") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda crd: crd["metadata"].update(name="bars.example.com"), 'must be spec.names.plural+"."+spec.group'),
        (lambda crd: crd["spec"]["versions"][0].update(storage=False), "exactly one version marked as storage version"),
        (
            lambda crd: crd["spec"]["versions"][0].pop("schema"),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        ),
        (lambda crd: crd["spec"].update(scope="World"), 'spec.scope: Unsupported value: "World"'),
    ],
)
def test_a_definition_that_is_wrong_is_refused(api: Api, change: Any, message: str) -> None:
    crd = _definition(_schema())
    change(crd)

    assert message in _refusal(api.create, KEY, crd)


@pytest.mark.parametrize(
    ("schema", "spec", "message"),
    [
        ({"required": ["size"]}, {}, 'Foo.example.com "a" is invalid: spec.size: Required value'),
        (
            {"properties": {"size": {"type": "integer", "minimum": 1}}},
            {"size": 0},
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            {"properties": {"size": {"type": "integer"}}},
            {"size": "big"},
            'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
        ),
        (
            {"properties": {"cron": {"type": "string", "pattern": "^a+$"}}},
            {"cron": "b"},
            "spec.cron: Invalid value: \"b\": spec.cron in body should match '^a+$'",
        ),
        (
            {"properties": {"mode": {"type": "string", "enum": ["a", "b"]}}},
            {"mode": "c"},
            'spec.mode: Unsupported value: "c": supported values: "a", "b"',
        ),
        (
            {"properties": {"n": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}},
            {"n": ["x", "x"]},
            'spec.n[1]: Duplicate value: "x"',
        ),
        (
            {
                "x-kubernetes-validations": [{"rule": "self.a <= self.b", "message": "a is too large"}],
                "x-kubernetes-preserve-unknown-fields": True,
            },
            {"a": 2, "b": 1},
            "spec: Invalid value: a is too large",
        ),
    ],
)
def test_objects_are_checked_by_their_schema(api: Api, schema: Object, spec: Object, message: str) -> None:
    api.create(KEY, _definition(_schema(**schema)))

    assert message in _refusal(api.create, "foos.example.com", _foo(**spec), "default")


def test_a_rule_may_compare_with_what_was(api: Api) -> None:
    rule = {"rule": "self == oldSelf", "message": "size never changes"}
    properties = {"size": {"type": "integer", "x-kubernetes-validations": [rule]}}
    api.create(KEY, _definition(_schema(properties=properties)))
    api.create("foos.example.com", _foo(size=1), "default")

    message = _refusal(api.patch, "foos.example.com", "default", "a", {"spec": {"size": 2}}, "merge")

    assert "spec.size: Invalid value: 2: size never changes" in message


def test_a_rule_that_is_none_is_refused_with_the_definition(api: Api) -> None:
    schema = _schema(**{"x-kubernetes-validations": [{"rule": "self.("}]})

    assert "compilation failed" in _refusal(api.create, KEY, _definition(schema))


def test_defaults_come_in_where_nothing_was_said() -> None:
    value: Object = {"spec": {"list": [{}, {"n": 2}], "none": None}}
    item = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
    properties = {
        "list": {"type": "array", "items": item},
        "none": {"type": "string", "default": "x"},
        "deep": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "A"}}},
    }

    fill_in(value, {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})

    assert value == {"spec": {"list": [{"n": 1}, {"n": 2}], "none": "x", "deep": {"a": "A"}}}


def test_what_is_not_declared_is_pruned_and_named() -> None:
    schema = _schema(properties={"keep": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})
    body = b'{"metadata": {"name": "a", "odd": 1}, "spec": {"keep": {"x": 1}, "odd": 2, "keep": {"y": 1}}, "more": 3}'

    pruned = prune(parse_json(body), schema)

    assert pruned.value == {"metadata": {"name": "a"}, "spec": {"keep": {"y": 1}}}
    assert pruned.strict == [
        'unknown field "metadata.odd"',
        'duplicate field "spec.keep"',
        'unknown field "spec.odd"',
        'unknown field "more"',
    ]


def test_status_is_written_by_its_subresource_only(api: Api) -> None:
    api.create(KEY, _definition(_schema(properties={"size": {"type": "integer"}}), subresources={"status": {}}))
    created = api.create("foos.example.com", {**_foo(size=1), "status": {"n": 1}}, "default")

    assert "status" not in created
    created["status"], created["spec"]["size"] = {"n": 2}, 9
    updated = api.update("foos.example.com", created, subresource="status")
    assert (updated["status"], updated["spec"], updated["metadata"]["generation"]) == ({"n": 2}, {"size": 1}, 1)


def test_columns_are_those_of_the_definition(world: tuple[Api, Definitions]) -> None:
    api, definitions = world
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    api.create(KEY, _definition(_schema(properties={"size": {"type": "integer"}}), additionalPrinterColumns=columns))
    foo = api.create("foos.example.com", _foo(size=3), "default")

    table = Tables(lambda: NOW, definitions.columns).table(api.registry.find("foos.example.com"), [foo], "v1")

    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"] == [{"cells": ["a", 3]}]


def test_lists_are_owned_as_the_schema_says() -> None:
    item = {"type": "object", "properties": {"port": {"type": "integer"}}}
    ports = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"]}

    found = make_type(_schema(properties={"ports": ports}), is_root=True).fields["spec"].type.fields["ports"].type

    assert (found.form, found.list_type, found.keys) == ("list", "map", ("port",))


def test_a_null_that_may_not_be_said_is_nothing() -> None:
    value: Object = {"a": None, "b": None}

    fill_in(
        value, {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "nullable": True}}}
    )

    assert value == {"b": None}


def test_rules_are_left_alone_where_the_schema_does_not_hold(api: Api) -> None:
    rule = {"rule": "self.size > 0"}
    schema = {"required": ["size"], "properties": {"size": {"type": "integer"}}, "x-kubernetes-validations": [rule]}
    api.create(KEY, _definition(_schema(**schema)))

    message = _refusal(api.create, "foos.example.com", _foo(), "default")

    assert "spec.size: Required value, <nil>: Invalid value: null: some validation rules were not checked" in message
