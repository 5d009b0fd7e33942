"""What admission writes into the templates of jobs of every kind, and that nothing of it is left afterwards."""

import copy
from typing import Any

import pytest

from mooring.drivers.live.workloads.templates import (
    Given,
    merge_patch,
    pod_changes,
    restored,
    started,
    template_paths,
    with_value,
)
from mooring.model.api.pods import SchedulingGate, Toleration
from mooring.model.objects.kinds import decode, find_kind
from mooring.model.places import Place
from mooring.model.pod_patch import PodPatch
from mooring.testing.builders import make_pod

TOLERATION = {"key": "dedicated", "operator": "Exists"}
PATCH = PodPatch.of(
    node_selector={"pool": "gpu"},
    tolerations=[Toleration(key="dedicated", operator="Exists")],
    labels={"checked": "yes"},
    annotations={"note": "by a check"},
)
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "train"}},
    "spec": {"containers": [{"name": "main", "image": "i"}], "nodeSelector": {"arch": "amd64"}},
}


def template() -> dict[str, Any]:
    return copy.deepcopy(TEMPLATE)


def training(kind: str, field: str) -> dict[str, Any]:
    roles = {role: {"replicas": 1, "template": template()} for role in ("Master", "Worker")}
    if kind == "MPIJob":
        roles["Launcher"] = roles.pop("Master")
    spec = {field: roles, "runPolicy": {"suspend": True}}
    return {"apiVersion": "kubeflow.org/v2beta1" if kind == "MPIJob" else "kubeflow.org/v1", "kind": kind, "spec": spec}


CLUSTER = {
    "headGroupSpec": {"template": template()},
    "workerGroupSpecs": [{"groupName": name, "replicas": 1, "template": template()} for name in ("small", "large")],
}
SPARK_PARTS = {name: {"template": template()} for name in ("driver", "executor")}
JOBS: list[tuple[dict[str, Any], tuple[str, ...], int]] = [
    (
        {"apiVersion": "batch/v1", "kind": "Job", "spec": {"suspend": True, "template": template()}},
        ("spec", "suspend"),
        1,
    ),
    (training("PyTorchJob", "pytorchReplicaSpecs"), ("spec", "runPolicy", "suspend"), 2),
    (training("MPIJob", "mpiReplicaSpecs"), ("spec", "runPolicy", "suspend"), 2),
    ({"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": {"suspend": True, **CLUSTER}}, ("spec", "suspend"), 3),
    (
        {"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": {"suspend": True, "rayClusterSpec": CLUSTER}},
        ("spec", "suspend"),
        3,
    ),
    (
        {
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            "spec": {"suspend": True, **SPARK_PARTS},
        },
        ("spec", "suspend"),
        2,
    ),
]


def find_templates(found: Any) -> list[dict[str, Any]]:
    if isinstance(found, dict):
        if "containers" in (found.get("spec") or {}):
            return [found]
        return [each for value in found.values() for each in find_templates(value)]
    return [each for value in found for each in find_templates(value)] if isinstance(found, list) else []


@pytest.mark.parametrize(("job", "fields", "count"), JOBS, ids=[each[0]["kind"] for each in JOBS])
@pytest.mark.parametrize("has_topology", [False, True])
def test_every_template_of_a_job_gets_what_its_pod_set_is_given(
    job: dict[str, Any], fields: tuple[str, ...], count: int, has_topology: bool
) -> None:
    raw = {**job, "metadata": {"name": "train", "namespace": "default"}}
    kind = find_kind(raw["apiVersion"], raw["kind"])
    assert kind is not None
    paths = template_paths(decode(raw, kind.type, Place("test"), kind.name))
    made = started(raw, fields, "job-train", paths, dict.fromkeys(paths, Given(PATCH, has_topology)))

    templates = find_templates(made["spec"])
    assert len(templates) == count
    for each in templates:
        assert each["spec"]["nodeSelector"] == {"arch": "amd64", "pool": "gpu"}
        assert each["spec"]["tolerations"] == [TOLERATION]
        assert {"app": "train", "checked": "yes"}.items() <= each["metadata"]["labels"].items()
        assert each["metadata"]["annotations"]["note"] == "by a check"
        assert ("schedulingGates" in each["spec"]) == has_topology
    again = started(with_value(made, fields, True), fields, "job-train", paths, dict.fromkeys(paths, Given(PATCH)))
    for found in (made, again):
        after = with_value(restored(found), fields, True)
        after["metadata"].pop("annotations", None)
        assert after == raw


def test_a_merge_patch_takes_away_what_is_not_there_any_more() -> None:
    old = {"a": {"b": 1, "c": [1]}, "d": 2, "same": {"x": 1}}
    new = {"a": {"c": [2]}, "e": {"f": 3}, "same": {"x": 1}}
    assert merge_patch(old, new) == {"a": {"b": None, "c": [2]}, "d": None, "e": {"f": 3}}


def test_a_pod_that_is_not_gated_gets_tolerations_and_no_node_selector() -> None:
    world = make_pod("p")
    assumed = PATCH.apply(world)
    assert pod_changes(world, assumed) == {
        "metadata": {"labels": {"checked": "yes"}, "annotations": {"note": "by a check"}},
        "spec": {"tolerations": [TOLERATION]},
    }
    assert pod_changes(assumed, assumed) == {}


def test_a_gate_opens_when_the_scheduler_has_let_the_pod_go() -> None:
    world = make_pod("p")
    world.spec.scheduling_gates = [SchedulingGate(name="kueue.x-k8s.io/admission"), SchedulingGate(name="other")]
    assumed = PodPatch.of(node_selector={"pool": "gpu"}, removed_gates=["kueue.x-k8s.io/admission"]).apply(world)
    assert pod_changes(world, world) == {}
    assert pod_changes(world, assumed) == {
        "spec": {"schedulingGates": [{"name": "other"}], "nodeSelector": {"pool": "gpu"}}
    }
