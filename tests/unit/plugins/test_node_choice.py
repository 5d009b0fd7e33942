"""What a node says of itself: names, cordons, taints, labels, ports, images, features."""

from typing import Any

import pytest
from asking_plugins import configured, refusals, remedies, scores

from mooring.engine.plugin import SKIP
from mooring.engine.verdict import Rejection
from mooring.model.api.pods import ContainerPort
from mooring.plugins.gpu_sharing import GpuSharing
from mooring.plugins.image_locality import ImageLocality
from mooring.plugins.node_affinity import NodeAffinity
from mooring.plugins.node_declared_features import NodeDeclaredFeatures
from mooring.plugins.node_name import NodeName
from mooring.plugins.node_ports import NodePorts
from mooring.plugins.node_unschedulable import NodeUnschedulable
from mooring.plugins.scheduling_gates import SchedulingGates
from mooring.plugins.taint_toleration import TaintToleration
from mooring.testing.builders import (
    make_affinity,
    make_cluster,
    make_node,
    make_nodes,
    make_pod,
    make_taint,
    make_toleration,
)

MEBIBYTE = 1 << 20


def test_a_pod_that_names_its_node_goes_nowhere_else() -> None:
    found = refusals(NodeName(), make_cluster(nodes=make_nodes(3)), make_pod(node="node-1"))

    assert sorted(found) == ["node-0", "node-2"]


def test_cordoned_nodes_take_only_pods_that_tolerate_it() -> None:
    cluster = make_cluster(nodes=[make_node("a", unschedulable=True), make_node("b")])
    stubborn = make_toleration("node.kubernetes.io/unschedulable", effect="NoSchedule")

    assert list(refusals(NodeUnschedulable(), cluster, make_pod())) == ["a"]
    assert refusals(NodeUnschedulable(), cluster, make_pod(tolerations=[stubborn])) == {}
    assert remedies(NodeUnschedulable(), cluster, make_pod()) == {"uncordon the node": ["a"]}


@pytest.mark.parametrize(
    ("toleration", "is_refused"),
    [
        pytest.param(make_toleration("dedicated", "gpu"), False, id="same key and value"),
        pytest.param(make_toleration("dedicated", "cpu"), True, id="another value"),
        pytest.param(make_toleration("dedicated"), False, id="any value"),
        pytest.param(make_toleration(), False, id="any taint"),
        pytest.param(make_toleration("dedicated", effect="NoExecute"), True, id="another effect"),
    ],
)
def test_taints_are_tolerated_by_key_value_and_effect(toleration: Any, is_refused: bool) -> None:
    cluster = make_cluster(nodes=[make_node("a", taints=[make_taint("dedicated", "gpu")])])

    found = refusals(TaintToleration(), cluster, make_pod(tolerations=[toleration]))

    assert bool(found) == is_refused


def test_a_taint_that_only_asks_to_stay_away_costs_score() -> None:
    disliked = [make_taint("old", effect="PreferNoSchedule"), make_taint("spot", effect="PreferNoSchedule")]
    cluster = make_cluster(nodes=[make_node("a", taints=disliked), make_node("b", taints=disliked[:1]), make_node("c")])

    assert refusals(TaintToleration(), cluster, make_pod()) == {}
    assert scores(TaintToleration(), cluster, make_pod()) == {"a": 0, "b": 50, "c": 100}


def test_the_remedy_names_the_one_taint_in_the_way() -> None:
    both = [make_taint("dedicated", "gpu"), make_taint("broken", effect="NoExecute")]
    cluster = make_cluster(nodes=[make_node("a", taints=both[:1]), make_node("b", taints=both)])

    found = remedies(TaintToleration(), cluster, make_pod())

    assert found == {"tolerate the taint dedicated=gpu:NoSchedule": ["a"]}


def _required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


@pytest.mark.parametrize(
    ("expression", "matching"),
    [
        ({"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}, ["ssd"]),
        ({"key": "disk", "operator": "NotIn", "values": ["ssd"]}, ["hdd", "none"]),
        ({"key": "disk", "operator": "Exists"}, ["hdd", "ssd"]),
        ({"key": "disk", "operator": "DoesNotExist"}, ["none"]),
        ({"key": "speed", "operator": "Gt", "values": ["9"]}, ["ssd"]),
        ({"key": "speed", "operator": "Lt", "values": ["9"]}, ["hdd"]),
    ],
)
def test_node_affinity_operators(expression: dict[str, Any], matching: list[str]) -> None:
    cluster = make_cluster(
        nodes=[
            make_node("ssd", labels={"disk": "ssd", "speed": "10"}),
            make_node("hdd", labels={"disk": "hdd", "speed": "1"}),
            make_node("none", labels={"speed": "fast"}),
        ]
    )
    pod = make_pod(affinity=make_affinity(nodes=_required({"matchExpressions": [expression]})))

    refused = refusals(NodeAffinity(), cluster, pod)

    assert sorted({"ssd", "hdd", "none"} - set(refused)) == matching


def test_affinity_that_the_profile_adds_is_named_as_such() -> None:
    only_ssd = _required({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]})
    plugin = configured(NodeAffinity, addedAffinity=only_ssd)

    found = refusals(plugin, make_cluster(nodes=[make_node("a")]), make_pod())

    assert found == {"a": Rejection(("node(s) didn't match scheduler-enforced node affinity",), unresolvable=True)}


def test_the_remedy_is_the_label_that_is_missing() -> None:
    cluster = make_cluster(nodes=[make_node("a"), make_node("b", labels={"disk": "ssd"})])

    found = remedies(NodeAffinity(), cluster, make_pod(node_selector={"disk": "ssd"}))

    assert found == {"label the node so that disk In [ssd] holds": ["a"]}


@pytest.mark.parametrize(
    ("held", "wanted", "collide"),
    [
        pytest.param("", "10.0.0.1", True, id="all addresses are held"),
        pytest.param("10.0.0.1", "", True, id="all addresses are wanted"),
        pytest.param("10.0.0.1", "10.0.0.1", True, id="the same address"),
        pytest.param("10.0.0.1", "10.0.0.2", False, id="different addresses"),
    ],
)
def test_host_ports_collide_by_address(held: str, wanted: str, collide: bool) -> None:
    runs = make_pod("runs", node="a", host_ports=[ContainerPort(host_port=80, host_ip=held)])
    cluster = make_cluster(nodes=[make_node("a")], pods=[runs])

    found = refusals(NodePorts(), cluster, make_pod(host_ports=[ContainerPort(host_port=80, host_ip=wanted)]))

    assert bool(found) == collide


def test_other_ports_and_protocols_are_free() -> None:
    cluster = make_cluster(nodes=[make_node("a")], pods=[make_pod("runs", node="a", host_ports=[80])])
    over_udp = ContainerPort(host_port=80, protocol="UDP")

    assert refusals(NodePorts(), cluster, make_pod(host_ports=[81, over_udp])) == {}
    assert remedies(NodePorts(), cluster, make_pod(host_ports=[80, 81])) == {"free the host port 80/TCP": ["a"]}


def test_an_image_that_is_there_counts_by_its_size_and_its_spread() -> None:
    image = {"example.com/model:1": 800 * MEBIBYTE}
    cluster = make_cluster(nodes=[make_node("a", images=image), make_node("b")])

    found = scores(ImageLocality(), cluster, make_pod(image="example.com/model:1"))

    assert found == {"a": 100 * (400 - 23) // (1000 - 23), "b": 0}


def test_an_image_without_a_tag_is_its_latest() -> None:
    cluster = make_cluster(nodes=[make_node("a", images={"model:latest": 2000 * MEBIBYTE})])

    assert scores(ImageLocality(), cluster, make_pod(image="model")) == {"a": 100}


def test_features_of_the_kubelet_are_asked_for() -> None:
    cluster = make_cluster(nodes=[make_node("old"), make_node("new", features=["UserNamespacesHostNetworkSupport"])])

    found = refusals(NodeDeclaredFeatures(), cluster, make_pod(spec={"hostNetwork": True, "hostUsers": False}))

    assert list(found) == ["old"]


def test_gates_keep_a_pod_out_of_the_queue() -> None:
    assert SchedulingGates().pre_enqueue(make_pod()) is None
    held = SchedulingGates().pre_enqueue(make_pod(gates=["a", "b"]))
    assert held == Rejection(("waiting for scheduling gates: [a b]",), unresolvable=True)


def test_a_part_of_a_gpu_is_looked_for_on_cards_and_pods_that_ask_for_different_parts_differ() -> None:
    cluster = make_cluster(
        nodes=[make_node("a", gpu=1), make_node("none")],
        pods=[make_pod("b", node="a", annotations={"gpu-fraction": "0.6"})],
    )
    half, third = (make_pod(part, annotations={"gpu-fraction": part}) for part in ("0.5", "0.3"))

    assert refusals(GpuSharing(), cluster, half) == {
        "a": Rejection(("node(s) didn't have enough free on their GPUs: 50% of 1 GPU",)),
        "none": Rejection(("node(s) didn't share GPUs in the requested way: 50% of 1 GPU",), unresolvable=True),
    }
    assert list(refusals(GpuSharing(), cluster, third)) == ["none"]
    assert GpuSharing().pre_filter(cluster.shapes.intern(make_pod(), bound=False), cluster.view) is SKIP
