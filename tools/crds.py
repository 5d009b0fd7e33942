"""The schemas in deploy/crds, from the legal fields of each kind and the types that Mooring reads.

python tools/crds.py          write them

A field that Mooring does not read keeps whatever it holds; a field that the kind does not have is refused or pruned by
the API server. Pod templates are kept as they are: their schema alone would be longer than everything else.
"""

import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mooring.model.api.meta import QuantityText
from mooring.model.loading.fields import field_types
from mooring.model.objects.kinds import KINDS

FOLDER = Path(__file__).parents[1] / "deploy" / "crds"
KEPT: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
AS_IT_IS = frozenset({"core/v1.PodTemplateSpec"})
PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    QuantityText: {"x-kubernetes-int-or-string": True},
}


def definitions(path: Path) -> list[dict[str, Any]]:
    """The definitions in a file, with their schemas made anew."""
    found = [each for each in yaml.safe_load_all(path.read_text()) if each]
    for definition in found:
        spec = definition["spec"]
        for version in spec["versions"]:
            version["schema"]["openAPIV3Schema"] = schema_of_kind(spec["group"], version["name"], spec["names"]["kind"])
    return found


def schema_of_kind(group: str, version: str, kind: str) -> dict[str, Any]:
    """The structural schema of a kind."""
    (read,) = (each.type for each in KINDS if (each.group, each.name) == (group, kind))
    schema = _struct(field_types().kinds[f"{group}/{version} {kind}"], read)
    properties = schema["properties"]
    properties |= {"apiVersion": PLAIN[str], "kind": PLAIN[str], "metadata": {"type": "object"}}
    if "status" in properties:
        # Controllers write it, not users, and Kueue's and Volcano's add fields with each version.
        properties["status"] = {"type": "object", **KEPT}
    return schema


def _struct(name: str, read: Any) -> dict[str, Any]:
    """The schema of a type: its legal fields, with the types of those that are read."""
    if name in AS_IT_IS:
        return {"type": "object", **KEPT}
    legal = field_types().types[name]
    known = {each.encode_name: each for each in msgspec.structs.fields(read)} if _is_struct(read) else {}
    hints = typing.get_type_hints(read) if known else {}
    properties = {}
    for field, form in sorted(_forms(legal)):
        seen = known.get(field)
        properties[field] = _form(form, None if seen is None else _without_none(hints[seen.name]))
    required = sorted(field for field in properties if field in known and known[field].required)
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _forms(legal: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Fields with their forms; the form of a plain one is empty."""
    yield from ((field, "") for field in legal[""].split())
    yield from ((field, form) for field, form in legal.items() if field)


def _form(form: str, read: Any) -> dict[str, Any]:
    if form.startswith("[]"):
        return {"type": "array", "items": _form(form[2:], _argument(read, 0))}
    if form.startswith("{}"):
        return {"type": "object", "additionalProperties": _form(form[2:], _argument(read, 1))}
    return _struct(form, read) if form else _value(read)


def _value(read: Any) -> dict[str, Any]:
    """The schema of a plain value by the type that it is read into."""
    if read in PLAIN:
        return PLAIN[read]
    if typing.get_origin(read) is list:
        return {"type": "array", "items": _value(typing.get_args(read)[0])}
    if typing.get_origin(read) is dict:
        return {"type": "object", "additionalProperties": _value(typing.get_args(read)[1])}
    return KEPT


def _argument(read: Any, index: int) -> Any:
    arguments = typing.get_args(read)
    return arguments[index] if index < len(arguments) else None


def _without_none(read: Any) -> Any:
    if read == QuantityText or not isinstance(read, types.UnionType):
        return read
    left = tuple(each for each in typing.get_args(read) if each is not types.NoneType)
    if frozenset(left) == frozenset((int, str)):  # a count or a percentage
        return QuantityText
    return QuantityText if frozenset(left) == frozenset(typing.get_args(QuantityText)) else left[0]


def _is_struct(read: Any) -> bool:
    return isinstance(read, type) and issubclass(read, msgspec.Struct)


def text_of(path: Path) -> str:
    """A file of definitions as it is to be: its comment, then the definitions."""
    comment = path.read_text().partition("apiVersion:")[0]
    return comment + yaml.dump_all(definitions(path), Dumper=_Plain, sort_keys=False, width=120)


class _Plain(yaml.SafeDumper):
    """Writes equal parts out each time: an alias would be hard to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def main() -> None:
    for path in sorted(FOLDER.glob("*.yaml")):
        path.write_text(text_of(path))


if __name__ == "__main__":
    main()
