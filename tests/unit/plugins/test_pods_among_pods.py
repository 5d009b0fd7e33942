"""PodTopologySpread and InterPodAffinity."""

from typing import Any

import pytest
from asking_plugins import configured, problems, refusals, scores

from mooring.plugins.inter_pod_affinity import InterPodAffinity
from mooring.plugins.pod_topology_spread import PodTopologySpread
from mooring.testing.builders import (
    HOSTNAME,
    ZONE,
    make_affinity,
    make_cluster,
    make_namespace,
    make_node,
    make_nodes,
    make_owner,
    make_pod,
    make_pod_term,
    make_pods,
    make_replica_set,
    make_selector,
    make_service,
    make_spread,
)

WEB = {"app": "web"}


def spread_pod(**given: Any) -> Any:
    return make_pod(labels=WEB, spread=[make_spread(labels=WEB, **given)])


# Spreading.


def test_a_domain_that_is_ahead_takes_no_more() -> None:
    cluster = make_cluster(nodes=make_nodes(2, zones=2), pods=[make_pod("runs", node="node-0", labels=WEB)])

    assert list(refusals(PodTopologySpread(), cluster, spread_pod())) == ["node-0"]
    assert refusals(PodTopologySpread(), cluster, spread_pod(max_skew=2)) == {}


def test_a_node_without_the_label_is_refused_for_good() -> None:
    cluster = make_cluster(nodes=[make_node("a", zone="x"), make_node("b")])

    found = refusals(PodTopologySpread(), cluster, spread_pod())

    assert {name: rejection.unresolvable for name, rejection in found.items()} == {"b": True}


def test_while_there_are_fewer_domains_than_asked_for_the_lowest_is_none() -> None:
    pods = [make_pod(f"runs-{zone}", node=f"node-{zone}", labels=WEB) for zone in range(2)]
    cluster = make_cluster(nodes=make_nodes(2, zones=2), pods=pods)

    assert refusals(PodTopologySpread(), cluster, spread_pod(min_domains=2)) == {}
    assert sorted(refusals(PodTopologySpread(), cluster, spread_pod(min_domains=3))) == ["node-0", "node-1"]


def test_pods_on_their_way_out_do_not_count() -> None:
    leaving = make_pod("leaves", node="node-0", labels=WEB, terminating=True)
    cluster = make_cluster(nodes=make_nodes(2, zones=2), pods=[leaving])

    assert refusals(PodTopologySpread(), cluster, spread_pod()) == {}


def test_a_service_spreads_its_pods_by_default() -> None:
    pods = make_pods(2, node="node-0", labels=WEB)
    cluster = make_cluster(nodes=make_nodes(2, zones=2), pods=pods, related=[make_service(selector=WEB)])

    found = scores(PodTopologySpread(), cluster, make_pod("new", labels=WEB))

    assert found["node-1"] > found["node-0"]
    assert set(scores(PodTopologySpread(), cluster, make_pod("other")).values()) == {0}


def test_a_replica_set_spreads_its_pods_by_default() -> None:
    owner = make_owner("set")
    pods = make_pods(2, node="node-0", labels=WEB, owner=owner)
    cluster = make_cluster(nodes=make_nodes(2), pods=pods, related=[make_replica_set("set", labels=WEB)])

    found = scores(PodTopologySpread(), cluster, make_pod("new", labels=WEB, owner=owner))

    assert found["node-1"] > found["node-0"]


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"defaultingType": "None"}, "defaultingType"),
        (
            {"defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}]},
            "defaultConstraints",
        ),
        (
            {
                "defaultingType": "List",
                "defaultConstraints": [{"maxSkew": 0, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}],
            },
            "defaultConstraints[0].maxSkew",
        ),
    ],
)
def test_default_constraints_that_make_no_sense_are_named(args: dict[str, Any], field: str) -> None:
    assert [at for at, _, _ in problems(PodTopologySpread, **args)] == [field]


# Affinity.


def near(**given: Any) -> Any:
    return make_affinity(near=[make_pod_term(ZONE, labels=WEB, **given)])


def test_required_affinity_keeps_to_the_domains_of_such_pods() -> None:
    cluster = make_cluster(nodes=make_nodes(4, zones=2), pods=[make_pod("runs", node="node-0", labels=WEB)])

    assert list(refusals(InterPodAffinity(), cluster, make_pod(affinity=near()))) == ["node-1", "node-3"]


def test_the_first_of_its_kind_may_go_anywhere_that_has_the_label() -> None:
    cluster = make_cluster(nodes=[make_node("a", zone="x"), make_node("b")])

    assert list(refusals(InterPodAffinity(), cluster, make_pod(labels=WEB, affinity=near()))) == ["b"]
    assert list(refusals(InterPodAffinity(), cluster, make_pod(affinity=near()))) == ["a", "b"]


def test_anti_affinity_works_in_both_directions() -> None:
    away = make_affinity(away=[make_pod_term(HOSTNAME, labels=WEB)])
    cluster = make_cluster(
        nodes=make_nodes(3),
        pods=[make_pod("web", node="node-0", labels=WEB), make_pod("shy", node="node-1", affinity=away)],
    )

    shy = refusals(InterPodAffinity(), cluster, make_pod("shy-2", affinity=away))
    web = refusals(InterPodAffinity(), cluster, make_pod("web-2", labels=WEB))

    assert {name: r.reasons for name, r in shy.items()} == {"node-0": ("node(s) didn't match pod anti-affinity rules",)}
    assert {name: r.reasons for name, r in web.items()} == {
        "node-1": ("node(s) didn't satisfy existing pods anti-affinity rules",)
    }


def test_terms_reach_the_namespaces_that_they_name_or_select() -> None:
    cluster = make_cluster(
        nodes=make_nodes(1, zones=1),
        pods=[make_pod("runs", node="node-0", labels=WEB, namespace="data")],
        related=[make_namespace("default"), make_namespace("data", labels={"team": "a"})],
    )

    def is_refused(**given: Any) -> bool:
        return bool(refusals(InterPodAffinity(), cluster, make_pod(affinity=near(**given))))

    assert is_refused()
    assert not is_refused(namespaces=["data"])
    assert not is_refused(namespace_selector=make_selector({"team": "a"}))
    assert not is_refused(namespace_selector=make_selector())


def test_preferences_add_up_by_domain() -> None:
    rather = make_affinity(
        rather_near=[(10, make_pod_term(ZONE, labels=WEB))], rather_away=[(4, make_pod_term(HOSTNAME, labels=WEB))]
    )
    cluster = make_cluster(nodes=make_nodes(3, zones=2), pods=[make_pod("runs", node="node-0", labels=WEB)])

    assert scores(InterPodAffinity(), cluster, make_pod(affinity=rather)) == {"node-0": 60, "node-1": 0, "node-2": 100}


def test_pods_that_run_have_their_say_unless_told_otherwise() -> None:
    cluster = make_cluster(nodes=make_nodes(2, zones=2), pods=[make_pod("runs", node="node-0", affinity=near())])
    web = make_pod(labels=WEB)

    assert scores(InterPodAffinity(), cluster, web) == {"node-0": 100, "node-1": 0}
    quiet = configured(InterPodAffinity, hardPodAffinityWeight=0)
    assert scores(quiet, cluster, web) == {"node-0": 0, "node-1": 0}


def test_one_plugin_can_serve_one_cluster_after_another() -> None:
    """A new cluster often gets the address, and so the id(), of one that is gone."""
    plugin = InterPodAffinity()

    for turn in range(20):
        key, name = (ZONE, "zone") if turn % 2 else (HOSTNAME, "host")
        cluster = make_cluster(nodes=make_nodes(2, zones=1), pods=[make_pod("runs", node="node-0", labels=WEB)])
        pod = make_pod(affinity=make_affinity(near=[make_pod_term(key, labels=WEB)]))

        refused = list(refusals(plugin, cluster, pod))

        assert refused == ([] if name == "zone" else ["node-1"]), f"turn {turn}, by {name}"
        del cluster
