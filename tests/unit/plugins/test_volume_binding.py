"""VolumeBinding: the claims of a pod, refused, bound, found or made."""

from typing import Any

import msgspec
import numpy as np
import pytest
from volume_builders import (
    LOCAL,
    NOW,
    WAIT,
    ZONE,
    make_capacity,
    make_claim,
    make_class,
    make_cluster,
    make_driver,
    make_node,
    make_pod,
    make_volume,
    refusal,
    refusals,
    remedies,
)

from mooring.engine.plugin import SKIP
from mooring.engine.verdict import Rejection
from mooring.model.api.pods import Pod
from mooring.plugins.volume_binding import PodClaims, VolumeBinding, VolumeBindingArgs, VolumePlan
from mooring.state.cluster import Cluster
from mooring.state.shapes import Shape

UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity"
NOT_FOUND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NODES = (make_node("a", zone="z1"), make_node("b", zone="z2"))
POD = make_pod(claims=["data"])


def reasons(cluster: Cluster, pod: Pod = POD) -> dict[str, tuple[str, ...]]:
    found = refusals(VolumeBinding(), cluster, pod)
    assert all(rejection.unresolvable for rejection in found.values())
    return {name: rejection.reasons for name, rejection in found.items()}


def scores(cluster: Cluster, pod: Pod = POD, args: VolumeBindingArgs | None = None) -> list[int]:
    plugin, shape, nodes = VolumeBinding(args), cluster.shape_for(pod), cluster.rows()
    return [int(score) for score in plugin.score(shape, nodes, plugin.pre_score(shape, cluster.view, nodes))]


def plan(cluster: Cluster, shape: Shape, row: int) -> VolumePlan:
    claims = VolumeBinding().pre_filter(shape, cluster.view)
    assert isinstance(claims, PodClaims)
    return VolumeBinding().plan(claims, cluster.view, row)


# Refused before any node is looked at.


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        pytest.param(make_claim("other"), 'persistentvolumeclaim "data" not found', id="missing"),
        pytest.param(
            make_claim("data", volume="gone", phase="Lost"),
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
            id="lost",
        ),
        pytest.param(
            make_claim("data", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            'persistentvolumeclaim "data" is being deleted',
            id="being deleted",
        ),
        pytest.param(
            make_claim("data", storage_class="now"),
            "pod has unbound immediate PersistentVolumeClaims",
            id="not bound in time",
        ),
        pytest.param(
            make_claim("data", storage_class="none"),
            "pod has unbound immediate PersistentVolumeClaims",
            id="of an unknown class",
        ),
        pytest.param(
            make_claim("data", volumeName="disk"),
            "pod has unbound immediate PersistentVolumeClaims",
            id="meant for a volume but not bound to it",
        ),
    ],
)
def test_a_pod_is_refused_whose_claim_is(claim: Any, reason: str) -> None:
    cluster = make_cluster(*NODES, WAIT, NOW, claim)

    assert refusal(VolumeBinding(), cluster, POD) == Rejection((reason,), unresolvable=True)


def test_a_pod_with_an_ephemeral_volume_waits_for_its_claim_and_wants_its_own() -> None:
    pod = make_pod("web", ephemeral=["scratch"])
    owner = {"ownerReferences": [{"kind": "Pod", "name": "web", "uid": "earlier", "controller": True}]}
    without = make_cluster(*NODES, WAIT)
    foreign = make_cluster(*NODES, WAIT, make_claim("web-scratch", metadata=owner))

    assert refusal(VolumeBinding(), without, pod) == Rejection(
        ('waiting for ephemeral volume controller to create the persistentvolumeclaim "web-scratch"',), True
    )
    assert refusal(VolumeBinding(), foreign, pod) == Rejection(
        ("PVC default/web-scratch was not created for pod default/web (pod is not owner)",), True
    )


def test_a_pod_without_claims_is_not_looked_at_but_scored_with_nothing() -> None:
    cluster = make_cluster(*NODES)

    assert VolumeBinding().pre_filter(cluster.shape_for(make_pod()), cluster.view) is SKIP
    assert scores(cluster, make_pod()) == [0, 0]


# Bound claims.


def test_a_bound_volume_must_be_reachable_from_the_node() -> None:
    cluster = make_cluster(*NODES, make_volume("disk", nodes=["a"]), make_claim("data", volume="disk"))

    assert reasons(cluster) == {"b": (UNREACHABLE,)}


def test_fields_in_a_volumes_affinity_are_passed_over() -> None:
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    affinity = {"required": {"nodeSelectorTerms": [by_name]}}
    cluster = make_cluster(*NODES, make_volume("disk", nodeAffinity=affinity), make_claim("data", volume="disk"))

    assert reasons(cluster) == {}


def test_a_bound_volume_that_is_gone_refuses_the_nodes_that_pass_the_volumes_before() -> None:
    cluster = make_cluster(
        *NODES, make_volume("disk", nodes=["a"]), make_claim("data", volume="disk"), make_claim("log", volume="gone")
    )

    assert reasons(cluster, make_pod(claims=["data", "log"])) == {"a": (NO_VOLUME,), "b": (UNREACHABLE,)}


def test_a_node_can_have_two_reasons() -> None:
    cluster = make_cluster(
        *NODES,
        LOCAL,
        make_volume("disk", nodes=["a"], for_claim="data"),
        make_claim("data", volume="disk"),
        make_claim("log", storage_class="local"),
    )

    assert reasons(cluster, make_pod(claims=["data", "log"])) == {
        "a": (NOT_FOUND,),
        "b": (UNREACHABLE, NOT_FOUND),
    }


# Volumes that exist.


@pytest.mark.parametrize(
    ("volume", "claim"),
    [
        pytest.param({"size": "4Gi"}, {}, id="is too small"),
        pytest.param({"storage_class": "other"}, {}, id="is of another class"),
        pytest.param({"phase": "Released"}, {}, id="is not available"),
        pytest.param({"for_claim": "other"}, {}, id="is taken"),
        pytest.param({"modes": ["ReadOnlyMany"]}, {}, id="cannot be written"),
        pytest.param({"volumeMode": "Block"}, {}, id="is a block device"),
        pytest.param({"volumeAttributesClassName": "gold"}, {}, id="has other attributes"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, {}, id="is being deleted"),
        pytest.param({}, {"selector": {"matchLabels": {"disk": "ssd"}}}, id="is not selected"),
        pytest.param({"nodes": []}, {}, id="is reachable from nowhere"),
    ],
)
def test_a_volume_does_not_serve_a_claim_if_it(volume: dict[str, Any], claim: dict[str, Any]) -> None:
    cluster = make_cluster(
        NODES[0], LOCAL, make_volume("disk", **volume), make_claim("data", storage_class="local", **claim)
    )

    assert reasons(cluster) == {"a": (NOT_FOUND,)}


def test_the_smallest_volume_that_serves_is_chosen_on_each_node() -> None:
    cluster = make_cluster(
        *NODES,
        LOCAL,
        make_volume("large", size="50Gi", nodes=["a"]),
        make_volume("small", size="10Gi", nodes=["a"]),
        make_volume("other", size="20Gi", nodes=["b"]),
        make_claim("data", storage_class="local"),
    )
    shape = cluster.shape_for(POD)

    plans = [plan(cluster, shape, row) for row in cluster.rows().index.tolist()]

    assert plans == [
        VolumePlan(bind=(("default/data", "small"),), provision=()),
        VolumePlan(bind=(("default/data", "other"),), provision=()),
    ]
    assert scores(cluster) == [50, 75]


def test_two_claims_of_a_pod_do_not_get_the_same_volume_and_the_smaller_is_served_first() -> None:
    cluster = make_cluster(
        *NODES,
        LOCAL,
        make_volume("small", size="5Gi", nodes=["a", "b"]),
        make_volume("large", size="10Gi", nodes=["a"]),
        make_claim("big", size="8Gi", storage_class="local"),
        make_claim("little", size="2Gi", storage_class="local"),
    )
    pod = make_pod(claims=["big", "little"])

    assert reasons(cluster, pod) == {"b": (NOT_FOUND,)}
    assert plan(cluster, cluster.shape_for(pod), 0) == VolumePlan(
        bind=(("default/little", "small"), ("default/big", "large")), provision=()
    )


def test_a_claim_gets_the_volume_that_was_made_for_it_or_none() -> None:
    cluster = make_cluster(
        *NODES,
        LOCAL,
        make_volume("mine", size="50Gi", nodes=["a"], for_claim="data", phase="Available"),
        make_volume("free", nodes=["a", "b"]),
        make_claim("data", storage_class="local"),
    )

    assert reasons(cluster) == {"b": (NOT_FOUND,)}
    assert plan(cluster, cluster.shape_for(POD), 0).bind == (("default/data", "mine"),)


def test_a_volume_made_for_an_earlier_claim_of_that_name_is_not_this_ones() -> None:
    earlier = {"namespace": "default", "name": "data", "uid": "earlier"}
    cluster = make_cluster(
        *NODES, LOCAL, make_volume("disk", claimRef=earlier), make_claim("data", storage_class="local")
    )

    assert reasons(cluster) == {"a": (NOT_FOUND,), "b": (NOT_FOUND,)}


# Volumes to be made.


def test_a_volume_is_made_where_the_class_allows() -> None:
    cluster = make_cluster(*NODES, make_class("wait", zones=["z1"]), make_claim("data"))

    assert reasons(cluster) == {"b": (NOT_FOUND,)}
    assert plan(cluster, cluster.shape_for(POD), 0) == VolumePlan(bind=(), provision=("default/data",))
    assert scores(cluster) == [0, 0]


def test_a_volume_that_exists_is_better_than_one_to_be_made() -> None:
    cluster = make_cluster(
        *NODES,
        make_class("wait", zones=["z2"]),
        make_volume("disk", storage_class="wait", nodes=["a"]),
        make_claim("data"),
    )

    assert reasons(cluster) == {}
    assert scores(cluster) == [50, 0]


def test_a_claim_whose_volume_is_being_made_elsewhere_keeps_its_pod_there() -> None:
    claim = make_claim("data", annotations={"volume.kubernetes.io/selected-node": "b"})
    cluster = make_cluster(*NODES, WAIT, claim, make_volume("disk", storage_class="wait", nodes=["a"]))

    assert reasons(cluster) == {"a": (NOT_FOUND,)}


def test_a_driver_that_says_what_it_has_left_is_believed() -> None:
    cluster = make_cluster(
        *NODES,
        make_node("c", zone="z3"),
        make_node("d", zone="z4"),
        WAIT,
        make_driver(storageCapacity=True),
        make_capacity("p1", capacity="20Gi", zone="z1"),
        make_capacity("p2", capacity="4Gi", zone="z2"),
        make_capacity("p3", capacity="100Gi", maximum="1Gi", zone="z3"),
        make_capacity("p4", capacity="100Gi", zone="z4", storage_class="other"),
        make_claim("data"),
    )

    assert reasons(cluster) == {"b": (NO_SPACE,), "c": (NO_SPACE,), "d": (NO_SPACE,)}
    assert scores(cluster)[0] == 75


def test_what_a_driver_has_left_does_not_matter_unless_it_asks_for_it() -> None:
    cluster = make_cluster(*NODES, WAIT, make_driver(), make_claim("data"))

    assert reasons(cluster) == {}


# Scores.


def test_the_score_is_the_mean_over_classes_rounded_half_up() -> None:
    cluster = make_cluster(
        make_node("a"),
        LOCAL,
        make_class("fast", provisioner=""),
        make_volume("one", size="10Gi"),
        make_volume("two", size="100Gi", storage_class="fast"),
        make_claim("data", size="5Gi", storage_class="local"),
        make_claim("log", size="5Gi", storage_class="fast"),
    )

    assert scores(cluster, make_pod(claims=["data", "log"])) == [73]


def test_volumes_of_one_class_are_added_up() -> None:
    cluster = make_cluster(
        make_node("a"),
        LOCAL,
        make_volume("one", size="10Gi"),
        make_volume("two", size="30Gi"),
        make_claim("data", size="5Gi", storage_class="local"),
        make_claim("log", size="5Gi", storage_class="local"),
    )

    assert scores(cluster, make_pod(claims=["data", "log"])) == [75]


def test_where_a_volume_is_found_the_ones_to_be_made_do_not_count() -> None:
    cluster = make_cluster(
        *NODES,
        WAIT,
        make_class("mixed"),
        make_driver(storageCapacity=True),
        make_capacity("p1", capacity="100Gi", zone="z1"),
        make_capacity("p2", capacity="100Gi", zone="z2"),
        make_capacity("m2", capacity="50Gi", zone="z2", storage_class="mixed"),
        make_volume("disk", size="10Gi", nodes=["a"], storage_class="mixed"),
        make_claim("data"),
        make_claim("log", storage_class="mixed"),
    )

    assert scores(cluster, make_pod(claims=["data", "log"])) == [50, 93]


def test_the_shape_says_how_full_is_good() -> None:
    args = msgspec.convert(
        {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}, VolumeBindingArgs
    )
    cluster = make_cluster(
        make_node("a"), LOCAL, make_volume("one", size="20Gi"), make_claim("data", size="5Gi", storage_class="local")
    )

    assert scores(cluster, args=args) == [25]


# Arguments.


def test_the_defaults_are_kube_schedulers_and_valid() -> None:
    args = VolumeBindingArgs()

    assert args.bind_timeout_seconds == 600
    assert [(point.utilization, point.score) for point in args.shape] == [(0, 10), (100, 0)]
    assert list(args.validate()) == []


def test_wrong_arguments_are_named_one_by_one() -> None:
    shape = [{"utilization": 0, "score": 11}, {"utilization": 101, "score": 0}, {"utilization": 50, "score": -1}]
    args = msgspec.convert({"bindTimeoutSeconds": -1, "shape": shape}, VolumeBindingArgs)

    assert [(field, found) for field, _, found in args.validate()] == [
        ("bindTimeoutSeconds", "-1"),
        ("shape[0].score", "11"),
        ("shape[1].utilization", "101"),
        ("shape[2].utilization", "50"),
        ("shape[2].score", "-1"),
    ]
    assert [field for field, _, _ in VolumeBindingArgs(shape=[]).validate()] == ["shape"]


# Remedies.


def test_the_remedies_name_the_one_volume_that_is_missing() -> None:
    cluster = make_cluster(
        *NODES,
        LOCAL,
        make_volume("disk", nodes=["a"], for_claim="data"),
        make_volume("free", nodes=["b"]),
        make_claim("data", volume="disk"),
        make_claim("log", size="8Gi", storage_class="local"),
    )

    assert remedies(VolumeBinding(), cluster, make_pod(claims=["data", "log"])) == {
        "make volume disk of claim default/data reachable from the node": ["b"],
        "create a volume with 8Gi of class local, reachable from the node, for claim default/log": ["a"],
    }


def test_the_remedy_for_full_storage_is_space() -> None:
    cluster = make_cluster(
        *NODES,
        WAIT,
        make_driver(storageCapacity=True),
        make_capacity("p1", capacity="1Gi", zone="z1"),
        make_claim("data"),
    )

    assert remedies(VolumeBinding(), cluster, POD) == {
        "free storage for 5Gi of class wait, reachable from the node, for claim default/data": ["a", "b"]
    }


def test_answers_do_not_depend_on_which_rows_are_asked_about() -> None:
    cluster = make_cluster(
        *NODES,
        make_node("c", **{ZONE: "z1"}),
        LOCAL,
        make_volume("one", nodes=["a", "c"]),
        make_volume("two", nodes=["c"], size="5Gi"),
        make_claim("data", storage_class="local"),
        make_claim("log", storage_class="local"),
    )
    plugin, shape = VolumeBinding(), cluster.shape_for(make_pod(claims=["data", "log"]))
    prepared: Any = plugin.pre_filter(shape, cluster.view)
    rows = np.array([2, 0, 1, 2], np.intp)

    together = plugin.filter(shape, cluster.rows(rows), prepared).tolist()

    assert together == [plugin.filter(shape, cluster.rows(rows[i : i + 1]), prepared)[0] for i in range(4)]
    assert together == [0, 2, 2, 0]
