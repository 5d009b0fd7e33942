"""ClusterColocationProfiles change and refuse new pods as Koordinator's webhooks do."""

import json
from typing import Any

import pytest

from mooring.kubeapi.admission.chain import turn_on
from mooring.kubeapi.api import Api
from mooring.kubeapi.auth.rbac import Rbac
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.store import Store

Object = dict[str, Any]
PROFILES = "clustercolocationprofiles.config.koordinator.sh"
BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"


@pytest.fixture
def api() -> Api:
    api = Api(Store())
    for name, labels in (("lab", {"colocation": "on"}), ("shop", {})):
        api.create("namespaces", {"metadata": {"name": name, "labels": labels}})
        api.create("serviceaccounts", {"metadata": {"name": "default"}}, name)
    api.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "koord-batch"}, "value": 5000})
    turn_on(api, Rbac(api))
    return api


def profile(api: Api, **spec: Any) -> None:
    selected = {"namespaceSelector": {"matchLabels": {"colocation": "on"}}}
    api.create(PROFILES, {"metadata": {"name": "lab"}, "spec": {**selected, **spec}})


def pod(name: str = "p", **requests: str) -> Object:
    container = {"name": "main", "image": "web", "resources": {"requests": requests}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


def test_a_pod_becomes_a_batch_pod_and_asks_for_batch_resources(api: Api) -> None:
    profile(api, qosClass="BE", priorityClassName="koord-batch", labels={"lent": "yes"})

    found = api.create("pods", pod(cpu="1500m", memory="1Gi"), "lab")

    spec = found["spec"]
    assert found["metadata"]["labels"] == {"lent": "yes", "koordinator.sh/qosClass": "BE"}
    assert (spec["priorityClassName"], spec["priority"]) == ("koord-batch", 5000)
    assert spec["containers"][0]["resources"]["requests"] == {BATCH_CPU: "1500", BATCH_MEMORY: "1Gi"}
    told = json.loads(found["metadata"]["annotations"]["node.koordinator.sh/extended-resource-spec"])
    assert told == {"containers": {"main": {"requests": {BATCH_CPU: "1500", BATCH_MEMORY: "1Gi"}}}}


def test_pods_of_other_namespaces_stay_as_they_are(api: Api) -> None:
    profile(api, qosClass="BE", priorityClassName="koord-batch")

    found = api.create("pods", pod(cpu="1"), "shop")

    assert "labels" not in found["metadata"]
    assert found["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


def test_batch_resources_need_the_class_best_effort(api: Api) -> None:
    profile(api, qosClass="LS", priorityClassName="koord-batch")

    with pytest.raises(ApiError, match="must specify koordinator QoS BE") as refused:
        api.create("pods", pod(cpu="1"), "lab")

    assert (refused.value.code, api.list("pods")) == (403, [])


def test_a_profile_with_a_class_that_is_not_there_refuses_pods(api: Api) -> None:
    profile(api, priorityClassName="gone")

    with pytest.raises(ApiError, match='no PriorityClass "gone"'):
        api.create("pods", pod(cpu="1"), "lab")


def test_a_patch_is_merged_container_by_container(api: Api) -> None:
    profile(api, patch={"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}})

    found = api.create("pods", pod(cpu="1"), "lab")

    (container,) = found["spec"]["containers"]
    assert container["image"] == "web"
    assert container["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
