"""Types as OpenAPI schemas: what `kubectl explain` shows, and what clients check and merge by."""

from collections.abc import Iterable
from typing import Any

from mooring.kubeapi.schemas.descriptions import FIELDS, KINDS
from mooring.kubeapi.schemas.types import Field, Type
from mooring.kubeapi.status import Object

_PLAIN: dict[str, Object] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "int-or-string": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "raw": {"type": "object"},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
}
_NAMED = {
    "quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "int-or-string": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "time": "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "microtime": "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
}
"""Plain values that have names of their own."""
_GROUPS = {
    "admissionregistration": "io.k8s.api",
    "apps": "io.k8s.api",
    "authentication": "io.k8s.api",
    "authorization": "io.k8s.api",
    "autoscaling": "io.k8s.api",
    "batch": "io.k8s.api",
    "certificates": "io.k8s.api",
    "coordination": "io.k8s.api",
    "core": "io.k8s.api",
    "discovery": "io.k8s.api",
    "events": "io.k8s.api",
    "flowcontrol": "io.k8s.api",
    "networking": "io.k8s.api",
    "node": "io.k8s.api",
    "policy": "io.k8s.api",
    "rbac": "io.k8s.api",
    "resource": "io.k8s.api",
    "scheduling": "io.k8s.api",
    "storage": "io.k8s.api",
    "meta": "io.k8s.apimachinery.pkg.apis",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis",
}
"""Where Kubernetes' own types stand, by the first part of our short names."""

COMPONENTS, DEFINITIONS = "#/components/schemas/", "#/definitions/"
"""What references begin with, in the third version of OpenAPI and in the second."""


def schema_name(type_: Type) -> str:
    """`io.k8s.api.core.v1.Pod`, as Kubernetes calls its types in OpenAPI."""
    package, _, name = type_.name.rpartition(".")
    prefix = _GROUPS.get(package.partition("/")[0], "io.mooring") if package.count("/") == 1 else "io.mooring"
    return f"{prefix}.{package.replace('/', '.')}.{name}"


def component_schemas(kinds: Iterable[tuple[Type, str, str, str]], prefix: str = COMPONENTS) -> Object:
    """Schemas of kinds, given with group, version and kind, and of all that they refer to."""
    found: Object = {}
    for type_, group, version, kind in kinds:
        _add(type_, found, prefix)
        schema = found[schema_name(type_)]
        named = schema.setdefault("x-kubernetes-group-version-kind", [])
        named.append({"group": group, "kind": kind, "version": version})
    return found


def _add(type_: Type, found: Object, prefix: str) -> None:
    name = schema_name(type_)
    if name in found:
        return
    schema: Object = {"type": "object"}
    found[name] = schema
    if description := KINDS.get(type_.name):
        schema["description"] = description
    if type_.fields:
        schema["properties"] = {
            name: _field(name, field, found, prefix) for name, field in sorted(type_.fields.items())
        }
    if required := [name for name, field in type_.fields.items() if field.is_required]:
        schema["required"] = sorted(required)
    if type_.is_atomic:
        schema["x-kubernetes-map-type"] = "atomic"


def _field(name: str, field: Field, found: Object, prefix: str) -> Object:
    schema = _schema(field.type, found, prefix)
    if "$ref" in schema:
        schema = {"allOf": [schema]}
        if not field.is_pointer and field.type.form == "struct":
            schema["default"] = {}
    if description := FIELDS.get(name):
        schema["description"] = description
    if field.default is not None:
        schema["default"] = field.default
    if field.strategies:
        schema["x-kubernetes-patch-strategy"] = ",".join(sorted(field.strategies))
    if field.merge_key:
        schema["x-kubernetes-patch-merge-key"] = field.merge_key
    return schema


def _schema(type_: Type, found: Object, prefix: str) -> Object:
    match type_.form:
        case "struct":
            _add(type_, found, prefix)
            return {"$ref": f"{prefix}{schema_name(type_)}"}
        case "list":
            assert type_.item is not None
            schema: dict[str, Any] = {"type": "array", "items": _schema(type_.item, found, prefix)}
            schema["x-kubernetes-list-type"] = type_.list_type
            if type_.keys:
                schema["x-kubernetes-list-map-keys"] = list(type_.keys)
            return schema
        case "map":
            assert type_.item is not None
            schema = {"type": "object", "additionalProperties": _schema(type_.item, found, prefix)}
            return {**schema, "x-kubernetes-map-type": "atomic"} if type_.is_atomic else schema
    schema = dict(_PLAIN[type_.name])
    if prefix == DEFINITIONS and schema.pop("oneOf", None):
        schema["type"] = "string"  # the second version knows no choice of types
    if name := _NAMED.get(type_.name):
        found.setdefault(name, schema)
        return {"$ref": f"{prefix}{name}"}
    return schema
