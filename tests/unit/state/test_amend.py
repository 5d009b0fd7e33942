"""A pod that exists is changed by a decision: it stays where it is, and a trial undoes all that follows from it."""

import numpy as np
import pytest

from mooring.model.api.pods import Pod, ResourceRequirements
from mooring.model.events import PodSeen
from mooring.model.gangs.membership import GANG, GANG_NAME
from mooring.model.keys import PodKey
from mooring.model.pod_patch import PodPatch
from mooring.state.cluster import Cluster
from mooring.testing.builders import ZONE, make_cluster, make_node, make_pod, make_spread, make_toleration

KEY = PodKey("default/pod")


def resized(pod: Pod, **requests: str) -> PodPatch:
    return PodPatch.of(resources={pod.spec.containers[0].name: ResourceRequirements(requests=dict(requests))})


def taken(cluster: Cluster) -> list[int]:
    found: list[int] = cluster.rows().requested("cpu").tolist()
    return found


def test_a_bound_pod_that_is_resized_counts_with_its_new_request() -> None:
    pod = make_pod("pod", cpu=2, node="a")
    cluster = make_cluster(nodes=[make_node("a", cpu=8)], pods=[pod])
    start = cluster.pod_changes.position

    with cluster.what_if():
        cluster.amend(KEY, resized(pod, cpu="5"))

        assert taken(cluster) == [5000]
        assert (cluster.pods.records[KEY].row, cluster.pods.records[KEY].node_name) == (0, "a")
        changes = cluster.pod_changes.since(start)
        assert changes is not None
        assert changes[2].tolist() == [-1, 1]

    assert taken(cluster) == [2000]
    assert cluster.pods.records[KEY].pod is pod


def test_an_assumed_pod_keeps_its_place() -> None:
    pod = make_pod("pod", cpu=2)
    cluster = make_cluster(nodes=[make_node("a", cpu=8)], pods=[pod])
    cluster.assume(KEY, 0)

    cluster.amend(KEY, PodPatch.of(tolerations=[make_toleration("spot", operator="Exists")]))

    record = cluster.pods.records[KEY]
    assert (record.assumed, record.row, taken(cluster)) == (True, 0, [2000])
    assert [found.key for found in record.shape.spec.tolerations or ()] == ["spot"]


def test_a_waiting_pod_gets_all_that_a_patch_says_and_nothing_twice() -> None:
    toleration = make_toleration("spot", operator="Exists")
    pod = make_pod("pod", cpu=2, tolerations=[toleration], labels={"app": "x"}, gates=["queue", "other"])
    patch = PodPatch.of(
        node_selector={"pool": "gpu"},
        tolerations=[toleration],
        labels={"app": "y"},
        annotations={"note": "1"},
        removed_gates=["queue"],
        resources={pod.spec.containers[0].name: ResourceRequirements(limits={"cpu": "3"})},
    )

    found = patch.apply(pod)

    assert found.spec.node_selector == {"pool": "gpu"}
    assert found.spec.tolerations == [toleration]
    assert [gate.name for gate in found.spec.scheduling_gates or ()] == ["other"]
    assert (found.metadata.labels, found.metadata.annotations) == ({"app": "y"}, {"note": "1"})
    resources = found.spec.containers[0].resources
    assert resources is not None
    assert (resources.requests, resources.limits) == (pod.spec.containers[0].resources.requests, {"cpu": "3"})  # type: ignore[union-attr]
    assert (pod.metadata.labels, pod.spec.node_selector) == ({"app": "x"}, None)
    assert patch == PodPatch.of(
        node_selector={"pool": "gpu"},
        tolerations=[toleration],
        labels={"app": "y"},
        annotations={"note": "1"},
        removed_gates=["queue"],
        resources={pod.spec.containers[0].name: ResourceRequirements(limits={"cpu": "3"})},
    )


def test_pods_of_one_spec_share_the_new_one() -> None:
    pods = [make_pod(f"pod-{i}", cpu=1, node="a") for i in range(3)]
    for pod in pods[1:]:
        pod.spec = pods[0].spec
    cluster = make_cluster(nodes=[make_node("a", cpu=64)], pods=pods)
    patch = resized(pods[0], cpu="3")

    for pod in pods:
        cluster.amend(pod.key, patch)

    records = [cluster.pods.records[pod.key] for pod in pods]
    assert len({id(record.pod.spec) for record in records}) == 1
    assert len({record.shape.id for record in records}) == 1
    assert taken(cluster) == [9000]


def test_a_pod_that_names_another_gang_is_among_its_members_until_that_is_undone() -> None:
    pods = [make_pod(f"pod-{i}", annotations={GANG: "one", GANG_NAME: "one"}) for i in range(3)]
    cluster = make_cluster(nodes=[make_node("a")], pods=pods)
    gangs = cluster.gangs
    before = {key: list(record.members) for key, record in gangs.records.items()}

    with cluster.what_if():
        cluster.amend(pods[0].key, PodPatch.of(annotations={GANG: "two", GANG_NAME: "two"}))
        assert {len(record.members) for record in gangs.records.values()} == {1, 2}

    assert {key: list(record.members) for key, record in gangs.records.items()} == before
    assert set(gangs.of_pod) == {pod.key for pod in pods}


@pytest.mark.parametrize("bound", [False, True])
def test_a_shape_that_pods_were_told_apart_by_meanwhile_is_found_anew(bound: bool) -> None:
    pods = [make_pod(name, cpu=1, labels={"app": name}, node="a" if bound else "") for name in ("x", "y")]
    cluster = make_cluster(nodes=[make_node("a")], pods=pods)

    with cluster.what_if():
        cluster.amend(pods[0].key, resized(pods[0], cpu="3"))
        cluster.shape_for(make_pod("z", spread=[make_spread(ZONE, labels={"app": "x"})]))

    x, y = (cluster.pods.records[pod.key] for pod in pods)
    assert x.shape is not y.shape
    assert x.shape.selected_labels == {"app": "x"}
    assert np.array_equal(cluster.pods.shape.values[:2], [x.shape.id, y.shape.id])


def test_a_running_pod_that_was_resized_keeps_its_place_its_slot_and_its_gpu() -> None:
    def half(cpu: int, node: str = "") -> Pod:
        return make_pod("pod", cpu=cpu, node=node, annotations={"gpu-fraction": "0.5"})

    labels = {"nvidia.com/gpu.memory": "16000"}
    cluster = make_cluster(nodes=[make_node("a", cpu=8, gpu=2, labels=labels)], pods=[half(1)])
    cluster.assume(KEY, 0)
    cluster.observe(PodSeen(half(1, "a")))
    record, held = cluster.pods.records[KEY], cluster.card_holders.shares_of(KEY)

    cluster.observe(PodSeen(half(3, "a")))

    assert cluster.pods.records[KEY] is record
    assert (record.row, taken(cluster), record.assumed) == (0, [3000], False)
    assert held
    assert cluster.card_holders.shares_of(KEY) == held
