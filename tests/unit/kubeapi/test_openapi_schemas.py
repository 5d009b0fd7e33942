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
    assert kind["properties"]["spec"] == {"allOf": [{"$ref": f"{_PREFIX}io.k8s.api.core.v1.PodSpec"}], "default": {}}
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers == {
        "type": "array",
        "items": {"$ref": f"{_PREFIX}io.k8s.api.core.v1.Container"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge",
    }
    limits = schemas["io.k8s.api.core.v1.ResourceRequirements"]["properties"]["limits"]
    assert limits["additionalProperties"] == {"$ref": f"{_PREFIX}io.k8s.apimachinery.pkg.api.resource.Quantity"}
