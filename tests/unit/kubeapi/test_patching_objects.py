"""Patches through the pipeline: what is stored, what is refused and in which words."""

from typing import Any

import pytest

from mooring.kubeapi.api import Api
from mooring.kubeapi.schemas.decoding import parse_json
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.store import Store

KEY = "deployments.apps"
Object = dict[str, Any]


@pytest.fixture
def api() -> Api:
    return Api(Store(), now=lambda: 1_800_000_000.0)


def _deployment(**spec: Any) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def _refused(api: Api, patch: Any, patch_type: str, **options: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        api.patch(KEY, "default", "web", patch, patch_type, **options)
    return refused.value.code, refused.value.message


def test_apply_creates_what_is_not_there_and_its_manager_owns_it(api: Api) -> None:
    api.patch(KEY, "default", "web", _deployment(replicas=2), "apply", manager="me")

    found = api.get(KEY, "default", "web")
    assert found["spec"]["replicas"] == 2
    owned = [(entry["manager"], entry["fieldsV1"]) for entry in found["metadata"]["managedFields"]]
    assert owned == [("me", {"f:spec": {"f:replicas": {}}})]


def test_a_conflict_is_409_and_names_the_field(api: Api) -> None:
    api.patch(KEY, "default", "web", _deployment(replicas=2), "apply", manager="me")

    refused = _refused(api, _deployment(replicas=3), "apply", manager="you")

    assert refused == (409, 'Apply failed with 1 conflict: conflict with "me": .spec.replicas')


def test_an_applied_field_that_is_not_declared_is_refused(api: Api) -> None:
    refused = _refused(api, _deployment(colour="red"), "apply", manager="me")

    about = "/web; apps/v1, Kind=Deployment"
    message = f"failed to create typed patch object ({about}): .spec.colour: field not declared in schema"
    assert refused == (400, message)


def test_an_update_by_a_named_manager_is_tracked(api: Api) -> None:
    api.create(KEY, _deployment(replicas=2), "default", manager="creator")
    found = api.get(KEY, "default", "web")
    found["spec"]["replicas"] = 3

    api.update(KEY, found, manager="scaler")

    entries = api.get(KEY, "default", "web")["metadata"]["managedFields"]
    assert [(entry["manager"], entry["operation"]) for entry in entries] == [("scaler", "Update")]


def test_strict_validation_refuses_unknown_and_duplicate_fields_of_a_patch(api: Api) -> None:
    api.create(KEY, _deployment(replicas=2), "default")
    patch = parse_json(b'{"spec": {"colour": "red", "replicas": 3, "replicas": 4}}')

    code, message = _refused(api, patch, "merge", validation="Strict")

    assert code == 422
    assert message.endswith('strict decoding error: duplicate field "spec.replicas", unknown field "spec.colour"')
    assert api.get(KEY, "default", "web")["spec"]["replicas"] == 2


def test_without_strict_validation_the_client_is_warned_and_the_field_is_dropped(api: Api) -> None:
    api.create(KEY, _deployment(replicas=2), "default")
    warnings: list[str] = []

    api.patch(KEY, "default", "web", {"spec": {"colour": "red", "replicas": 5}}, "strategic", warnings=warnings)

    assert warnings == ['unknown field "spec.colour"']
    spec = api.get(KEY, "default", "web")["spec"]
    assert (spec["replicas"], "colour" in spec) == (5, False)


def test_custom_resources_have_no_strategic_merge(api: Api) -> None:
    api.create("queues.scheduling.volcano.sh", {"metadata": {"name": "q"}, "spec": {"weight": 1}})

    with pytest.raises(ApiError) as refused:
        api.patch("queues.scheduling.volcano.sh", None, "q", {"spec": {"weight": 2}}, "strategic")

    assert refused.value.code == 415


def test_a_json_patch_that_does_not_apply_is_422(api: Api) -> None:
    api.create(KEY, _deployment(replicas=2), "default")

    assert _refused(api, [{"op": "remove", "path": "/spec/paused"}], "json")[0] == 422
