"""The training jobs of Kubeflow and the clusters of Ray make their pods; of other kinds it is said that they do not."""

from functools import partial
from typing import Any

import pytest
from worlds import Object, World, template

from mooring.kubeapi.controllers.conditions import is_true
from mooring.kubeapi.controllers.garbage_collector import GarbageCollector
from mooring.kubeapi.controllers.jobs import Jobs
from mooring.kubeapi.controllers.not_here import NotMade
from mooring.kubeapi.controllers.training_jobs import KINDS, TrainingJobs
from mooring.kubeapi.kinds.foreign import NOT_MADE


def make_world() -> World:
    made = [partial(TrainingJobs, kind=kind) for kind in KINDS]
    said = [partial(NotMade, resource=resource) for resource in NOT_MADE]
    return World(*made, *said, Jobs, GarbageCollector)


def lasting(duration: str, **annotations: str) -> Object:
    made = template()
    made["spec"]["containers"][0]["command"] = ["train"]
    made["metadata"]["annotations"] = {"mooring.dev/duration": duration, **annotations}
    return made


def replicas(count: int, duration: str = "1h", **annotations: str) -> Object:
    return {"replicas": count, "template": lasting(duration, **annotations)}


def job(kind: str, version: str, field: str, specs: dict[str, Object], **policy: Any) -> Object:
    spec = {field: specs, "runPolicy": policy}
    return {"apiVersion": f"kubeflow.org/{version}", "kind": kind, "metadata": {"name": "train"}, "spec": spec}


@pytest.mark.parametrize(
    ("resource", "made", "names"),
    [
        pytest.param(
            "pytorchjobs.kubeflow.org",
            job("PyTorchJob", "v1", "pytorchReplicaSpecs", {"Master": replicas(1, "20s"), "Worker": replicas(2)}),
            ["train-master-0", "train-worker-0", "train-worker-1"],
            id="PyTorchJob",
        ),
        pytest.param(
            "tfjobs.kubeflow.org",
            job("TFJob", "v1", "tfReplicaSpecs", {"Chief": replicas(1, "20s"), "PS": replicas(1)}),
            ["train-chief-0", "train-ps-0"],
            id="TFJob",
        ),
    ],
)
def test_a_training_job_makes_its_pods_and_ends_with_its_first(resource: str, made: Object, names: list[str]) -> None:
    world = make_world()
    world.create(resource, made)

    world.run(5)
    assert sorted(world.phases()) == names
    assert set(world.phases().values()) == {"Running"}
    assert world.get("pods", names[-1])["spec"]["containers"][0]["command"] == ["train"]
    assert world.get("pods", names[-1])["spec"]["restartPolicy"] == "OnFailure"
    assert is_true(world.get(resource, "train"), "Running")
    world.run(60)

    assert is_true(world.get(resource, "train"), "Succeeded")
    assert [name for name, phase in world.phases().items() if phase == "Running"] == []


def test_an_mpi_job_of_v2_has_a_job_for_its_launcher() -> None:
    world = make_world()
    specs = {"Launcher": replicas(1, "20s"), "Worker": replicas(2)}
    world.create("mpijobs.kubeflow.org", job("MPIJob", "v2beta1", "mpiReplicaSpecs", specs))

    world.run(5)
    assert [each["metadata"]["name"] for each in world.api.list("jobs.batch")] == ["train-launcher"]
    assert len(world.phases()) == 3
    world.run(60)

    assert is_true(world.get("mpijobs.kubeflow.org", "train"), "Succeeded")


def test_a_suspended_training_job_has_no_pods_until_it_is_resumed() -> None:
    world = make_world()
    specs = {"Worker": replicas(2)}
    resource = "pytorchjobs.kubeflow.org"
    world.create(resource, job("PyTorchJob", "v1", "pytorchReplicaSpecs", specs, suspend=True))

    world.run(5)
    assert world.phases() == {}
    assert is_true(world.get(resource, "train"), "Suspended")
    world.change(resource, "train", lambda found: found["spec"]["runPolicy"].update(suspend=False))
    world.run(5)
    assert sorted(world.phases()) == ["train-worker-0", "train-worker-1"]
    world.change(resource, "train", lambda found: found["spec"]["runPolicy"].update(suspend=True))
    world.run(60)
    assert world.phases() == {}


def ray_cluster() -> Object:
    worker = {"groupName": "gpu", "replicas": 2, "minReplicas": 0, "maxReplicas": 4, "template": lasting("1h")}
    return {"headGroupSpec": {"rayStartParams": {}, "template": lasting("1h")}, "workerGroupSpecs": [worker]}


def test_a_ray_cluster_has_a_head_and_its_workers() -> None:
    world = make_world()
    world.create("rayclusters.ray.io", {"metadata": {"name": "ray"}, "kind": "RayCluster", "spec": ray_cluster()})

    world.run(5)

    assert sorted(world.phases()) == ["ray-gpu-worker-0", "ray-gpu-worker-1", "ray-head"]
    assert world.get("rayclusters.ray.io", "ray")["status"]["state"] == "ready"


def test_a_ray_job_has_a_cluster_and_ends_with_its_submitter() -> None:
    world = make_world()
    submitter = lasting("20s")
    submitter["spec"]["restartPolicy"] = "Never"
    spec = {"rayClusterSpec": ray_cluster(), "submitterPodTemplate": submitter, "entrypoint": "python train.py"}
    world.create("rayjobs.ray.io", {"metadata": {"name": "train"}, "kind": "RayJob", "spec": spec})

    world.run(5)
    assert len(world.phases()) == 4
    assert world.get("rayjobs.ray.io", "train")["status"].get("jobDeploymentStatus") is None
    assert [each["metadata"]["name"] for each in world.api.list("rayclusters.ray.io")] == ["train-raycluster"]
    world.run(60)

    assert world.get("rayjobs.ray.io", "train")["status"]["jobDeploymentStatus"] == "Complete"


def test_of_a_kind_whose_pods_nobody_makes_it_is_said() -> None:
    world = make_world()
    world.create(
        "sparkapplications.sparkoperator.k8s.io", {"metadata": {"name": "etl"}, "kind": "SparkApplication", "spec": {}}
    )

    world.run(5)

    events = [(each["reason"], each["message"]) for each in world.api.list("events")]
    message = "this control plane makes no pods of a SparkApplication: its operator does not run here"
    assert ("NoController", message) in events
