"""Pods of one template are of one shape, as an API server with all its admission plugins stores them."""

import json
from typing import Any

import msgspec
import pytest

from mooring.model.api.pods import Pod
from mooring.model.events import PodSeen
from mooring.state.cluster import Cluster

REPLICAS = 600
OWNERS = {
    "ReplicaSet": ("apps/v1", "ReplicaSet", "server-7c5ddbdf54"),
    "StatefulSet": ("apps/v1", "StatefulSet", "server"),
    "Job": ("batch/v1", "Job", "train"),
}


def stored(index: int, owner: str, **spec: Any) -> dict[str, Any]:
    """A pod as the API server returns it; replicas differ in what controllers and admission plugins give them."""
    api_version, kind, owner_name = OWNERS[owner]
    random = f"{index * 2654435761 % 0xFFFFF:05x}"
    name = f"{owner_name}-{index if kind == 'StatefulSet' else random}"
    labels: dict[str, dict[str, str]] = {
        "ReplicaSet": {"app": "server", "pod-template-hash": "7c5ddbdf54"},
        "StatefulSet": {
            "app": "server",
            "controller-revision-hash": "server-58b6",
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(index),
        },
        "Job": {
            "batch.kubernetes.io/controller-uid": "5d9e",
            "batch.kubernetes.io/job-name": owner_name,
            "batch.kubernetes.io/job-completion-index": str(index),
        },
    }
    token = f"kube-api-access-{random}"
    volumes = [
        {"name": "scratch", "emptyDir": {}},
        {
            "name": token,
            "projected": {
                "defaultMode": 420,
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                ],
            },
        },
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"{owner_name}-",
            "namespace": "default",
            "uid": f"uid-{index}",
            "resourceVersion": str(1000 + index),
            "creationTimestamp": f"2026-01-01T00:{index // 60:02}:{index % 60:02}Z",
            "labels": labels[owner],
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)} if kind == "Job" else {},
            "ownerReferences": [
                {"apiVersion": api_version, "kind": kind, "name": owner_name, "uid": "5d9e", "controller": True}
            ],
            "finalizers": ["batch.kubernetes.io/job-tracking"] if kind == "Job" else [],
        },
        "spec": {
            "hostname": name,
            "subdomain": "server",
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
            ],
            "containers": [
                {
                    "name": "main",
                    "image": "pause",
                    "env": [{"name": "POD_NAME", "value": name}, {"name": "JOB_COMPLETION_INDEX", "value": str(index)}],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    "volumeMounts": [{"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                }
            ],
            **spec,
            "volumes": [*spec.get("volumes", []), *volumes],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def shapes_of(pods: list[dict[str, Any]]) -> int:
    cluster = Cluster()
    cluster.observe(*(PodSeen(msgspec.json.decode(json.dumps(pod), type=Pod)) for pod in pods))
    return cluster.shapes.in_use


@pytest.mark.parametrize("owner", list(OWNERS))
def test_all_replicas_have_one_shape_although_each_has_a_token_volume_of_its_own(owner: str) -> None:
    assert shapes_of([stored(index, owner) for index in range(REPLICAS)]) == 1


def test_volumes_that_scheduling_reads_tell_pods_apart_whatever_their_names() -> None:
    def pod(index: int, **volume: Any) -> dict[str, Any]:
        return stored(index, "ReplicaSet", volumes=[{"name": f"data-{index}", **volume}])

    one = {"persistentVolumeClaim": {"claimName": "one"}}
    other = {"persistentVolumeClaim": {"claimName": "other"}}
    image = {"image": {"reference": "registry.example.com/model:v1"}}

    assert shapes_of([pod(0, **one), pod(1, **one)]) == 1
    assert shapes_of([pod(0, **one), pod(1, **other)]) == 2
    assert shapes_of([pod(0, **one), pod(1, emptyDir={})]) == 2
    assert shapes_of([pod(0, **image), pod(1, emptyDir={})]) == 2


def test_pods_with_ephemeral_claims_share_nothing() -> None:
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}

    assert shapes_of([stored(index, "ReplicaSet", volumes=[volume]) for index in range(3)]) == 3
