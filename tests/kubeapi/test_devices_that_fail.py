"""Devices that have to be prepared before their pod is bound: by `mooring run`, on an API server."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from running import Client, Object, Running

from mooring.kubeapi.auth.kubeconfig import write_kubeconfig

GROUP = "/apis/resource.k8s.io/v1"
CLAIM = f"{GROUP}/namespaces/default/resourceclaims/c"
POD = "/api/v1/namespaces/default/pods/p"
SECONDS = 60.0


@contextmanager
def scheduling(server: Running, folder: Path, binding_timeout: str) -> Iterator[None]:
    write_kubeconfig(folder / "kubeconfig", server.cluster.kubeconfig())
    arguments = [{"name": "DynamicResources", "args": {"bindingTimeout": binding_timeout}}]
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    (folder / "config.yaml").write_text(json.dumps(config | {"profiles": [{"pluginConfig": arguments}]}))
    command = [sys.executable, "-m", "mooring", "run", "--leader-elect=false", "--health-address", "127.0.0.1:0"]
    options = [f"--kubeconfig={folder / 'kubeconfig'}", f"--config={folder / 'config.yaml'}"]
    program = subprocess.Popen([*command, *options])
    try:
        yield
    finally:
        program.terminate()
        program.wait(30)


@pytest.fixture
def cluster(client: Client) -> Iterator[Client]:
    """Two nodes with a GPU each that has to be attached, a claim, and a pod that names it."""
    made = [f"/api/v1/nodes/{name}" for name in "ab"] + [f"{GROUP}/resourceslices/{name}" for name in "ab"]
    for name in "ab":
        status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}
        create(client, "/api/v1/nodes", {"metadata": {"name": name}, "status": status})
        create(client, f"{GROUP}/resourceslices", gpu_of(name))
    create(client, f"{GROUP}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    create(client, CLAIM.rpartition("/")[0], claim)
    containers = [{"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}]
    spec = {"containers": containers, "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    create(client, POD.rpartition("/")[0], {"metadata": {"name": "p"}, "spec": spec})
    yield client
    for path in (POD + "?gracePeriodSeconds=0", CLAIM, f"{GROUP}/deviceclasses/gpu", *made):
        client.ask("DELETE", path)
    client.ask("PATCH", CLAIM, {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json")


def create(client: Client, path: str, found: Object) -> None:
    code, answer = client.ask("POST", path, found)
    assert code == 201, answer


def gpu_of(node: str) -> Object:
    device = {"name": "gpu", "bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [device]}
    return {"metadata": {"name": node}, "spec": spec}


def until(client: Client, path: str, holds: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + SECONDS
    while True:
        _, found = client.get(path)
        if holds(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def pool_of(claim: Any) -> str:
    """The node whose GPU a claim has; nothing if it has none."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return str(allocation["devices"]["results"][0]["pool"]) if allocation else ""


def say(client: Client, condition: str) -> None:
    """What the driver says of the device that the claim has."""
    _, claim = client.get(CLAIM)
    said = {
        "type": condition,
        "status": "True",
        "reason": "Said",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    device = {"driver": "gpu.example.com", "pool": pool_of(claim), "device": "gpu", "conditions": [said]}
    claim["status"]["devices"] = [device]
    code, answer = client.ask("PUT", f"{CLAIM}/status", claim)
    assert code == 200, answer


def taint(client: Client, name: str) -> None:
    _, found = client.get(f"{GROUP}/resourceslices/{name}")
    found["spec"]["devices"][0]["taints"] = [{"key": "sick", "effect": "NoSchedule"}]
    code, answer = client.ask("PUT", f"{GROUP}/resourceslices/{name}", found)
    assert code == 200, answer


def test_a_pod_gets_another_device_where_its_first_cannot_be_prepared(
    server: Running, cluster: Client, tmp_path: Path
) -> None:
    with scheduling(server, tmp_path, "600s"):
        first = pool_of(until(cluster, CLAIM, pool_of))  # type: ignore[arg-type]
        taint(cluster, first)
        say(cluster, "broken")
        second = pool_of(until(cluster, CLAIM, lambda claim: pool_of(claim) not in ("", first)))
        say(cluster, "attached")
        pod = until(cluster, POD, lambda pod: pod["spec"].get("nodeName"))

    assert {first, second} == {"a", "b"}
    assert pod["spec"]["nodeName"] == second


def test_devices_that_are_not_prepared_in_time_are_given_back(server: Running, cluster: Client, tmp_path: Path) -> None:
    with scheduling(server, tmp_path, "1s"):
        first = pool_of(until(cluster, CLAIM, pool_of))  # type: ignore[arg-type]
        taint(cluster, first)
        second = pool_of(until(cluster, CLAIM, lambda claim: pool_of(claim) not in ("", first)))

    assert {first, second} == {"a", "b"}
