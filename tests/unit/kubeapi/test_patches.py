"""JSON patch, merge patch and strategic merge patch."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.kubeapi.patch import PatchError, json_patch, merge_patch, strategic_merge
from mooring.kubeapi.schemas import Type, schema_of

_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)
_OBJECTS = st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=3)


def _pod_type() -> Type:
    found = schema_of("", "v1", "Pod")
    assert found is not None
    return found


def _containers(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(containers)}}


@pytest.mark.parametrize(
    ("value", "operation", "expected"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": {"b/c": 1}}, {"op": "remove", "path": "/a/b~1c"}, {"a": {}}),
        ({"a": [1, 2, 3]}, {"op": "replace", "path": "/a/1", "value": 9}, {"a": [1, 9, 3]}),
        ({"a": 1}, {"op": "move", "from": "/a", "path": "/b"}, {"b": 1}),
        ({"a": 1}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": 1, "b": 1}),
        ({"a": 1}, {"op": "test", "path": "/a", "value": 1}, {"a": 1}),
    ],
)
def test_each_operation_of_a_json_patch(value: Any, operation: dict[str, Any], expected: Any) -> None:
    assert json_patch(value, [operation]) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/b"},
        {"op": "replace", "path": "/b", "value": 1},
        {"op": "add", "path": "/b/c", "value": 1},
        {"op": "test", "path": "/a", "value": True},
        {"op": "polish", "path": "/a"},
        {"op": "add", "path": "a"},
        {"op": "add"},
        "add",
    ],
)
def test_an_operation_that_does_not_apply_is_refused(operation: Any) -> None:
    with pytest.raises(PatchError):
        json_patch({"a": 1}, [operation])


@given(_OBJECTS, _OBJECTS)
def test_a_merge_patch_of_an_object_without_nulls_leaves_what_it_says(value: Any, patch: Any) -> None:
    merged = merge_patch(value, patch)

    for name, inner in patch.items():
        if inner is None:
            assert name not in merged
        elif not isinstance(inner, dict):
            assert merged[name] == inner
    assert all(merged[name] == inner for name, inner in value.items() if name not in patch)
    assert merge_patch(merged, patch) == merged


@given(
    _OBJECTS,
    st.lists(st.fixed_dictionaries({"op": st.just("add"), "path": st.sampled_from(["/a", "/b"]), "value": _VALUES})),
)
def test_a_json_patch_leaves_the_object_it_was_given_alone(value: Any, operations: Any) -> None:
    before = copy.deepcopy(value)

    json_patch(value, operations)

    assert value == before


def test_containers_are_merged_by_name() -> None:
    pod = _containers({"name": "a", "image": "one"}, {"name": "b", "image": "two"})

    patched = strategic_merge(pod, _containers({"name": "b", "image": "three"}, {"name": "c"}), _pod_type())

    assert patched == _containers({"name": "a", "image": "one"}, {"name": "b", "image": "three"}, {"name": "c"})


def test_an_item_is_deleted_by_its_key() -> None:
    pod = _containers({"name": "a"}, {"name": "b"})

    assert strategic_merge(pod, _containers({"name": "a", "$patch": "delete"}), _pod_type()) == _containers(
        {"name": "b"}
    )


def test_a_list_is_replaced_as_a_whole_when_told_to() -> None:
    pod = _containers({"name": "a"}, {"name": "b"})

    assert strategic_merge(pod, _containers({"$patch": "replace"}, {"name": "c"}), _pod_type()) == _containers(
        {"name": "c"}
    )


def test_an_object_is_replaced_as_a_whole_when_told_to() -> None:
    patched = strategic_merge({"spec": {"a": 1}}, {"spec": {"$patch": "replace", "b": 2}}, _pod_type())

    assert patched == {"spec": {"b": 2}}


def test_tolerations_are_replaced_because_they_have_no_key() -> None:
    pod = {"spec": {"tolerations": [{"key": "a"}]}}

    patched = strategic_merge(pod, {"spec": {"tolerations": [{"key": "b"}]}}, _pod_type())

    assert patched == {"spec": {"tolerations": [{"key": "b"}]}}


def test_finalizers_are_added_and_deleted_one_by_one() -> None:
    pod = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}}

    assert strategic_merge(pod, patch, _pod_type()) == {"metadata": {"finalizers": ["c", "b"]}}


def test_element_order_is_that_of_the_patch_and_others_keep_their_place() -> None:
    pod = _containers({"name": "a"}, {"name": "other"}, {"name": "b"})
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}],
            "containers": [{"name": "c"}],
        }
    }

    patched = strategic_merge(pod, patch, _pod_type())

    assert [container["name"] for container in patched["spec"]["containers"]] == ["c", "other", "b", "a"]


def test_keys_that_are_not_retained_go() -> None:
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    patch = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}}

    assert strategic_merge(pod, patch, _pod_type()) == {
        "spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}
    }


def test_an_item_without_its_merge_key_is_refused() -> None:
    with pytest.raises(PatchError, match="does not contain declared merge key: name"):
        strategic_merge(_containers({"name": "a"}), _containers({"image": "b"}), _pod_type())


def test_null_removes_a_field() -> None:
    assert strategic_merge({"spec": {"nodeName": "a", "b": 1}}, {"spec": {"nodeName": None}}, _pod_type()) == {
        "spec": {"b": 1}
    }
