"""A structural schema: the type that it declares, what it prunes, and what it fills in."""

import copy
from typing import Any

from mooring.kubeapi.schemas.decoding import Decoded, Path, Repeated, decode, path_text
from mooring.kubeapi.schemas.notation import type_of_kind
from mooring.kubeapi.schemas.types import ANY, PLAIN, Field, Type
from mooring.kubeapi.status import Object

PRESERVE, INT_OR_STRING, EMBEDDED = (
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
)
_IDENTITY = ("apiVersion", "kind", "metadata")


def _metadata_type() -> Type:
    found = type_of_kind("v1", "ConfigMap")
    assert found is not None
    return found.fields["metadata"].type


_METADATA = _metadata_type()


def make_type(schema: Object, *, is_root: bool = False) -> Type:
    """The type of a schema: what patches and server-side apply go by."""
    if schema.get(INT_OR_STRING):
        return PLAIN["int-or-string"]
    match schema.get("type"):
        case "object" | None if is_root or "properties" in schema or schema.get(EMBEDDED):
            return _object_type(schema, is_root=is_root)
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            item = make_type(schema["additionalProperties"])
            return Type("map", item=item, is_atomic=schema.get("x-kubernetes-map-type") == "atomic")
        case "array":
            item = make_type(schema.get("items") or {})
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            return Type("list", item=item, list_type=schema.get("x-kubernetes-list-type", "atomic"), keys=keys)
        case "string":
            return PLAIN["string"]
        case "integer":
            return PLAIN["int64"]
        case "number":
            return PLAIN["double"]
        case "boolean":
            return PLAIN["bool"]
        case "object" if schema.get("x-kubernetes-map-type") == "atomic":
            return PLAIN["raw"]
    return ANY


def _object_type(schema: Object, *, is_root: bool) -> Type:
    fields = {
        name: Field(make_type(inner), default=inner.get("default"), is_pointer=True)
        for name, inner in (schema.get("properties") or {}).items()
    }
    if is_root or schema.get(EMBEDDED):
        string = Field(PLAIN["string"])
        fields |= {"apiVersion": string, "kind": string, "metadata": Field(_METADATA)}
    more = schema.get("additionalProperties")
    item = make_type(more) if isinstance(more, dict) else ANY if more or schema.get(PRESERVE) else None
    is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
    return Type("struct", "", item=item, is_atomic=is_atomic, make_fields=lambda: fields)


def prune(value: Object, schema: Object) -> Decoded:
    """Drop what a schema does not declare, and name it."""
    pruner = _Pruner()
    return Decoded(pruner.object(value, schema, (), is_root=True), pruner.strict, pruner.error)


class _Pruner:
    def __init__(self) -> None:
        self.strict: list[str] = []
        self.error = ""

    def value(self, value: Any, schema: Object | None, path: Path) -> Any:
        if isinstance(value, dict):
            return self.object(value, schema, path, is_root=False)
        if isinstance(value, list):
            items = (schema or {}).get("items") if schema is not None else None
            return [
                self.value(item, items if schema is not None else None, (*path, index))
                for index, item in enumerate(value)
            ]
        return value

    def object(self, value: Object, schema: Object | None, path: Path, *, is_root: bool) -> Object:
        """Prune one object; without a schema everything stays."""
        schema_ = schema or {}
        properties, more = schema_.get("properties") or {}, schema_.get("additionalProperties")
        keeps = schema is None or bool(schema_.get(PRESERVE)) or more is True
        identity = _IDENTITY if is_root or schema_.get(EMBEDDED) else ()
        twice: set[str] = set()
        if isinstance(value, Repeated):
            seen: set[str] = set()
            for name, _ in value.pairs:
                if name in seen:
                    twice.add(name)
                seen.add(name)
        found: Object = {}
        for name, inner in value.items():
            here = (*path, name)
            if name in identity:
                found[name] = self._metadata(inner, path) if name == "metadata" else inner
            elif name in properties:
                found[name] = self.value(inner, properties[name], here)
            elif isinstance(more, dict):
                found[name] = self.value(inner, more, here)
            elif keeps:
                found[name] = self.value(inner, None, here)
            else:
                self.strict.append(f'unknown field "{path_text(here)}"')
            if name in twice:
                self.strict.append(f'duplicate field "{path_text(here)}"')
        return found

    def _metadata(self, value: Any, path: Path) -> Any:
        if not isinstance(value, dict):
            self.error = self.error or "metadata must be an object"
            return {}
        decoded = decode(value, _METADATA)
        prefix = path_text((*path, "metadata"))
        self.strict += [problem.replace('field "', f'field "{prefix}.') for problem in decoded.strict]
        self.error = self.error or decoded.error
        return decoded.value


def fill_in(value: Any, schema: Object) -> None:
    """Set the defaults of a schema where nothing was said; null, where it may not be said, is nothing."""
    if isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, inner in properties.items():
            is_missing = name not in value or (value[name] is None and not inner.get("nullable"))
            if "default" in inner and is_missing:
                value[name] = copy.deepcopy(inner["default"])
            elif is_missing:
                value.pop(name, None)
            if name in value:
                fill_in(value[name], inner)
        if isinstance(more, dict):
            for name, inner in value.items():
                if name not in properties:
                    fill_in(inner, more)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            fill_in(item, schema["items"])


def has_defaults(schema: Object) -> bool:
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any("default" in part or has_defaults(part) for part in parts if isinstance(part, dict))
