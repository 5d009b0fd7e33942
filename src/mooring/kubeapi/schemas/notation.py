"""Read the types of built-in kinds from data: `kubernetes.json` (tools/api_schemas.py) and `fields.json` of `model`.

A field is written as a form and flags. Forms: `string`, `int32`, `quantity` and other plain types, `core/v1.PodSpec` a
struct, `[]F` a list and `{}F` a map of forms. Flags: `required`; `pointer`, `always`, `omitzero` (what Go leaves out);
`keys=a,b`, `set`, `atomic`, `granular` (who owns what); `merge`, `merge=key`, `retainKeys`, `replace` (strategic merge
patch); `default=JSON`.

Kinds that come with other projects (Kueue, Volcano, JobSet and more) are known by the names of their fields only; parts
of theirs that are Kubernetes' own types, such as pod templates, are those.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from mooring.kubeapi.schemas.types import ANY, PLAIN, Field, Type
from mooring.model.loading.fields import field_types


@cache
def _kubernetes() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("mooring.kubeapi.schemas").joinpath("kubernetes.json").read_bytes())
    return found


@cache
def type_of_kind(api_version: str, kind: str) -> Type | None:
    """The type of a built-in kind."""
    key = f"{api_version} {kind}"
    name = _kubernetes()["kinds"].get(key) or field_types().kinds.get(key)
    return _struct(name) if name else None


def kinds() -> list[tuple[str, str]]:
    """All built-in kinds: apiVersion and kind."""
    names = [*_kubernetes()["kinds"], *(key for key in field_types().kinds if key not in _kubernetes()["kinds"])]
    return [(key.partition(" ")[0], key.partition(" ")[2]) for key in names]


@cache
def _struct(name: str) -> Type:
    written = _kubernetes()["types"].get(name)
    if written is not None:
        return Type("struct", name, is_atomic=written.get("") == "atomic", make_fields=lambda: _fields(written))
    theirs = field_types().types[name]
    return Type("struct", name, make_fields=lambda: _foreign_fields(theirs))


def _fields(written: Mapping[str, str]) -> Mapping[str, Field]:
    return {name: _field(text) for name, text in written.items() if name}


def _field(text: str) -> Field:
    form, *words = text.split(" ")
    flags = {word for word in words if "=" not in word}
    values = dict(word.split("=", 1) for word in words if "=" in word)
    keys = tuple(values.get("keys", "").split(",")) if "keys" in values else ()
    strategies = frozenset(flags & {"merge", "retainKeys", "replace"}) | ({"merge"} if "merge" in values else set())
    return Field(
        _type(form, "map" if keys else "set" if "set" in flags else "atomic", keys, _is_atomic(flags)),
        is_required="required" in flags,
        is_pointer="pointer" in flags,
        is_always="always" in flags,
        omits_zero="omitzero" in flags,
        strategies=strategies,
        merge_key=values.get("merge", ""),
        default=json.loads(values["default"]) if "default" in values else None,
    )


def _is_atomic(flags: set[str]) -> bool | None:
    """Whether a field says how an object in it is owned; None leaves it to the object's type."""
    return True if "atomic" in flags else False if "granular" in flags else None


def _type(form: str, list_type: Any = "atomic", keys: tuple[str, ...] = (), is_atomic: bool | None = None) -> Type:
    if form.startswith("[]"):
        return Type("list", item=_type(form[2:]), list_type=list_type, keys=keys)
    if form.startswith("{}"):
        return Type("map", item=_type(form[2:]) if form[2:] else ANY, is_atomic=bool(is_atomic))
    if form in PLAIN:
        return PLAIN[form]
    found = _struct(form)
    if is_atomic is not None and is_atomic != found.is_atomic:
        return Type("struct", form, is_atomic=is_atomic, make_fields=lambda: found.fields)
    return found


_LIST_KEYS = {
    "conditions": "type",
    "podSets": "name",
    "admissionChecks": "name",
    "replicatedJobs": "name",
    "tasks": "name",
}
"""Lists that other projects declare to be maps, by field, where the items have that key."""


def _foreign_fields(theirs: Mapping[str, str]) -> Mapping[str, Field]:
    found = {
        name: Field(PLAIN["string"] if name in ("apiVersion", "kind") else ANY, is_pointer=True)
        for name in theirs[""].split()
    }
    for name, form in theirs.items():
        if name:
            key = _LIST_KEYS.get(name, "")
            is_map = bool(key) and form.startswith("[]")
            found[name] = Field(_type(form, "map" if is_map else "atomic", (key,) if is_map else ()), is_pointer=True)
    return found
