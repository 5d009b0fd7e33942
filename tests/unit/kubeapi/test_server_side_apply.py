"""Server-side apply: who owns which fields, where appliers conflict, and what goes when nobody wants it any more."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.kubeapi.patch import ConflictError, apply_configuration, track
from mooring.kubeapi.patch.field_sets import from_fields_v1, to_fields_v1
from mooring.kubeapi.schemas import Type, decode, schema_of
from mooring.kubeapi.schemas.decoding import empty_object

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"
Object = dict[str, Any]


def _type() -> Type:
    found = schema_of("apps", "v1", "Deployment")
    assert found is not None
    return found


EMPTY = empty_object(_type())


def _deployment(replicas: int | None = None, *, images: dict[str, str] | None = None, labels: Any = None) -> Object:
    found: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    spec: Object = {}
    if replicas is not None:
        spec["replicas"] = replicas
    if images is not None:
        containers = [{"name": name, "image": image} for name, image in images.items()]
        spec["template"] = {"spec": {"containers": containers}}
    if spec:
        found["spec"] = spec
    if labels:
        found["metadata"]["labels"] = labels
    return found


def _apply(live: Object | None, applied: Object, manager: str, *, force: bool = False, now: str = NOW) -> Object:
    return apply_configuration(live, applied, _type(), manager=manager, force=force, now=now, empty=EMPTY)


def _update(old: Object | None, new: Object, manager: str) -> Object:
    return track(old, new, _type(), manager=manager, now=NOW, empty=EMPTY)


def _owned(value: Object) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in value["metadata"]["managedFields"]}


def test_an_applier_owns_what_it_says() -> None:
    applied = _apply(None, _deployment(2, images={"a": "one"}, labels={"app": "web"}), "me")

    assert applied["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:replicas": {},
                    "f:template": {
                        "f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:image": {}, "f:name": {}}}}
                    },
                },
            },
        }
    ]


def test_a_creator_owns_maps_and_lists_as_such_too() -> None:
    created = _update(None, decode(_deployment(2, images={"a": "one"}, labels={"app": "web"}), _type()).value, "me")

    assert _owned(created)["me"] == {
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:template": {
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"a"}': {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}},
                    }
                }
            },
        },
    }


def test_changing_what_another_owns_is_a_conflict() -> None:
    live = _apply(None, _deployment(2), "one")

    with pytest.raises(ConflictError) as raised:
        _apply(live, _deployment(3), "two")

    assert str(raised.value) == 'Apply failed with 1 conflict: conflict with "one": .spec.replicas'
    assert raised.value.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.replicas"}
    ]


def test_a_conflict_with_an_updater_names_its_version() -> None:
    live = _update(None, _deployment(2, images={"a": "one"}), "kubectl-edit")

    with pytest.raises(ConflictError) as raised:
        _apply(live, _deployment(3, images={"a": "two"}), "me")

    assert str(raised.value) == (
        'Apply failed with 2 conflicts: conflicts with "kubectl-edit" using apps/v1:\n'
        '- .spec.replicas\n- .spec.template.spec.containers[name="a"].image'
    )


def test_force_takes_the_field_away() -> None:
    live = _apply(None, _deployment(2, labels={"a": "b"}), "one")

    forced = _apply(live, _deployment(3), "two", force=True)

    assert forced["spec"]["replicas"] == 3
    assert _owned(forced) == {
        "one": {"f:metadata": {"f:labels": {"f:a": {}}}},
        "two": {"f:spec": {"f:replicas": {}}},
    }


def test_appliers_that_agree_share_and_the_field_stays_until_the_last_one_goes() -> None:
    live = _apply(_apply(None, _deployment(2), "one"), _deployment(2), "two")

    one_gone = _apply(live, _deployment(labels={"a": "b"}), "one")
    both_gone = _apply(one_gone, _deployment(labels={"c": "d"}), "two")

    assert one_gone["spec"]["replicas"] == 2
    assert "replicas" not in both_gone.get("spec", {})
    assert _owned(both_gone) == {
        "one": {"f:metadata": {"f:labels": {"f:a": {}}}},
        "two": {"f:metadata": {"f:labels": {"f:c": {}}}},
    }


def test_a_container_that_is_not_applied_any_more_goes_with_its_defaults() -> None:
    live = _apply(None, _deployment(images={"a": "one", "b": "two"}), "me")
    for container in live["spec"]["template"]["spec"]["containers"]:
        container["imagePullPolicy"] = "Always"

    applied = _apply(live, _deployment(images={"a": "one"}), "me")

    assert [container["name"] for container in applied["spec"]["template"]["spec"]["containers"]] == ["a"]


def test_an_item_stays_as_long_as_another_owns_a_part_of_it() -> None:
    live = _apply(None, _deployment(images={"a": "one", "b": "two"}), "me")
    other = _deployment(images={})
    other["spec"]["template"]["spec"]["containers"] = [{"name": "b", "tty": True}]
    live = _apply(live, other, "you")

    applied = _apply(live, _deployment(images={"a": "one"}), "me")

    assert applied["spec"]["template"]["spec"]["containers"] == [
        {"name": "a", "image": "one"},
        {"name": "b", "tty": True},
    ]


def test_an_update_takes_what_it_changes_and_leaves_the_rest() -> None:
    live = _apply(None, _deployment(2, labels={"a": "b"}), "me")
    changed = {**live, "spec": {**live["spec"], "replicas": 5}}

    updated = _update(live, changed, "you")

    assert _owned(updated) == {
        "me": {"f:metadata": {"f:labels": {"f:a": {}}}},
        "you": {"f:spec": {"f:replicas": {}}},
    }


def test_what_was_applied_from_the_client_is_no_conflict_for_kubectl_itself() -> None:
    first = _deployment(2)
    first["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps(_deployment(2)),
    }
    live = _update(None, first, "kubectl-client-side-apply")

    applied = _apply(live, _deployment(3), "kubectl")

    assert applied["spec"]["replicas"] == 3
    annotation = applied["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert json.loads(annotation) == _deployment(3)


def test_applying_the_same_again_changes_nothing_not_even_the_time() -> None:
    live = _apply(None, _deployment(2, images={"a": "one"}), "me")

    assert _apply(live, _deployment(2, images={"a": "one"}), "me", now=LATER) == live


def test_many_updaters_end_up_as_one_entry_for_ancient_changes() -> None:
    live = None
    for index in range(15):
        new = _deployment(1, labels={f"l{n}": "x" for n in range(index + 1)})
        new["metadata"]["managedFields"] = live["metadata"]["managedFields"] if live else []
        live = _update(live, new, f"m{index:02}")

    assert live is not None
    names = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert len(names) == 10
    assert "ancient-changes" in names


_CONFIGS = st.builds(
    _deployment,
    st.none() | st.integers(1, 3),
    images=st.none() | st.dictionaries(st.sampled_from("abc"), st.sampled_from(["one", "two"]), min_size=1),
    labels=st.dictionaries(st.sampled_from("xy"), st.sampled_from(["1", "2"]), min_size=1),
)


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), _CONFIGS), min_size=1, max_size=6))
def test_what_was_forced_is_there_and_what_nobody_owns_is_not(steps: list[tuple[str, Object]]) -> None:
    live: Object | None = None
    for manager, config in steps:
        live = _apply(live, config, manager, force=True)
        assert _apply(live, config, manager) == live, "the same again is no conflict and no change"
    assert live is not None
    owned = frozenset().union(*(from_fields_v1(fields) for fields in _owned(live).values())) if steps else frozenset()
    for label in live["metadata"].get("labels", {}):
        assert ("f:metadata", "f:labels", f"f:{label}") in owned
    for entry in live["metadata"].get("managedFields", ()):
        assert to_fields_v1(from_fields_v1(entry["fieldsV1"])) == entry["fieldsV1"]
