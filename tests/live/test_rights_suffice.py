"""The rights in deploy/manifests are enough for what `mooring run` does: pods, claims of devices, gangs, queues."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from control_plane import free_port, until
from kube import Kube, Object, Refused, node, pod
from test_failures import get
from test_live_queueing import GROUP, install_kinds, job, suspended, true_conditions

RIGHTS = Path(__file__).parents[2] / "deploy" / "manifests" / "rbac.yaml"
DEVICES = "resource.k8s.io/v1"
COUNTING_PREEMPTIONS = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig: [{name: PreemptionCost, args: {mostPreemptionsPerWorkload: 9}}]
"""
"""So that the scheduler has something to remember."""


@pytest.fixture
def deployed(cluster: Kube, tmp_path: Path) -> Iterator[Kube]:
    """A cluster whose schedulers have the rights that are deployed; the test itself may do everything."""
    for found in yaml.safe_load_all(RIGHTS.read_text()):
        cluster.delete(found)
        cluster.create(found)
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.call("POST", "/api/v1/namespaces/kube-system/serviceaccounts/mooring/token", wanted)
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    context = next(each for each in document["contexts"] if each["name"] == document["current-context"])["context"]
    next(each for each in document["users"] if each["name"] == context["user"])["user"] = {
        "token": token["status"]["token"]
    }
    cluster.kubeconfig = tmp_path / "mooring.kubeconfig"
    cluster.kubeconfig.write_text(yaml.safe_dump(document))
    yield cluster
    cluster.delete(*device_objects())


def device_objects() -> list[Object]:
    """A class of devices that also serves an extended resource, and two of them on a node."""
    devices = [{"name": f"gpu-{number}"} for number in range(2)]
    return [
        {
            "apiVersion": DEVICES,
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {
                "selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}],
                "extendedResourceName": "example.com/gpu",
            },
        },
        {
            "apiVersion": DEVICES,
            "kind": "ResourceSlice",
            "metadata": {"name": "n0-gpus"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "n0",
                "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
            },
        },
    ]


def test_the_rights_that_are_deployed_are_enough(deployed: Kube, tmp_path: Path) -> None:
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 9}
    deployed.create(urgent, node("n0", cpu=2))
    config = tmp_path / "config.yaml"
    config.write_text(COUNTING_PREEMPTIONS)
    remembered = "/api/v1/namespaces/kube-system/configmaps/mooring-memory-mooring"
    with suppress(Refused):
        deployed.call("DELETE", remembered)
    scheduler = deployed.run(f"--config={config}", "--share-nodes", "--leader-elect-resource-name=mooring", leads=True)
    deployed.create(pod("low", cpu="2"))
    deployed.wait_until_bound(["low"])
    deployed.create(pod("high", cpu="2", priorityClassName="urgent"), pod("later", cpu="2"))
    deployed.wait_until_bound(["high"])
    until(lambda: ("Scheduled", "Successfully assigned default/high to n0") in deployed.events("high"), 10)
    until(lambda: any(reason == "FailedScheduling" for reason, _ in deployed.events("later")), 10)
    assert scheduler.stop() == 0
    assert "forbidden" not in scheduler.log.read_text()
    assert "default/low" in deployed.call("GET", remembered)["data"]["preemptions"]


def test_the_rights_are_enough_for_claims_of_devices(deployed: Kube) -> None:
    claims = f"/apis/{DEVICES}/namespaces/default/resourceclaims"
    deployed.call("DELETE", claims)
    deployed.delete(*device_objects())
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    claim = {
        "apiVersion": DEVICES,
        "kind": "ResourceClaim",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
    deployed.create(node("n0"), *device_objects(), claim)
    scheduler = deployed.run("--leader-elect-resource-name=mooring", leads=True)
    extended = pod("extended")
    extended["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
    extended["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    deployed.create(pod("claiming", resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}]), extended)
    until(lambda: deployed.by_node() == {"n0": 2}, 30, scheduler.tail)
    given = {
        each["metadata"].get("annotations", {}).get("resource.kubernetes.io/extended-resource-claim", "false"): [
            found["name"] for found in each["status"]["reservedFor"]
        ]
        for each in deployed.objects(claims)
    }
    assert given == {"false": ["claiming"], "true": ["extended"]}
    assert scheduler.stop() == 0
    assert "forbidden" not in scheduler.log.read_text()


def test_the_rights_are_enough_for_queues(deployed: Kube) -> None:
    install_kinds(deployed)
    quotas = [{"name": "cpu", "nominalQuota": "4"}, {"name": "memory", "nominalQuota": "1Gi"}]
    flavors = [{"name": "default", "resources": quotas}]
    deployed.create(
        {"apiVersion": GROUP, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}},
        {
            "apiVersion": GROUP,
            "kind": "ClusterQueue",
            "metadata": {"name": "team"},
            "spec": {
                "namespaceSelector": {},
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": flavors}],
            },
        },
        {
            "apiVersion": GROUP,
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": "default"},
            "spec": {"clusterQueue": "team"},
        },
        {"apiVersion": GROUP, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 100},
        node("n0", cpu=16),
    )
    scheduler = deployed.run("--leader-elect-resource-name=mooring", leads=True)
    deployed.create(job("one", "3"))
    until(lambda: true_conditions(deployed).get("one") == {"QuotaReserved", "Admitted"}, 30, scheduler.tail)
    until(lambda: suspended(deployed) == {"one": False}, 20, scheduler.tail)
    gated = pod("gated", cpu="1", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    gated["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/managed": "true"}
    deployed.create(gated)
    deployed.wait_until_bound(["gated"])
    deployed.create(job("urgent", "4", {"kueue.x-k8s.io/priority-class": "high"}))
    until(lambda: suspended(deployed) == {"one": True, "urgent": False}, 30, scheduler.tail)
    until(lambda: "Evicted" in true_conditions(deployed)["one"], 20, scheduler.tail)
    assert scheduler.stop() == 0
    assert "forbidden" not in scheduler.log.read_text()


def test_who_may_read_but_not_bind_is_not_ready(deployed: Kube) -> None:
    role = next(each for each in yaml.safe_load_all(RIGHTS.read_text()) if each["kind"] == "ClusterRole")
    reading = [rule for rule in role["rules"] if rule["verbs"] == ["get", "list", "watch"]]
    deployed.delete(role)
    deployed.create({**role, "rules": reading}, node("n0"), pod("one"))
    address = f"127.0.0.1:{free_port()}"
    scheduler = deployed.run(f"--health-address={address}")
    scheduler.wait_until_it_says("this user may not create pods/binding in all namespaces: no pod can be bound")
    scheduler.wait_until_it_says("scheduling for")
    until(lambda: "[+]informer-sync ok" in get(f"{address}/readyz")[1], 20, scheduler.tail)
    code, text = get(f"{address}/readyz")
    assert code == 503
    assert [line for line in text.splitlines() if "right" in line] == [
        "[-]right-to-create-pods/binding not given in all namespaces: no pod can be bound",
        "[~]right-to-patch-pods/status not given in all namespaces: pods are not told why they wait",
        "[~]right-to-delete-pods not given in all namespaces: nobody can be evicted",
        "[~]right-to-create-events.events.k8s.io not given in all namespaces: no events are written",
    ]
    deployed.delete(role)
    deployed.create(role)
    until(lambda: get(f"{address}/readyz")[0] == 200, 60, scheduler.tail)  # it asks when something is refused
    deployed.wait_until_bound(["one"])
