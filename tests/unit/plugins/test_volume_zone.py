"""VolumeZone: volumes are usable where their labels say."""

import pytest
from volume_builders import (
    NOW,
    WAIT,
    ZONE,
    make_claim,
    make_cluster,
    make_node,
    make_pod,
    make_volume,
    refusal,
    refusals,
    remedies,
)

from mooring.engine.plugin import SKIP
from mooring.engine.verdict import Rejection
from mooring.plugins.volume_zone import VolumeZone

NO_ZONE = Rejection(("node(s) had no available volume zone",), unresolvable=True)
NODES = (make_node("in-a", zone="a"), make_node("in-b", zone="b"), make_node("nowhere"))
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
POD = make_pod(claims=["data"])


def test_a_zonal_volume_keeps_its_pod_in_its_zone_and_on_nodes_without_zones() -> None:
    volume = make_volume("disk", labels={ZONE: "a"})
    cluster = make_cluster(*NODES, volume, make_claim("data", volume="disk"))

    assert refusals(VolumeZone(), cluster, POD) == {"in-b": NO_ZONE}


def test_a_volume_can_be_in_several_zones() -> None:
    volume = make_volume("disk", labels={ZONE: "a__b"})
    cluster = make_cluster(*NODES, make_node("in-c", zone="c"), volume, make_claim("data", volume="disk"))

    assert refusals(VolumeZone(), cluster, POD) == {"in-c": NO_ZONE}


def test_an_old_zone_label_of_a_volume_is_compared_with_the_new_one_of_a_node() -> None:
    old_node = make_node("old", **{BETA_ZONE: "b", "zone": "a"})
    cluster = make_cluster(
        *NODES, old_node, make_volume("disk", labels={BETA_ZONE: "a"}), make_claim("data", volume="disk")
    )

    assert refusals(VolumeZone(), cluster, POD) == {"in-b": NO_ZONE, "old": NO_ZONE}


def test_a_node_that_has_only_a_region_is_not_in_the_zone() -> None:
    region = make_node("region", **{"topology.kubernetes.io/region": "r"})
    cluster = make_cluster(region, make_volume("disk", labels={ZONE: "a"}), make_claim("data", volume="disk"))

    assert refusals(VolumeZone(), cluster, POD) == {"region": NO_ZONE}


@pytest.mark.parametrize("value", ["", "a__", "__b"])
def test_a_label_with_an_empty_zone_says_nothing(value: str) -> None:
    cluster = make_cluster(*NODES, make_volume("disk", labels={ZONE: value}), make_claim("data", volume="disk"))

    assert VolumeZone().pre_filter(cluster.shape_for(POD), cluster.view) is SKIP


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        pytest.param(make_claim("other"), 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param(make_claim("data", volume="gone"), 'persistentvolume "gone" not found', id="no volume"),
        pytest.param(make_claim("data", storage_class="now"), "PersistentVolume had no name", id="not bound in time"),
        pytest.param(
            make_claim("data", storage_class=None),
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="no class",
        ),
        pytest.param(
            make_claim("data", storage_class="x"), 'storageclass.storage.k8s.io "x" not found', id="unknown class"
        ),
    ],
)
def test_a_pod_whose_volume_cannot_be_known_is_refused(claim: object, reason: str) -> None:
    cluster = make_cluster(*NODES, WAIT, NOW, claim)  # type: ignore[arg-type]

    assert refusal(VolumeZone(), cluster, POD) == Rejection((reason,), unresolvable=True)


def test_a_claim_that_waits_for_its_pod_has_no_zone_yet() -> None:
    cluster = make_cluster(*NODES, WAIT, make_claim("data"))

    assert VolumeZone().pre_filter(cluster.shape_for(POD), cluster.view) is SKIP


def test_the_remedy_is_to_move_the_one_volume_in_the_way() -> None:
    cluster = make_cluster(
        *NODES,
        make_node("in-c", zone="c"),
        make_volume("disk", labels={ZONE: "a"}),
        make_volume("tape", labels={ZONE: "a__b"}),
        make_claim("data", volume="disk"),
        make_claim("log", volume="tape"),
    )

    assert remedies(VolumeZone(), cluster, make_pod(claims=["data", "log"])) == {
        "move volume disk from a to where the node is": ["in-b"]
    }
