"""Field validation: what decoding finds clean is what a walk finds clean, and the data has what we read."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.model.loading.fields import FieldChecks, field_types
from mooring.model.objects.kinds import KINDS
from mooring.model.places import Place

PLACE = Place("a.json")
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"app": "web"}, "ownerReferences": [{"kind": "Job", "name": "b", "uid": "c"}]},
    "spec": {
        "containers": [{"name": "main", "ports": [{"containerPort": 80}], "resources": {"requests": {"cpu": 1}}}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}},
    },
}


def warnings(source: bytes | dict[str, Any], *, is_long: bool = False) -> list[str]:
    checks = FieldChecks("warn")
    checks.check("v1", "Pod", source, PLACE, is_long=is_long)
    return checks.warnings


def objects(value: Any) -> list[dict[str, Any]]:
    """Every object inside a value whose keys are names of fields."""
    if isinstance(value, list):
        return [found for item in value for found in objects(item)]
    if not isinstance(value, dict):
        return []
    inner = (objects(item) for name, item in value.items() if name not in ("labels", "requests"))
    return [value, *(found for part in inner for found in part)]


@given(st.data())
def test_a_field_with_another_name_is_found_wherever_it_is(data: st.DataObject) -> None:
    pod = json.loads(json.dumps(POD))
    changed = data.draw(st.sampled_from(objects(pod)))
    name = data.draw(st.sampled_from(sorted(changed)))
    changed[f"{name}X"] = changed.pop(name)

    found = warnings(pod)

    assert len(found) == 1
    assert f"{name}X: expected a field of " in found[0]
    assert warnings(json.dumps(pod).encode()) == found
    assert warnings(json.dumps(pod).encode(), is_long=True) == found


def test_nothing_is_wrong_with_null_or_with_values_of_other_types() -> None:
    text = b'{"metadata": null, "spec": {"containers": [null, 3], "nodeSelector": null, "affinity": []}}'

    assert warnings(text) == warnings(text, is_long=True) == []


def test_a_key_is_missed_in_none_of_the_ways_to_write_it() -> None:
    for text in (b'{"kind":"a","kind":"b"}', b'{"kind" : "a", "kind" : "b"}', b'{"kind": "a", "k\\u0069nd": "b"}'):
        assert warnings(text) == ["a.json (Pod): kind: expected each key once, found it twice"]


def test_text_that_looks_like_keys_is_no_key() -> None:
    text = msgspec.json.encode({"metadata": {"annotations": {"last": '{"a":1,"a":2}'}, "name": '":":":'}})

    assert warnings(text) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.group} {kind.name}")
def test_every_field_that_we_read_is_legal(kind: Any) -> None:
    """In at least one version of the kind, for all types that the data knows."""
    found = [name for key, name in field_types().kinds.items() if _is(key, kind)]
    types = field_types().types
    for read in kind.type.__struct_encode_fields__ if found else ():
        assert any(read in types[name] or read in types[name][""].split() for name in found), read


def _is(key: str, kind: Any) -> bool:
    api_version, _, name = key.partition(" ")
    return (api_version.rpartition("/")[0], name) == (kind.group, kind.name)
