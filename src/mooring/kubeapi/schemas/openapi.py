"""Types as OpenAPI schemas: what `kubectl explain` shows, and what clients check and merge by."""

from collections.abc import Iterable
from typing import Any

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

DESCRIPTIONS = {
    "core/v1.Pod": "Containers that run together on one node.",
    "core/v1.Node": "A machine that pods run on.",
    "core/v1.Namespace": "A space for names; most objects are in one.",
    "core/v1.Service": "One address for a set of pods.",
    "core/v1.ConfigMap": "Settings that pods read.",
    "core/v1.Secret": "Settings that pods read and others should not.",
    "core/v1.Event": "Something that happened to an object.",
    "core/v1.PersistentVolume": "Storage that outlives pods.",
    "core/v1.PersistentVolumeClaim": "A pod's wish for storage.",
    "core/v1.ResourceQuota": "How much a namespace may use in total.",
    "core/v1.LimitRange": "How much each pod, container or claim of a namespace may ask for.",
    "core/v1.ServiceAccount": "Who a pod is to the API.",
    "core/v1.PodSpec": "What a pod runs, and where it may.",
    "core/v1.PodStatus": "What has become of a pod.",
    "core/v1.Container": "One container of a pod.",
    "apps/v1.Deployment": "Replicas of a pod, replaced step by step when their template changes.",
    "apps/v1.ReplicaSet": "Replicas of a pod.",
    "apps/v1.StatefulSet": "Replicas of a pod with names and storage of their own.",
    "apps/v1.DaemonSet": "One pod on every node that fits.",
    "batch/v1.Job": "Pods that run to completion.",
    "batch/v1.CronJob": "Jobs that start by the clock.",
    "policy/v1.PodDisruptionBudget": "How many pods may be down at a time by choice.",
    "scheduling/v1.PriorityClass": "How urgent pods are.",
    "scheduling/v1beta1.PodGroup": "Pods that are scheduled together.",
    "scheduling/v1beta1.Workload": "What groups of pods a workload consists of.",
    "resource/v1.ResourceClaim": "A wish for devices.",
    "resource/v1.ResourceSlice": "Devices that a driver offers.",
    "resource/v1.DeviceClass": "A kind of devices that claims can name.",
    "meta/v1.ObjectMeta": "Who an object is, whose it is, and what others noted on it.",
}
"""In our own words, for what people explain first."""


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
    if description := DESCRIPTIONS.get(type_.name):
        schema["description"] = description
    if type_.fields:
        schema["properties"] = {name: _field(field, found, prefix) for name, field in sorted(type_.fields.items())}
    if required := [name for name, field in type_.fields.items() if field.is_required]:
        schema["required"] = sorted(required)
    if type_.is_atomic:
        schema["x-kubernetes-map-type"] = "atomic"


def _field(field: Field, found: Object, prefix: str) -> Object:
    schema = _schema(field.type, found, prefix)
    if "$ref" in schema:
        schema = {"allOf": [schema]}
        if not field.is_pointer and field.type.form == "struct":
            schema["default"] = {}
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
