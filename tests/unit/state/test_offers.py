"""Nodes that do not exist, and rows that are closed, in a trial: everybody sees them, and nothing is left of them."""

import json

import numpy as np
import pytest

from mooring.assembly import assemble
from mooring.engine.answers.kept import KeptAnswers
from mooring.errors import InvariantBroken
from mooring.model.api.nodes import Taint
from mooring.model.keys import PodKey
from mooring.model.node_offer import NodeOffer
from mooring.model.numa.nodes import KUBELET, MACHINE
from mooring.testing.builders import GPU, ZONE, make_cluster, make_node, make_pod, make_pods, make_spread
from mooring.testing.claim_builders import make_claiming_pod, make_class, make_slice, make_template

KEY = PodKey("default/pod")


def test_a_row_on_offer_is_a_node_like_others_until_the_trial_ends() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=1, zone="x")], pods=[make_pod("pod", cpu=4)])
    cluster.nodes.label(ZONE)
    before = cluster.description

    with cluster.what_if():
        row = cluster.open_row(NodeOffer(make_node("large", cpu=8, zone="y")))
        cluster.assume(KEY, row)

        rows = cluster.rows()
        assert rows.names == ["a", "large-0"]
        assert rows.requested("cpu").tolist() == [0, 4000]
        assert cluster.nodes.label(ZONE).interner.values[cluster.nodes.label(ZONE).codes[row]] == "y"
        assert cluster.description != before

    assert cluster.rows().names == ["a"]
    assert cluster.description == before
    assert cluster.nodes.end == 1


def test_answers_from_before_are_good_after_it() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=1)], pods=[make_pod("pod", cpu=4), make_pod("small", cpu=1)])
    (profile,) = assemble(None).profiles.values()
    kept = KeptAnswers()
    shape = cluster.pods.records[KEY].shape
    assert kept.fresh(profile, cluster, shape).choose() == -1

    with cluster.what_if():
        (first, _) = cluster.open_rows(NodeOffer(make_node("large", cpu=8)), 2).tolist()
        chosen = kept.fresh(profile, cluster, shape).choose()
        assert chosen in (first, first + 1)
        cluster.assume(KEY, chosen)
    cluster.assume(PodKey("default/small"), 0)
    misses = kept.misses

    assert kept.fresh(profile, cluster, shape).choose() == -1
    assert kept.misses == misses


def test_each_row_on_offer_is_a_host_of_its_own() -> None:
    spread = make_spread("kubernetes.io/hostname", labels={"app": "x"})
    pods = make_pods(3, cpu=1, labels={"app": "x"}, spread=[spread])
    cluster = make_cluster(nodes=[make_node("a", cpu=8)], pods=pods)
    (profile,) = assemble(None).profiles.values()
    kept = KeptAnswers()
    chosen = []

    with cluster.what_if():
        cluster.open_rows(NodeOffer(make_node("large", cpu=8)), 2)
        for pod in pods:
            chosen.append(kept.fresh(profile, cluster, cluster.pods.records[pod.key].shape).choose())
            cluster.assume(pod.key, chosen[-1])

    assert sorted(chosen) == [0, 1, 2]


def test_devices_and_gpus_come_with_an_offer() -> None:
    offer = NodeOffer(make_node("gpus", gpu=4), (make_slice("gpus", 2),))
    pods = [make_claiming_pod(f"p{number}", templates=["one"]) for number in range(3)]
    cluster = make_cluster(nodes=[make_node("a")], pods=pods, related=[make_class(), make_template("one")])

    with cluster.what_if():
        rows = cluster.open_rows(offer, 2)
        assert cluster.nodes.allocatable(GPU)[rows].tolist() == [4, 4]
        for pod, row in zip(pods, (*rows.tolist(), rows[0]), strict=True):
            cluster.assume(pod.key, int(row))
        held = [share.pool for pod in pods for share in cluster.devices.held[f"{pod.key}-one"]]
        assert len(set(held)) == 2
        assert [cluster.devices.of_row(row).taken.whole.bit_count() for row in rows.tolist()] == [2, 1]

    assert not cluster.devices.held
    assert not cluster.devices.on_row


def test_a_kubelet_comes_with_an_offer() -> None:
    machine = {"sockets": 2, "numaPerSocket": 1, "coresPerNuma": 4, "threadsPerCore": 1, "memoryPerNuma": "32Gi"}
    annotations = {MACHINE: json.dumps({"regular": machine}), KUBELET: json.dumps({"cpuManagerPolicy": "static"})}
    cluster = make_cluster(nodes=[make_node("a")])

    with cluster.what_if():
        row = cluster.open_row(NodeOffer(make_node("numa", cpu=8, annotations=annotations)))
        assert row in cluster.numa.on_row

    assert not cluster.numa.on_row


def test_a_closed_row_is_nobodys_until_the_trial_ends() -> None:
    nodes = [make_node("a", cpu=4, gpu=2, zone="x"), make_node("b", cpu=4, zone="y")]
    cluster = make_cluster(nodes=nodes, pods=[make_pod("pod", cpu=1, node="b")])
    cluster.nodes.label(ZONE)
    before = (cluster.nodes.fingerprint(), cluster.description)

    with cluster.what_if():
        cluster.close_row(0)
        assert cluster.rows().names == ["b"]
        assert cluster.nodes.row_of == {"b": 1}
        with pytest.raises(InvariantBroken, match="node b has pods"):
            cluster.close_row(1)

    assert (cluster.nodes.fingerprint(), cluster.description) == before
    assert list(cluster.nodes.row_of) == ["a", "b"]


def test_who_has_read_what_was_undone_with_its_rows_starts_anew() -> None:
    cluster = make_cluster(
        nodes=[make_node("a", cpu=8)], pods=[make_pod("pod", cpu=1), make_pod("old", cpu=1, node="a")]
    )
    changes = cluster.pod_changes
    before = changes.position

    with cluster.what_if():
        row = cluster.open_row(NodeOffer(make_node("large", cpu=8)))
        cluster.assume(KEY, row)
        inside = changes.position

    found = changes.since(before)
    assert found is not None
    assert np.count_nonzero(found[2]) == 0
    assert set(found[1].tolist()) <= {0}
    assert changes.since(inside) is None


def test_a_closed_row_that_another_node_had_meanwhile_is_as_it_was() -> None:
    taint = Taint(key="dedicated", value="ml", effect="NoSchedule")
    cluster = make_cluster(nodes=[make_node("a", taints=[taint]), make_node("b")])
    before, tie = cluster.nodes.fingerprint(), int(cluster.nodes.tie.values[1])

    with cluster.what_if():
        cluster.close_row(1)
        assert cluster.open_row(NodeOffer(make_node("other", taints=[taint]))) == 1
        assert cluster.nodes.taint_set.values[1] == cluster.nodes.taint_set.values[0]

    assert cluster.nodes.fingerprint() == before
    assert cluster.nodes.taint_set.values[1] != cluster.nodes.taint_set.values[0]
    assert int(cluster.nodes.tie.values[1]) == tie
