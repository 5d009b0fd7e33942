"""Every kind that is served in several versions comes back from each as it was."""

import copy
import json
from typing import Any

import pytest

from mooring.kubeapi.conversion import from_storage, to_storage
from mooring.kubeapi.registry import Registry, Resource
from mooring.kubeapi.schemas.notation import type_of_kind
from mooring.kubeapi.schemas.types import Type

REGISTRY = Registry()
SEVERAL = [
    (resource, version)
    for resource in REGISTRY
    for version in resource.versions
    if len(resource.versions) > 1 and version != resource.storage_version
]
PLAIN = {"string": "text", "int32": 7, "int64": 8, "double": 0.5, "bool": True, "quantity": "5", "int-or-string": 3}
VALUES = {
    "whenCanBorrow": "MayStopSearch",
    "whenCanPreempt": "TryNextFlavor",
    "priorityClassSource": "scheduling.k8s.io/priorityclass",
    "priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"},
    "admissionChecks": ["one"],
}
ALTERNATIVES = {
    "ClusterQueue": ("admissionChecksStrategy", "admissionChecks"),
    "ResourceClaim": ("firstAvailable",),
    "ResourceClaimTemplate": ("firstAvailable",),
}
"""Fields that take the place of others, and so are not filled in together with them."""


def filled(type_: Type, leave_out: tuple[str, ...], depth: int = 0) -> Any:
    """A value of a type with every field that it has."""
    match type_.form:
        case "struct":
            return {
                name: VALUES.get(name) or filled(field.type, leave_out, depth + 1)
                for name, field in type_.fields.items()
                if depth < 8 and name not in ("metadata", *leave_out) and "PodSpec" not in field.type.name
            }
        case "list":
            return [filled(type_.item, leave_out, depth + 1)] if type_.item is not None else []
        case "map":
            return {"key": filled(type_.item, leave_out, depth + 1)} if type_.item is not None else {}
    return PLAIN.get(type_.name, "2027-01-15T08:00:00Z" if "time" in type_.name else "text")


def an_object(resource: Resource, version: str, *leave_out: str) -> dict[str, Any]:
    type_ = type_of_kind(resource.api_version(version), resource.kind)
    assert type_ is not None
    found: dict[str, Any] = filled(type_, leave_out)
    found |= {"apiVersion": resource.api_version(version), "kind": resource.kind, "metadata": {"name": "a"}}
    if resource.kind == "ClusterQueue" and version == "v1beta1":
        found["spec"]["flavorFungibility"]["whenCanBorrow"] = "Borrow"
    if resource.kind == "ClusterQueue" and version == "v1beta2":
        found["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": "one", "onFlavors": ["a"]}]}
    if resource.key == "horizontalpodautoscalers.autoscaling" and version == "v2":
        metric = found["spec"]["metrics"][0]
        metric["resource"] = {"name": "memory", "target": metric["resource"]["target"]}
        cpu = {"type": "Utilization", "averageUtilization": 70}
        found["spec"]["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": cpu}}, metric]
    return found


@pytest.mark.parametrize(("resource", "version"), SEVERAL, ids=lambda each: getattr(each, "key", each))
def test_a_stored_object_comes_back_from_another_version_as_it_was(resource: Resource, version: str) -> None:
    stored = an_object(resource, resource.storage_version, *ALTERNATIVES.get(resource.kind, ())[-1:])
    before = copy.deepcopy(stored)

    shown = json.loads(json.dumps(from_storage(resource, version, stored)))

    assert shown["apiVersion"] == resource.api_version(version)
    assert stored == before
    assert to_storage(resource, version, shown) == stored


@pytest.mark.parametrize(("resource", "version"), SEVERAL, ids=lambda each: getattr(each, "key", each))
def test_an_object_of_another_version_comes_back_from_storage_as_it_was(resource: Resource, version: str) -> None:
    written = an_object(resource, version, *ALTERNATIVES.get(resource.kind, ())[:1])
    if resource.key == "horizontalpodautoscalers.autoscaling":
        written["status"].pop("currentCPUUtilizationPercentage", None)  # only the server writes it, from its metrics
    before = copy.deepcopy(written)

    stored = json.loads(json.dumps(to_storage(resource, version, written)))
    shown = from_storage(resource, version, stored)

    assert written == before
    assert stored["apiVersion"] == resource.api_version()
    if resource.key == "horizontalpodautoscalers.autoscaling":
        shown["metadata"].pop("annotations", None)  # its metric, as the storage version has it
    assert shown == written


def test_a_cluster_queue_of_v1beta1_keeps_its_cohort_and_checks() -> None:
    resource = REGISTRY.find("clusterqueues.kueue.x-k8s.io")
    old = {"kind": "ClusterQueue", "metadata": {"name": "a"}, "spec": {"cohort": "all", "admissionChecks": ["one"]}}

    stored = to_storage(resource, "v1beta1", old)

    assert stored["spec"]["cohortName"] == "all"
    assert stored["spec"]["admissionChecksStrategy"] == {"admissionChecks": [{"name": "one"}]}
    assert from_storage(resource, "v1beta1", stored)["spec"] == old["spec"]
