"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach."""

import pytest
from volume_builders import (
    DRIVER,
    WAIT,
    make_attachment,
    make_claim,
    make_cluster,
    make_csi_node,
    make_driver,
    make_node,
    make_pod,
    make_volume,
    refusals,
    remedies,
)

from mooring.engine.plugin import SKIP
from mooring.engine.verdict import Rejection
from mooring.plugins.node_volume_limits import NodeVolumeLimits

TOO_MANY = Rejection(("node(s) exceed max volume count",))
NODES = (make_node("a"), make_node("b"))
BOUND = tuple(
    found
    for name in ("x", "y", "z")
    for found in (make_volume(f"disk-{name}", for_claim=name), make_claim(name, volume=f"disk-{name}"))
)


def test_a_node_at_its_limit_refuses_another_volume() -> None:
    cluster = make_cluster(
        *NODES,
        *BOUND,
        make_csi_node("a", limit=1),
        make_csi_node("b", limit=2),
        make_pod("one", claims=["x"], node="a"),
        make_pod("two", claims=["x"], node="b"),
    )

    assert refusals(NodeVolumeLimits(), cluster, make_pod(claims=["y"])) == {"a": TOO_MANY}


def test_a_volume_that_is_on_the_node_already_takes_no_further_place() -> None:
    cluster = make_cluster(
        *NODES,
        *BOUND,
        make_csi_node("a", limit=1),
        make_csi_node("b", limit=0),
        make_pod("one", claims=["x"], node="a"),
    )

    assert refusals(NodeVolumeLimits(), cluster, make_pod(claims=["x"])) == {"b": TOO_MANY}


def test_a_claim_named_twice_in_a_pod_is_one_volume() -> None:
    cluster = make_cluster(*NODES, *BOUND, make_csi_node("a", limit=1), make_csi_node("b", limit=0))

    assert refusals(NodeVolumeLimits(), cluster, make_pod(claims=["x", "x"])) == {"b": TOO_MANY}


def test_volumes_still_to_be_made_count_for_the_driver_of_their_class() -> None:
    cluster = make_cluster(
        *NODES,
        WAIT,
        make_claim("new"),
        make_claim("newer"),
        make_csi_node("a", limit=1),
        make_csi_node("b", limit=2),
        make_pod("one", claims=["new"], node="a"),
        make_pod("two", claims=["new"], node="b"),
    )

    assert refusals(NodeVolumeLimits(), cluster, make_pod(claims=["newer"])) == {"a": TOO_MANY}
    assert refusals(NodeVolumeLimits(), cluster, make_pod(claims=["new"])) == {}


def test_a_claim_whose_volume_is_gone_counts_for_the_driver_of_its_class() -> None:
    cluster = make_cluster(*NODES, WAIT, make_claim("lost", volume="gone"), make_csi_node("a", limit=0))

    assert refusals(NodeVolumeLimits(), cluster, make_pod(claims=["lost"])) == {"a": TOO_MANY}


def test_limits_of_other_drivers_and_nodes_without_limits_do_not_matter() -> None:
    cluster = make_cluster(
        *NODES,
        make_node("c"),
        *BOUND,
        make_csi_node("a", limit=0, driver="other.example.com"),
        make_csi_node("b"),
    )

    assert refusals(NodeVolumeLimits(), cluster, make_pod(claims=["x"])) == {}


def test_volumes_that_no_csi_driver_attaches_are_not_counted() -> None:
    cluster = make_cluster(
        *NODES,
        make_csi_node("a", limit=0),
        make_volume("nfs", csi=None),
        make_claim("share", volume="nfs"),
        make_claim("unknown", storage_class="none"),
    )
    pod = make_pod(claims=["share", "unknown"])

    assert NodeVolumeLimits().pre_filter(cluster.shape_for(pod), cluster.view) is SKIP


def test_attachments_that_no_pod_uses_take_their_place() -> None:
    cluster = make_cluster(
        *NODES,
        *BOUND,
        make_csi_node("a", limit=1),
        make_csi_node("b", limit=2),
        make_attachment("at-a", node="a", volume="disk-x"),
        make_attachment("at-b", node="b", volume="disk-x"),
        make_pod("user", claims=["x"], node="b"),
    )

    assert refusals(NodeVolumeLimits(), cluster, make_pod(claims=["y"])) == {"a": TOO_MANY}


def test_a_driver_can_demand_to_be_installed_first() -> None:
    cluster = make_cluster(
        *NODES,
        make_node("c"),
        *BOUND,
        make_driver(preventPodSchedulingIfMissing=True),
        make_csi_node("a"),
        make_csi_node("b", driver="other.example.com"),
    )
    missing = Rejection((f"{DRIVER} CSI driver is not installed on the node",))

    assert refusals(NodeVolumeLimits(), cluster, make_pod(claims=["x"])) == {"b": missing, "c": missing}


def test_a_missing_claim_of_an_ephemeral_volume_is_named() -> None:
    cluster = make_cluster(make_node("a"), WAIT)

    assert refusals(NodeVolumeLimits(), cluster, make_pod("web", ephemeral=["scratch"])) == {
        "a": Rejection(
            ('looking up PVC default/web-scratch: persistentvolumeclaim "web-scratch" not found',), unresolvable=True
        )
    }


@pytest.mark.parametrize(("uid", "expected"), [("uid-web", {"a": TOO_MANY}), ("uid-of-an-earlier-pod", {})])
def test_an_ephemeral_volume_counts_if_its_claim_is_the_pods_own(uid: str, expected: dict[str, Rejection]) -> None:
    owner = {"ownerReferences": [{"kind": "Pod", "name": "web", "uid": uid, "controller": True}]}
    cluster = make_cluster(
        make_node("a"),
        WAIT,
        make_csi_node("a", limit=1),
        make_claim("web-scratch", metadata=owner),
        *BOUND,
        make_pod("web", ephemeral=["scratch"], uid="uid-web", node="a"),
    )

    assert refusals(NodeVolumeLimits(), cluster, make_pod(claims=["x"])) == expected


def test_a_pod_without_claims_is_not_looked_at() -> None:
    cluster = make_cluster(*NODES)

    assert NodeVolumeLimits().pre_filter(cluster.shape_for(make_pod()), cluster.view) is SKIP


def test_the_remedy_is_to_detach_as_many_as_are_too_many_if_there_are_so_many() -> None:
    cluster = make_cluster(
        *NODES,
        make_node("c"),
        *BOUND,
        make_csi_node("a", limit=1),
        make_csi_node("b", limit=2),
        make_csi_node("c", limit=1),
        make_pod("one", claims=["z"], node="a"),
        make_pod("two", claims=["z"], node="b"),
    )

    assert remedies(NodeVolumeLimits(), cluster, make_pod(claims=["x"])) == {
        f"detach 1 volume of {DRIVER} from the node": ["a"]
    }
    assert remedies(NodeVolumeLimits(), cluster, make_pod(claims=["x", "y"])) == {
        f"detach 1 volume of {DRIVER} from the node": ["b"]
    }
