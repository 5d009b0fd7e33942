"""Types as OpenAPI schemas."""

from mooring.kubeapi.schemas import schema_of
from mooring.kubeapi.schemas.openapi import component_schemas

_PREFIX = "#/components/schemas/"


def test_a_kind_comes_with_all_that_it_refers_to() -> None:
    pod = schema_of("", "v1", "Pod")
    assert pod is not None

    schemas = component_schemas([(pod, "", "v1", "Pod")])

    kind = schemas["io.k8s.api.core.v1.Pod"]
    assert kind["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    assert kind["properties"]["spec"] == {
        "allOf": [{"$ref": f"{_PREFIX}io.k8s.api.core.v1.PodSpec"}],
        "default": {},
        "description": "What is wanted.",
    }
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers == {
        "description": "The containers of the pod; at least one.",
        "type": "array",
        "items": {"$ref": f"{_PREFIX}io.k8s.api.core.v1.Container"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge",
    }
    limits = schemas["io.k8s.api.core.v1.ResourceRequirements"]["properties"]["limits"]
    assert limits["additionalProperties"] == {"$ref": f"{_PREFIX}io.k8s.apimachinery.pkg.api.resource.Quantity"}


def test_the_fields_that_people_look_up_are_described() -> None:
    kinds = [("", "v1", "Pod"), ("apps", "v1", "Deployment"), ("batch", "v1", "Job")]
    types = [(schema_of(*kind), *kind) for kind in kinds]

    schemas = component_schemas([(type_, *kind) for type_, *kind in types if type_ is not None])  # type: ignore[misc]

    for name in ("core.v1.Pod", "core.v1.Container", "apps.v1.Deployment", "batch.v1.JobSpec"):
        fields = schemas[f"io.k8s.api.{name}"]["properties"]
        described = [field for field, schema in fields.items() if schema.get("description")]
        assert len(described) >= len(fields) / 3, name
