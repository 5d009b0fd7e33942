"""VolumeRestrictions: disks and claims that cannot be shared."""

from typing import Any

import pytest
from volume_builders import (
    WAIT,
    make_claim,
    make_cluster,
    make_node,
    make_pod,
    refusal,
    refusals,
    remedies,
)

from mooring.engine.plugin import SKIP
from mooring.engine.verdict import Rejection
from mooring.model.keys import PodKey
from mooring.plugins.volume_restrictions import VolumeRestrictions

NO_DISK = Rejection(("node(s) had no available disk",))
IN_USE_REASON = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
IN_USE = Rejection((IN_USE_REASON,))
NODES = (make_node("a"), make_node("b"))
EXCLUSIVE = make_claim("data", modes=["ReadWriteOncePod"])


def gce(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(name: str, *, read_only: bool = False, lun: int = 0) -> dict[str, Any]:
    return {"iscsi": {"iqn": name, "targetPortal": "portal", "lun": lun, "readOnly": read_only}}


def rbd(image: str, *, monitors: tuple[str, ...] = ("m1",), pool: str = "p", read_only: bool = False) -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "image": image, "pool": pool, "readOnly": read_only}}


@pytest.mark.parametrize(
    ("used", "wanted", "is_refused"),
    [
        pytest.param(gce("x"), gce("x"), True, id="gce disk"),
        pytest.param(gce("x"), gce("y"), False, id="other gce disk"),
        pytest.param(gce("x"), gce("x", read_only=True), True, id="gce disk with one reader"),
        pytest.param(gce("x", read_only=True), gce("x", read_only=True), False, id="gce disk with readers only"),
        pytest.param(ebs("x", read_only=True), ebs("x", read_only=True), True, id="ebs volume even with readers only"),
        pytest.param(ebs("x"), ebs("y"), False, id="other ebs volume"),
        pytest.param(iscsi("x"), iscsi("x", lun=1), True, id="iscsi target, whatever the lun"),
        pytest.param(iscsi("x", read_only=True), iscsi("x", read_only=True), False, id="iscsi with readers only"),
        pytest.param(rbd("x", monitors=("m1", "m2")), rbd("x", monitors=("m2", "m3")), True, id="rbd image"),
        pytest.param(rbd("x"), rbd("x", monitors=("m9",)), False, id="rbd image of other monitors"),
        pytest.param(rbd("x"), rbd("x", pool="q"), False, id="rbd image of another pool"),
        pytest.param(rbd("x", read_only=True), rbd("x", read_only=True), False, id="rbd with readers only"),
        pytest.param(gce("x"), ebs("x"), False, id="disks of two kinds"),
    ],
)
def test_a_disk_in_use_refuses_the_node_where_it_is_used(
    used: dict[str, Any], wanted: dict[str, Any], is_refused: bool
) -> None:
    cluster = make_cluster(*NODES, make_pod("user", volumes=[{"name": "v"} | used], node="a"))
    pod = make_pod(volumes=[{"name": "v"} | wanted])

    prepared = VolumeRestrictions().pre_filter(cluster.shape_for(pod), cluster.view)

    if is_refused:
        assert refusals(VolumeRestrictions(), cluster, pod) == {"a": NO_DISK}
    else:
        assert prepared is SKIP


def test_a_claim_for_one_pod_in_use_anywhere_refuses_every_node_but_eviction_could_help() -> None:
    cluster = make_cluster(*NODES, WAIT, EXCLUSIVE, make_pod("user", claims=["data"], node="a"))

    assert refusals(VolumeRestrictions(), cluster, make_pod(claims=["data"])) == {"a": IN_USE, "b": IN_USE}


def test_a_disk_in_use_is_the_first_reason_of_a_node() -> None:
    cluster = make_cluster(
        *NODES, WAIT, EXCLUSIVE, make_pod("user", claims=["data"], volumes=[{"name": "v"} | ebs("x")], node="a")
    )
    pod = make_pod(claims=["data"], volumes=[{"name": "v"} | ebs("x")])

    assert refusals(VolumeRestrictions(), cluster, pod) == {"a": NO_DISK, "b": IN_USE}


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(make_pod("user", claims=["data"]), id="waits itself"),
        pytest.param(make_pod("user", claims=["data"], node="a", namespace="other"), id="is in another namespace"),
        pytest.param(make_pod("user", claims=["data"], node="unknown"), id="is on a node that is gone"),
    ],
)
def test_a_claim_for_one_pod_is_free_while_its_other_user(user: Any) -> None:
    cluster = make_cluster(*NODES, WAIT, EXCLUSIVE, user)
    pod = make_pod(claims=["data"])

    assert VolumeRestrictions().pre_filter(cluster.shape_for(pod), cluster.view) is SKIP


def test_a_claim_for_many_pods_can_be_shared() -> None:
    cluster = make_cluster(*NODES, WAIT, make_claim("data"), make_pod("user", claims=["data"], node="a"))
    pod = make_pod(claims=["data"])

    assert VolumeRestrictions().pre_filter(cluster.shape_for(pod), cluster.view) is SKIP


def test_a_missing_claim_refuses_the_pod() -> None:
    cluster = make_cluster(*NODES)

    assert refusal(VolumeRestrictions(), cluster, make_pod(claims=["no-such-claim"])) == Rejection(
        ('persistentvolumeclaim "no-such-claim" not found',), unresolvable=True
    )


def test_releasing_the_user_of_a_claim_frees_it() -> None:
    cluster = make_cluster(*NODES, WAIT, EXCLUSIVE, make_pod("user", claims=["data"], node="a"))
    pod = make_pod(claims=["data"])
    with cluster.what_if():
        cluster.release(PodKey("default/user"))
        free = VolumeRestrictions().pre_filter(cluster.shape_for(pod), cluster.view)

    assert free is SKIP
    assert refusals(VolumeRestrictions(), cluster, pod) == {"a": IN_USE, "b": IN_USE}


def test_the_remedy_is_to_stop_the_one_pod_that_is_in_the_way() -> None:
    cluster = make_cluster(*NODES, WAIT, EXCLUSIVE, make_pod("user", claims=["data"], node="a"))

    assert remedies(VolumeRestrictions(), cluster, make_pod(claims=["data"])) == {
        "stop pod default/user, which uses the same volume": ["a", "b"]
    }


def test_no_single_pod_helps_where_two_are_in_the_way() -> None:
    disk = [{"name": "v"} | gce("x", read_only=True)]
    cluster = make_cluster(
        *NODES,
        make_pod("one", volumes=disk, node="a"),
        make_pod("two", volumes=disk, node="a"),
        make_pod("three", volumes=disk, node="b"),
    )

    assert remedies(VolumeRestrictions(), cluster, make_pod(volumes=[{"name": "v"} | gce("x")])) == {
        "stop pod default/three, which uses the same volume": ["b"]
    }
