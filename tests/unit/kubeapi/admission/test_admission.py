from typing import Any

import pytest

from mooring.kubeapi.admission.chain import turn_on
from mooring.kubeapi.admission.priority import system_priority_classes
from mooring.kubeapi.api import Api
from mooring.kubeapi.auth.rbac import Rbac
from mooring.kubeapi.controllers.volumes import default_storage_class
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.store import Store

Object = dict[str, Any]


@pytest.fixture
def api() -> Api:
    api = Api(Store())
    for namespace in ("default", "team"):
        api.create("namespaces", {"metadata": {"name": namespace}})
        api.create("serviceaccounts", {"metadata": {"name": "default"}}, namespace)
    for found in system_priority_classes():
        api.create("priorityclasses.scheduling.k8s.io", found)
    turn_on(api, Rbac(api))
    return api


def pod(name: str = "p", resources: Object | None = None, **spec: Any) -> Object:
    container = {"name": "main", "image": "web", "resources": resources or {}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def test_nothing_is_created_in_a_namespace_that_is_not_there_or_is_going(api: Api) -> None:
    with pytest.raises(ApiError, match='namespaces "nowhere" not found'):
        api.create("configmaps", {"metadata": {"name": "c"}}, "nowhere")
    namespace = api.get("namespaces", None, "team")
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    api.update("namespaces", namespace)
    api.delete("namespaces", None, "team")
    with pytest.raises(ApiError, match="because it is being terminated"):
        api.create("configmaps", {"metadata": {"name": "c"}}, "team")


def test_a_pod_gets_an_account_a_token_a_priority_and_tolerations(api: Api) -> None:
    spec = api.create("pods", pod(priorityClassName="system-node-critical"), "default")["spec"]

    (volume,) = spec["volumes"]
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert mount == {
        "name": volume["name"],
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    assert (spec["serviceAccountName"], spec["priority"]) == ("default", 2_000_001_000)
    assert [(one["key"].rpartition("/")[2], one["tolerationSeconds"]) for one in spec["tolerations"]] == [
        ("not-ready", 300),
        ("unreachable", 300),
    ]


def test_a_pod_of_an_unknown_class_or_account_is_refused(api: Api) -> None:
    with pytest.raises(ApiError, match="no PriorityClass with name urgent was found"):
        api.create("pods", pod(priorityClassName="urgent"), "default")
    with pytest.raises(ApiError, match="service account default/robot"):
        api.create("pods", pod(serviceAccountName="robot"), "default")


def test_a_limit_range_gives_defaults_and_refuses_what_is_out_of_bounds(api: Api) -> None:
    limits = [{"type": "Container", "default": {"cpu": "500m"}, "max": {"cpu": "2"}}]
    api.create("limitranges", {"metadata": {"name": "bounds"}, "spec": {"limits": limits}}, "default")

    created = api.create("pods", pod(), "default")

    assert created["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "500m"}}
    with pytest.raises(ApiError, match="maximum cpu usage per Container is 2, but limit is 3"):
        api.create("pods", pod("big", {"limits": {"cpu": "3"}, "requests": {"cpu": "3"}}), "default")


def test_a_quota_is_spent_and_given_back(api: Api) -> None:
    api.create("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}, "default")
    api.create("pods", pod("first"), "default")

    with pytest.raises(ApiError, match="exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"):
        api.create("pods", pod("second"), "default")
    api.create("pods", pod("second"), "team")
    api.delete("pods", "default", "first")

    assert api.create("pods", pod("second"), "default")["metadata"]["name"] == "second"


def test_objects_that_are_no_pods_are_counted_too(api: Api) -> None:
    hard = {"configmaps": "1", "count/jobs.batch": "0"}
    api.create("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": hard}}, "default")
    api.create("configmaps", {"metadata": {"name": "a"}}, "default")

    given: list[tuple[str, Object]] = [("configmaps", {}), ("jobs.batch", {"spec": {}})]
    for resource, obj in given:
        with pytest.raises(ApiError, match="exceeded quota"):
            api.create(resource, {"metadata": {"name": "b"}, **obj}, "default")


def test_a_claim_gets_the_default_class_and_its_protection(api: Api) -> None:
    api.create("storageclasses.storage.k8s.io", default_storage_class())

    claim = api.create("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": {}}, "default")

    assert claim["spec"] == {"storageClassName": "standard"}
    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


def test_a_namespace_that_enforces_a_level_refuses_privileges(api: Api) -> None:
    namespace = api.get("namespaces", None, "team")
    namespace["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "baseline"}
    api.update("namespaces", namespace)

    with pytest.raises(ApiError, match='violates PodSecurity "baseline:latest": host namespaces'):
        api.create("pods", pod(hostNetwork=True), "team")


def test_a_runtime_class_adds_its_overhead(api: Api) -> None:
    overhead = {"podFixed": {"cpu": "250m"}}
    api.create("runtimeclasses.node.k8s.io", {"metadata": {"name": "vm"}, "handler": "vm", "overhead": overhead})

    created = api.create("pods", pod(runtimeClassName="vm"), "default")

    assert created["spec"]["overhead"] == {"cpu": "250m"}


def test_devices_of_claims_are_counted_by_class(api: Api) -> None:
    hard = {"gold.deviceclass.resource.k8s.io/devices": "2"}
    api.create("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": hard}}, "default")

    def claim(name: str, count: int) -> Object:
        exactly = {"deviceClassName": "gold", "allocationMode": "ExactCount", "count": count}
        requests = [{"name": "r", "exactly": exactly}]
        return {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}

    api.create("resourceclaims.resource.k8s.io", claim("a", 2), "default")

    with pytest.raises(ApiError, match="exceeded quota: few"):
        api.create("resourceclaims.resource.k8s.io", claim("b", 1), "default")


def test_admin_access_to_devices_needs_a_label_of_the_namespace(api: Api) -> None:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gold", "adminAccess": True}}]
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}

    with pytest.raises(ApiError, match="admin access to devices requires"):
        api.create("resourceclaims.resource.k8s.io", claim, "team")
    namespace = api.get("namespaces", None, "team")
    namespace["metadata"]["labels"] = {"resource.kubernetes.io/admin-access": "true"}
    api.update("namespaces", namespace)

    assert api.create("resourceclaims.resource.k8s.io", claim, "team")["metadata"]["name"] == "c"


def test_a_pod_gets_the_zone_of_its_node_with_it(api: Api) -> None:
    zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
    api.create("nodes", {"metadata": {"name": "n", "labels": {zone: "z", region: "r", "rack": "7"}}})
    api.create("pods", pod("bound"), "default")
    target = {"kind": "Node", "name": "n"}
    api.create_sub("pods", "default", "bound", "binding", {"metadata": {"name": "bound"}, "target": target})
    api.create("pods", pod("placed", nodeName="n"), "default")
    api.create("pods", pod("elsewhere", nodeName="unknown"), "default")

    labels = [api.get("pods", "default", name)["metadata"].get("labels") for name in ("bound", "placed", "elsewhere")]
    assert labels == [{zone: "z", region: "r"}, {zone: "z", region: "r"}, None]


def test_the_systems_priority_classes_stay(api: Api) -> None:
    with pytest.raises(ApiError, match="this is a system priority class and cannot be deleted"):
        api.delete("priorityclasses.scheduling.k8s.io", None, "system-node-critical")
