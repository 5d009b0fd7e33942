"""Who has to go, and from which node: kube-scheduler's rules one by one."""

import pytest
from preemption_builders import chosen, make_budget, make_running, search

from mooring.actions.preempt.pods.search import InVain, VictimSearch
from mooring.model.api.meta import Condition
from mooring.model.api.pods import Pod
from mooring.model.events import PodSeen
from mooring.testing.builders import HOSTNAME, make_affinity, make_cluster, make_node, make_pod, make_pod_term


def test_only_pods_of_lower_priority_have_to_go() -> None:
    cluster = make_cluster(
        nodes=[make_node("a", cpu=1), make_node("b", cpu=1)],
        pods=[make_running("equal", "a", priority=10, cpu=1), make_running("lower", "b", priority=9, cpu=1)],
    )

    assert chosen(search(cluster, make_pod("new", cpu=1, priority=10))) == ("b", ["lower"])


def test_whoever_can_stay_stays_the_most_important_first() -> None:
    pods = [
        make_running("old", "a", cpu=1, started="01:00"),
        make_running("new", "a", cpu=1, started="02:00"),
        make_running("not-started", "a", cpu=1),
        make_running("important", "a", cpu=1, priority=5, started="03:00"),
    ]
    cluster = make_cluster(nodes=[make_node("a", cpu=4)], pods=pods)

    assert chosen(search(cluster, make_pod("pod", cpu=2, priority=10))) == ("a", ["new", "not-started"])


def test_the_lowest_highest_priority_wins_over_fewer_victims() -> None:
    pods = [
        make_running("one", "a", cpu=2, priority=5),
        make_running("two", "b", cpu=1, priority=1),
        make_running("three", "b", cpu=1, priority=1),
    ]
    cluster = make_cluster(nodes=[make_node("a", cpu=2), make_node("b", cpu=2)], pods=pods)

    assert chosen(search(cluster, make_pod("pod", cpu=2, priority=10))) == ("b", ["three", "two"])


def test_of_equal_victims_those_go_that_started_last() -> None:
    pods = [make_running("old", "a", cpu=2, started="01:00"), make_running("young", "b", cpu=2, started="09:00")]
    cluster = make_cluster(nodes=[make_node("a", cpu=2), make_node("b", cpu=2)], pods=pods)

    assert chosen(search(cluster, make_pod("pod", cpu=2, priority=10))) == ("b", ["young"])


def test_a_start_that_becomes_known_later_counts() -> None:
    nodes = [make_node("a", cpu=2), make_node("b", cpu=2)]
    cluster = make_cluster(
        nodes=nodes, pods=[make_running("x", "a", cpu=2), make_running("y", "b", cpu=2, started="01:00")]
    )
    pod = make_pod("pod", cpu=2, priority=10)
    using = VictimSearch(cluster)
    assert chosen(search(cluster, pod, using)) == ("a", ["x"])
    cluster.observe(PodSeen(make_running("x", "a", cpu=2, started="00:30")))

    assert chosen(search(cluster, pod, using)) == ("b", ["y"])


def test_a_node_without_broken_budgets_is_preferred_whatever_its_victims() -> None:
    pods = [
        make_running("cheap", "a", cpu=2, priority=0, labels={"app": "db"}),
        make_running("dear", "b", cpu=2, priority=9),
    ]
    cluster = make_cluster(
        nodes=[make_node("a", cpu=2), make_node("b", cpu=2)],
        pods=pods,
        related=[make_budget("db", labels={"app": "db"}, allowed=0)],
    )

    assert chosen(search(cluster, make_pod("pod", cpu=2, priority=10))) == ("b", ["dear"])


def test_pods_that_a_budget_protects_are_spared_before_more_important_ones() -> None:
    pods = [
        make_running("protected", "a", cpu=1, labels={"app": "db"}),
        make_running("important", "a", cpu=1, priority=5),
    ]
    cluster = make_cluster(
        nodes=[make_node("a", cpu=2)], pods=pods, related=[make_budget("db", labels={"app": "db"}, allowed=0)]
    )

    found = search(cluster, make_pod("pod", cpu=1, priority=10))

    assert chosen(found) == ("a", ["important"])


def test_a_budget_is_broken_where_there_is_no_other_way() -> None:
    cluster = make_cluster(
        nodes=[make_node("a", cpu=1)],
        pods=[make_running("protected", "a", cpu=1, labels={"app": "db"})],
        related=[make_budget("db", labels={"app": "db"}, allowed=0)],
    )

    found = search(cluster, make_pod("pod", cpu=1, priority=10))

    assert chosen(found) == ("a", ["protected"])
    assert getattr(found, "violations", None) == 1


def test_ports_that_lower_pods_hold_can_be_freed() -> None:
    cluster = make_cluster(
        nodes=[make_node("a"), make_node("b")],
        pods=[make_running("a-80", "a", host_ports=[80], priority=3), make_running("b-80", "b", host_ports=[80])],
    )

    assert chosen(search(cluster, make_pod("pod", host_ports=[80], priority=10))) == ("b", ["b-80"])


def test_pods_that_keep_others_away_have_to_go() -> None:
    away = make_affinity(away=[make_pod_term(HOSTNAME, labels={"app": "web"})])
    nodes = [make_node("a", labels={HOSTNAME: "a"}, cpu=2), make_node("b", labels={HOSTNAME: "b"}, cpu=2)]
    pods = [
        make_running("loner", "a", affinity=away, priority=1),
        make_running("bystander", "a", priority=0),
        make_running("big", "b", cpu=2, priority=2),
    ]
    cluster = make_cluster(nodes=nodes, pods=pods)

    found = search(cluster, make_pod("pod", cpu=1, labels={"app": "web"}, priority=10))

    assert chosen(found) == ("a", ["loner"])


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            make_pod("pod", cpu=2, priority=10),
            "0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
            "1 Preemption is not helpful for scheduling.",
            id="nobody to evict, too little even so, and too small a node",
        ),
        pytest.param(
            make_pod("pod", cpu=2, priority=10, spec={"preemptionPolicy": "Never"}),
            "not eligible due to preemptionPolicy=Never.",
            id="a pod that does not want to evict",
        ),
    ],
)
def test_what_is_said_when_nothing_helps(pod: Pod, message: str) -> None:
    nodes = [make_node("full", cpu=2), make_node("kept", cpu=2), make_node("small", cpu=1)]
    pods = [
        make_running("equal", "full", cpu=1, priority=10),
        make_running("lower", "kept", cpu=1, priority=1),
        make_running("higher", "kept", cpu=1, priority=20),
    ]
    cluster = make_cluster(nodes=nodes, pods=pods)

    assert search(cluster, pod) == InVain(f"preemption: {message}")


def test_a_pod_waits_while_its_victims_are_leaving_the_node_it_was_nominated_to() -> None:
    leaving = make_running("leaving", "a", cpu=2, terminating=True)
    leaving.status.conditions = [Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")]
    cluster = make_cluster(nodes=[make_node("a", cpu=2)], pods=[leaving])
    pod = make_pod("pod", cpu=2, priority=10)
    pod.status.nominated_node_name = "a"

    assert search(cluster, pod) == InVain("preemption: not eligible due to a terminating pod on the nominated node.")
