"""Every kind of job that the embedded control plane serves is admitted, runs on its flavor's nodes, and is stopped.

Kinds whose pods nothing makes there are not admitted.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from control_plane import EmbeddedPlane, until
from kube import Kube, Object, Refused, node
from test_asking import mooring
from test_flavors_reach_pods import LABEL, QUEUE, TAINT, create_queue, has_tolerations
from test_live_queueing import GROUP, install_kinds, job

WORKLOADS = f"/apis/{GROUP}/namespaces/default/workloads"
OWN = {"key": "spot", "operator": "Exists"}


def template(role: str) -> Object:
    """Pods that run until they are stopped, and tolerate something themselves."""
    made: Object = job(role, "1")["spec"]["template"]
    made["spec"]["tolerations"] = [OWN]
    made["spec"]["containers"][0] |= {"name": "node", "command": ["sleep", "infinity"]}
    made["metadata"] = {"labels": {"role": role}, "annotations": {"mooring.dev/duration": "1h"}}
    return made


def replicas(*roles: str) -> Object:
    return {role: {"replicas": 1, "template": template(role.lower())} for role in roles}


def cluster_spec() -> Object:
    workers = {"groupName": "gpu", "replicas": 1, "minReplicas": 1, "maxReplicas": 1, "template": template("worker")}
    return {"headGroupSpec": {"template": template("head")}, "workerGroupSpecs": [workers]}


def replicated(name: str, role: str) -> Object:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": role} if role else {}
    return {"name": name, "template": {"metadata": {"labels": labels}, "spec": {"template": template(name)}}}


def inner(name: str) -> Object:
    made = {key: value for key, value in job(name, "1").items() if key != "metadata"}
    made["spec"] = {**made["spec"], "suspend": False, "template": template(name)}
    return {**made, "metadata": {"name": name}}


RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {
        "mlPolicy": {"numNodes": 1, "torch": {}},
        "template": {"spec": {"replicatedJobs": [replicated("load", ""), replicated("node", "trainer")]}},
    },
}
KUBEFLOW = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob")
FIELDS = {"PyTorchJob": "pytorch", "TFJob": "tf", "XGBoostJob": "xgb", "PaddleJob": "paddle"}


def kubeflow(kind: str) -> tuple[str, Object]:
    spec = {f"{FIELDS[kind]}ReplicaSpecs": replicas("Master", "Worker"), "runPolicy": {"suspend": True}}
    return "kubeflow.org/v1", spec


MADE: dict[str, Callable[[], tuple[str, Object]]] = {
    **{kind: (lambda kind=kind: kubeflow(kind)) for kind in KUBEFLOW},  # type: ignore[misc]
    "JAXJob": lambda: (
        "kubeflow.org/v1",
        {
            "jaxReplicaSpecs": {"Worker": {"replicas": 2, "template": template("worker")}},
            "runPolicy": {"suspend": True},
        },
    ),
    "MPIJob": lambda: (
        "kubeflow.org/v2beta1",
        {"mpiReplicaSpecs": replicas("Launcher", "Worker"), "runPolicy": {"suspend": True}},
    ),
    "RayCluster": lambda: ("ray.io/v1", {**cluster_spec(), "suspend": True}),
    "RayJob": lambda: (
        "ray.io/v1",
        {
            "rayClusterSpec": cluster_spec(),
            "suspend": True,
            "entrypoint": "x",
            "shutdownAfterJobFinishes": True,
            "submitterPodTemplate": template("run"),
        },
    ),
    "TrainJob": lambda: (
        "trainer.kubeflow.org/v1alpha1",
        {"runtimeRef": {"name": "torch"}, "suspend": True, "trainer": {"numNodes": 2}},
    ),
    "AppWrapper": lambda: (
        "workload.codeflare.dev/v1beta2",
        {"suspend": True, "components": [{"template": inner("first")}, {"template": inner("second")}]},
    ),
}
COUNTS = {"TrainJob": 3, "RayJob": 3}
"""How many pods there are of a kind, if not two."""


@pytest.fixture
def served(embedded: EmbeddedPlane, tmp_path: Path) -> Iterator[Kube]:
    """Two nodes of a flavor with taints, a plain one, and quota for eight CPUs."""
    with Kube(embedded.kubeconfig, tmp_path) as cluster:
        cluster.clean()
        install_kinds(cluster)
        taints = [{"key": TAINT, "value": "gpu", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        cluster.create(node("plain"))
        for at in range(2):
            cluster.create({**node(f"gpu-{at}", cpu=8, labels=LABEL), "spec": {"taints": taints}})
        create_queue(cluster)
        with suppress(Refused):
            cluster.create(RUNTIME)
        yield cluster


def path_of(kind: str, api_version: str) -> str:
    return f"/apis/{api_version}/namespaces/default/{kind.lower()}s"


@pytest.mark.parametrize("kind", sorted(MADE))
def test_a_job_of_every_kind_runs_on_its_flavor_until_it_is_stopped(served: Kube, kind: str) -> None:
    api_version, spec = MADE[kind]()
    metadata = {"name": "train", "namespace": "default", "labels": QUEUE}
    served.create({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    path = f"{path_of(kind, api_version)}/train"
    before = served.call("GET", path)
    served.run(name="mooring")

    def running() -> list[Object]:
        return [pod for pod in served.pods().values() if (pod.get("status") or {}).get("phase") == "Running"]

    try:
        until(lambda: len(running()) == COUNTS.get(kind, 2), 60)
        for pod in running():
            name = pod["metadata"]["name"]
            assert pod["spec"]["nodeName"] in ("gpu-0", "gpu-1"), name
            assert pod["spec"]["nodeSelector"] == LABEL, name
            assert has_tolerations(pod["spec"]), name
            assert any(OWN.items() <= each.items() for each in pod["spec"]["tolerations"]), name
            assert pod["metadata"]["labels"].get("kueue.x-k8s.io/podset"), name

        served.create(job("urgent", "8", {"kueue.x-k8s.io/priority-class": "high"}))
        until(lambda: not any(pod["metadata"]["name"].startswith(("train", "first")) for pod in running()), 60)
        until(lambda: asked(served.call("GET", path)) == asked(before), 30)
        name = "job/first" if kind == "AppWrapper" else f"{kind.lower()}/train"
        explained = mooring("explain", name, "-q", kubeconfig=served.kubeconfig)
        assert "insufficient unused quota for cpu in flavor gpu" in explained.stdout, explained.stderr
    finally:
        served.call("DELETE", f"{path}?propagationPolicy=Background")
        until(lambda: not [name for name in served.pods() if name.startswith(("train", "first", "second"))], 60)


def asked(found: Object) -> Any:
    """What a job asks for: admission leaves no trace of itself on one that is stopped."""
    return found["spec"], found["metadata"].get("annotations")


def test_a_kind_whose_pods_nothing_makes_holds_no_quota_and_has_an_event(served: Kube) -> None:
    part = {"cores": 4, "memory": "512m", "instances": 1}
    served.create(
        {
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            "metadata": {"name": "etl", "namespace": "default", "labels": QUEUE},
            "spec": {"suspend": True, "driver": part, "executor": part},
        }
    )
    served.run(name="mooring")
    served.create(job("train", "8"))

    assert served.wait_until_bound([next(iter(wait_for_pods(served)))])
    owners = [each["metadata"]["ownerReferences"][0]["kind"] for each in served.objects(WORKLOADS)]
    assert owners == ["Job"]
    message = (
        "this control plane makes no pods of a SparkApplication: its operator does not run here; "
        "it is not admitted to its queue"
    )
    assert ("NoController", message) in served.events("etl")
    served.call("DELETE", "/apis/sparkoperator.k8s.io/v1beta2/namespaces/default/sparkapplications/etl")


def wait_for_pods(cluster: Kube) -> dict[str, Object]:
    until(lambda: bool(cluster.pods()), 60)
    return cluster.pods()
