"""What Kubernetes' types make of JSON: canonical form, unknown and duplicate fields, wrong types."""

import json
from typing import Any

import pytest

from mooring.kubeapi.schemas import Decoded, decode, parse_json, schema_of
from mooring.kubeapi.schemas.notation import kinds, type_of_kind
from mooring.kubeapi.schemas.types import Type


def _decode(kind: str, value: Any, *, group: str = "", version: str = "v1") -> Decoded:
    type_ = schema_of(group, version, kind)
    assert type_ is not None
    return decode(parse_json(value if isinstance(value, bytes) else json.dumps(value).encode()), type_)


def test_unknown_and_duplicate_fields_are_named_in_the_order_in_which_they_come() -> None:
    body = b'{"metadata": {"name": "a", "colour": 1}, "spec": {"unknownField": "foo", "replicas": 2, "replicas": 3}}'

    decoded = _decode("Deployment", body, group="apps")

    assert decoded.strict == [
        'unknown field "metadata.colour"',
        'unknown field "spec.unknownField"',
        'duplicate field "spec.replicas"',
    ]
    assert decoded.value["spec"]["replicas"] == 3


def test_an_unknown_field_in_a_list_is_named_with_its_index() -> None:
    decoded = _decode("Pod", {"spec": {"containers": [{"name": "a"}, {"name": "b", "img": "c"}]}})

    assert decoded.strict == ['unknown field "spec.containers[1].img"']
    assert decoded.value["spec"]["containers"][1] == {"name": "b", "resources": {}}


def test_keys_of_maps_are_never_unknown_and_may_come_twice() -> None:
    decoded = _decode("ConfigMap", b'{"data": {"a": "1", "a": "2", "b": "3"}}')

    assert decoded == Decoded({"data": {"a": "2", "b": "3"}, "metadata": {}}, ['duplicate field "data.a"'], "")


def test_zeros_are_left_out_unless_they_say_something() -> None:
    spec = {"hostNetwork": False, "automountServiceAccountToken": False, "nodeSelector": {}, "containers": []}

    decoded = _decode("Pod", {"metadata": {"creationTimestamp": None, "labels": {}}, "spec": spec, "status": None})

    spec = {"automountServiceAccountToken": False, "containers": []}
    assert decoded == Decoded({"metadata": {}, "spec": spec, "status": {}}, [], "")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("x", "json: cannot unmarshal string into Go struct field Deployment.spec of type v1.DeploymentSpec"),
        (
            {"replicas": "3"},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"replicas": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"template": {"spec": {"containers": {}}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type "
            "[]v1.Container",
        ),
        (
            {"template": {"metadata": {"labels": {"a": 1}}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.spec.template.metadata.labels of type "
            "string",
        ),
    ],
)
def test_a_wrong_type_is_refused_in_the_words_of_go(spec: Any, message: str) -> None:
    assert _decode("Deployment", {"spec": spec}, group="apps").error == message


def test_quantities_and_times_take_their_canonical_form() -> None:
    status = {"capacity": {"cpu": "2000m", "memory": "1024Mi"}, "conditions": [_condition("2026-01-01T02:00:00+02:00")]}

    decoded = _decode("Node", {"status": status})

    assert decoded.value["status"]["capacity"] == {"cpu": "2", "memory": "1Gi"}
    assert decoded.value["status"]["conditions"] == [_condition("2026-01-01T00:00:00Z")]


def _condition(time: str) -> dict[str, str]:
    return {"type": "Ready", "status": "True", "lastTransitionTime": time}


def test_what_is_no_quantity_is_refused() -> None:
    assert _decode("Node", {"status": {"capacity": {"cpu": "lots"}}}).error.startswith("quantities must match")


def test_every_built_in_kind_has_a_type_and_all_types_it_needs() -> None:
    seen: set[str] = set()

    def visit(type_: Type) -> None:
        if type_.item is not None:
            visit(type_.item)
        if type_.form == "struct" and type_.name not in seen:
            seen.add(type_.name)
            for field in type_.fields.values():
                visit(field.type)

    for api_version, kind in kinds():
        found = type_of_kind(api_version, kind)
        assert found is not None
        visit(found)
    assert {"core/v1.PodSpec", "resource/v1.ResourceClaimSpec", "kueue/kueue/v1beta2.ClusterQueueSpec"} <= seen


def test_pod_templates_of_other_projects_are_those_of_kubernetes() -> None:
    job = {"spec": {"tasks": [{"template": {"spec": {"containers": [{"name": "a", "img": "b"}]}}}]}}

    decoded = _decode("Job", job, group="batch.volcano.sh", version="v1alpha1")

    assert decoded.strict == ['unknown field "spec.tasks[0].template.spec.containers[0].img"']


def test_objects_nested_too_deep_are_refused_and_nothing_breaks() -> None:
    with pytest.raises(ValueError, match="depth"):
        parse_json(b"[" * 100_000)
