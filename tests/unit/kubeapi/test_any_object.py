"""Whatever a client sends, it gets an answer: every kind takes any JSON, or refuses it with a Status."""

import contextlib
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mooring.kubeapi.cluster import make_api
from mooring.kubeapi.registry import Registry
from mooring.kubeapi.schemas.notation import type_of_kind
from mooring.kubeapi.schemas.types import Type
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.store import Store
from mooring.kubeapi.tables import Tables

_NOW = 1_800_000_000.0
_ODD = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(0, 2) | st.sampled_from(["", "x", "5", "A_b", "1Gi"])
_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "a", "x-y", "No_Name", "Never", "Always", "a/b", "None", "50%"]),
    "int32": st.integers(-2, 70000),
    "int64": st.integers(-2, 70000),
    "double": st.floats(0, 3),
    "bool": st.booleans(),
    "bytes": st.sampled_from(["", "YQ==", "!"]),
    "time": st.sampled_from(["2026-01-01T00:00:00Z", "soon"]),
    "microtime": st.sampled_from(["2026-01-01T00:00:00.000000Z", "soon"]),
    "quantity": st.sampled_from(["1", "500m", "2Gi", "-1", "lots"]),
    "int-or-string": st.sampled_from([0, 1, -1, "25%", "x"]),
}
_RESOURCES = [each for each in Registry() if "create" in each.verbs and "get" in each.verbs]


@st.composite
def _values(draw: st.DrawFn, type_: Type, depth: int) -> Any:
    """A value that mostly fits a type, and now and then is something else."""
    if depth <= 0 or draw(st.integers(0, 12)) == 0:
        return draw(_ODD)
    match type_.form:
        case "struct":
            names = sorted(type_.fields)
            wanted = draw(st.lists(st.sampled_from(names), max_size=5)) if names else []
            return {name: draw(_values(type_.fields[name].type, depth - 1)) for name in wanted}
        case "list":
            assert type_.item is not None
            return [draw(_values(type_.item, depth - 1)) for _ in range(draw(st.integers(0, 2)))]
        case "map":
            assert type_.item is not None
            return {
                name: draw(_values(type_.item, depth - 1)) for name in draw(st.lists(st.sampled_from(["a", "cpu"])))
            }
    return draw(_PLAIN.get(type_.name, _ODD))


@st.composite
def _objects(draw: st.DrawFn) -> tuple[str, Any, Any]:
    resource = draw(st.sampled_from(_RESOURCES))
    type_ = type_of_kind(resource.api_version(), resource.kind)
    first, second = (draw(_values(type_, 6)) if type_ is not None else draw(_ODD) for _ in range(2))
    return resource.key, first if isinstance(first, dict) else {}, second if isinstance(second, dict) else {}


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(_objects())
def test_every_kind_takes_any_object_or_refuses_it(case: tuple[str, Any, Any]) -> None:
    key, first, second = case
    api, _ = make_api(Store(), lambda: _NOW)
    resource = api.registry.find(key)
    for obj in (first, second):
        obj["metadata"] = {"name": "it"}
        for field in ("apiVersion", "kind"):
            obj.pop(field, None)

    try:
        read = api.schemas.read(resource, first, resource.storage_version, "Warn", [])
        created = api.create(resource, read, "default", manager="m")
    except ApiError:
        created = api.find(resource, "default", "it") or {}
        assert created == {}
        return
    Tables(lambda: _NOW).table(resource, [created])
    for patch_type in ("merge", "strategic", "apply"):
        patch = {**second, "apiVersion": resource.api_version(), "kind": resource.kind}
        with contextlib.suppress(ApiError):
            api.patch(resource, "default", "it", patch, patch_type, manager="n", force=patch_type == "apply")
