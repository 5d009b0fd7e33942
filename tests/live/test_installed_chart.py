"""The chart as Helm renders it, on a cluster: Mooring runs with exactly the rights and the flags that it gives."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from control_plane import free_port, until
from kube import Kube, Object, node, pod

sys.path.append(str(Path(__file__).parents[1] / "deploy"))
from rendering import render, renderer

__all__ = ["renderer"]
INSTALLED_IN = "mooring-system"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


def install(cluster: Kube, renderer: Path, directory: Path, **values: Any) -> list[str]:
    """Do what `helm install` does, and give this test's client the account of Mooring's pods; the flags of those."""
    documents = render(renderer, INSTALLED_IN, **values)
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": INSTALLED_IN}}
    if INSTALLED_IN not in {each["metadata"]["name"] for each in cluster.objects("/api/v1/namespaces")}:
        cluster.create(namespace)
    for document in documents.values():
        cluster.delete(document)
        cluster.create(document)
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.call("POST", f"/api/v1/namespaces/{INSTALLED_IN}/serviceaccounts/mooring/token", wanted)
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    context = next(each for each in document["contexts"] if each["name"] == document["current-context"])["context"]
    user = next(each for each in document["users"] if each["name"] == context["user"])
    user["user"] = {"token": token["status"]["token"]}
    cluster.kubeconfig = directory / "mooring.kubeconfig"
    cluster.kubeconfig.write_text(yaml.safe_dump(document))
    config = directory / "config.yaml"
    config.write_text(documents["ConfigMap", "mooring"]["data"]["config.yaml"])
    command, *given = documents["Deployment", "mooring"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert command == "run"
    there = {"/etc/mooring/config.yaml": str(config), "0.0.0.0:10259": f"127.0.0.1:{free_port()}"}
    return [f"{name}={there.get(value, value)}" for name, _, value in (each.partition("=") for each in given)]


@pytest.mark.parametrize("scheduler_name", ["mooring", "default-scheduler"])
def test_installed_by_helm_it_schedules_beside_kube_scheduler_and_in_its_place(
    cluster: Kube, renderer: Path, tmp_path: Path, scheduler_name: str
) -> None:
    cluster.create(node("n0"))
    flags = install(cluster, renderer, tmp_path, schedulerName=scheduler_name)

    scheduler = cluster.run(*flags, leads=True)
    cluster.create(pod("mine", schedulerName=scheduler_name), pod("anothers", schedulerName="somebody-else"))

    assert cluster.wait_until_bound(["mine"]) == {"mine": "n0"}
    assert cluster.by_node()[""] == 1
    until(lambda: ("Scheduled", "Successfully assigned default/mine to n0") in cluster.events("mine"), 10)
    if scheduler_name == "default-scheduler":
        assert cluster.call("GET", LEASE)["spec"]["holderIdentity"]
    assert scheduler.stop() == 0
    assert "forbidden" not in scheduler.log.read_text()
