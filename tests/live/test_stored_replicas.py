"""Replicas that a server stores, with what its admission plugins give each, are of one shape."""

import msgspec
from kube import Kube, pod

from mooring.model.api.pods import Pod
from mooring.model.events import PodSeen
from mooring.state.cluster import Cluster

REPLICAS = 600


def test_600_replicas_have_one_shape(cluster: Kube) -> None:
    replica = pod("", labels={"app": "server", "pod-template-hash": "7c5ddbdf54"})
    replica["metadata"] = {
        "generateName": "server-7c5ddbdf54-",
        "namespace": "default",
        "labels": replica["metadata"]["labels"],
    }
    cluster.create(*[replica] * REPLICAS)

    stored = list(cluster.pods().values())
    state = Cluster()
    state.observe(*(PodSeen(msgspec.convert(found, Pod)) for found in stored))

    tokens = {volume["name"] for found in stored for volume in found["spec"]["volumes"]}
    assert len(tokens) == len(stored) == REPLICAS
    assert state.shapes.in_use == 1
