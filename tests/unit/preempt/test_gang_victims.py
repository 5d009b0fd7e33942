"""Gangs of which somebody would have to go: what is too much goes first, and the rest as a whole or not at all."""

from preemption_builders import (
    chosen,
    gang_cluster,
    gang_scheduler,
    make_budget,
    make_gang,
    make_member,
    make_running,
    search,
    seconds,
)

from mooring.actions.preempt.pods.search import Found, InVain, VictimSearch
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.model.api.pods import Pod
from mooring.model.decisions import Evict, Wait
from mooring.model.events import GangLost, GangSeen, PodSeen
from mooring.model.gangs.gang import Role
from mooring.model.gangs.membership import GANG_NAME
from mooring.testing.builders import HOSTNAME, ZONE, make_affinity, make_node, make_pod, make_pod_term
from mooring.testing.random_clusters import with_phase

NODES = (make_node("a", cpu=2), make_node("b", cpu=2))
URGENT = make_pod("pod", cpu=2, priority=10)


def running_member(name: str, gang: str, node: str, *, started: str | None = None, **given: object) -> Pod:
    return make_running(name, node, started=started, annotations={GANG_NAME: gang}, **({"cpu": 2} | given))  # type: ignore[arg-type]


def test_a_gang_is_left_alone_where_a_pod_by_itself_is_enough() -> None:
    pods = [
        running_member("train-0", "train", "a"),
        make_running("web", "b", cpu=2, priority=9),
    ]
    cluster = gang_cluster(nodes=NODES, pods=pods, gangs=[make_gang("train", 1)])

    assert chosen(search(cluster, URGENT)) == ("b", ["web"])


def test_what_a_gang_does_not_need_goes_by_itself_the_last_come() -> None:
    pods = [running_member(f"train-{i}", "train", node) for i, node in enumerate(("a", "b", "c"))]
    cluster = gang_cluster(nodes=[*NODES, make_node("c", cpu=2)], pods=pods, gangs=[make_gang("train", 2)])

    assert chosen(search(cluster, URGENT)) == ("c", ["train-2"])


def test_a_gang_that_restarts_as_a_whole_has_nobody_to_spare() -> None:
    pods = [running_member(f"train-{i}", "train", node) for i, node in enumerate(("a", "b", "c"))]
    nodes = [*NODES, make_node("c", cpu=2)]
    cluster = gang_cluster(nodes=nodes, pods=pods, gangs=[make_gang("train", 2, restarts_whole=True)])

    found = search(cluster, URGENT)

    assert isinstance(found, Found)
    assert {victim.key for victim in found.victims} == {f"default/train-{i}" for i in range(3)}


def test_members_that_have_succeeded_leave_as_many_to_spare_as_before() -> None:
    pods = [running_member(f"train-{i}", "train", node) for i, node in enumerate(("a", "b", "c"))]
    nodes = [*NODES, make_node("c", cpu=2)]
    cluster = gang_cluster(nodes=nodes, pods=pods, gangs=[make_gang("train", 2)])
    using = VictimSearch(cluster)
    assert chosen(search(cluster, URGENT, using=using)) == ("c", ["train-2"])

    cluster.observe(PodSeen(with_phase(pods[0], "Succeeded")), PodSeen(make_running("web", "a", cpu=2, priority=99)))

    assert chosen(search(cluster, URGENT, using=using)) == ("c", ["train-2"])
    cluster.observe(PodSeen(with_phase(pods[2], "Succeeded")), PodSeen(make_running("web-2", "c", cpu=2, priority=99)))
    assert chosen(search(cluster, URGENT, using=using)) == ("b", ["train-1"])


def test_who_may_not_be_a_victim_is_none() -> None:
    kept = make_running("kept", "a", cpu=2, annotations={"volcano.sh/preemptable": "false"})
    cluster = gang_cluster(nodes=NODES, pods=[kept, make_running("web", "b", cpu=2, priority=9)], gangs=[])

    assert chosen(search(cluster, URGENT)) == ("b", ["web"])


def test_a_gang_that_may_not_be_a_victim_is_left_whole() -> None:
    pods = [running_member("train-0", "train", "a"), running_member("train-1", "train", "b")]
    cluster = gang_cluster(nodes=NODES, pods=pods, gangs=[make_gang("train", 1, preemptible=False)])
    assert isinstance(search(cluster, URGENT), InVain)

    kept = running_member("train-0", "train", "a", labels={"volcano.sh/preemptable": "false"})
    cluster = gang_cluster(nodes=NODES, pods=[kept, pods[1]], gangs=[make_gang("train", 2)])
    assert isinstance(search(cluster, URGENT), InVain)


def test_a_role_that_must_be_there_is_no_surplus() -> None:
    role = "training.kubeflow.org/replica-type"
    pods = [
        running_member("train-0", "train", "a", labels={role: "worker"}),
        running_member("train-1", "train", "b", labels={role: "master"}),
    ]
    gang = make_gang("train", 1, roles=(Role("master", 1),))
    cluster = gang_cluster(nodes=NODES, pods=pods, gangs=[gang])

    assert chosen(search(cluster, URGENT)) == ("a", ["train-0"])


def test_a_whole_gang_goes_from_all_its_nodes_where_nothing_else_helps() -> None:
    pods = [running_member("train-0", "train", "a"), running_member("train-1", "train", "b")]
    scheduler = gang_scheduler(
        nodes=NODES, pods=[*pods, make_pod("urgent", cpu=2, priority=10)], gangs=[make_gang("train", 2)]
    )

    decisions = scheduler.cycle(1.0)

    node = next(found.nominated_node for found in decisions if isinstance(found, Wait))
    reason = f"Preempted by pod uid-default-urgent on node {node}, gang default/train as a whole"
    assert [found for found in decisions if isinstance(found, Evict)] == [
        Evict("default/train-0", "a", "default/urgent", reason),
        Evict("default/train-1", "b", "default/urgent", reason),
    ]


def test_the_smaller_gang_goes() -> None:
    pods = [
        *(running_member(f"large-{i}", "large", node) for i, node in enumerate(("a", "c"))),
        running_member("small-0", "small", "b"),
    ]
    nodes = [*NODES, make_node("c", cpu=2)]
    cluster = gang_cluster(nodes=nodes, pods=pods, gangs=[make_gang("large", 2), make_gang("small", 1)])

    assert chosen(search(cluster, URGENT)) == ("b", ["small-0"])


def test_the_gang_of_lower_priority_goes_even_if_it_is_larger() -> None:
    pods = [
        *(running_member(f"low-{i}", "low", node, priority=5) for i, node in enumerate(("a", "c"))),
        running_member("high-0", "high", "b", priority=5),
    ]
    gangs = [make_gang("low", 2, priority=1), make_gang("high", 1)]
    cluster = gang_cluster(nodes=[*NODES, make_node("c", cpu=2)], pods=pods, gangs=gangs)

    found = search(cluster, URGENT)

    assert isinstance(found, Found)
    assert {victim.key for victim in found.victims} == {"default/low-0", "default/low-1"}


def test_a_gang_has_the_priority_of_its_most_urgent_member() -> None:
    pods = [running_member("train-0", "train", "a"), running_member("train-1", "train", "b", priority=10)]
    cluster = gang_cluster(nodes=NODES, pods=pods, gangs=[make_gang("train", 2)])

    message = "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    assert search(cluster, URGENT) == InVain(message)


def test_a_gang_that_wants_to_go_one_by_one_does() -> None:
    pods = [running_member("train-0", "train", "a"), running_member("train-1", "train", "b")]
    cluster = gang_cluster(nodes=NODES, pods=pods, gangs=[make_gang("train", 2, evicted_whole=False)])

    found = search(cluster, URGENT)

    assert isinstance(found, Found)
    assert len(found.victims) == 1


def test_two_pods_in_one_cycle_do_not_break_a_gang_between_them() -> None:
    pods = [running_member(f"train-{i}", "train", node) for i, node in enumerate(("a", "b", "c"))]
    urgent = [make_pod("first", cpu=2, priority=10), make_pod("second", cpu=2, priority=10)]
    scheduler = gang_scheduler(
        nodes=[*NODES, make_node("c", cpu=2)], pods=[*pods, *urgent], gangs=[make_gang("train", 2)]
    )

    decisions = scheduler.cycle(1.0)

    evicted = {found.pod: found.preemptor for found in decisions if isinstance(found, Evict)}
    assert evicted == {
        "default/train-2": "default/first",
        "default/train-0": "default/second",
        "default/train-1": "default/second",
    }


def test_of_a_gang_of_gangs_those_go_first_that_it_can_do_without() -> None:
    parts = [make_gang(f"part-{i}", 1, parent=make_gang("all", 1).key) for i in range(2)]
    pods = [running_member(f"part-{i}-0", f"part-{i}", node) for i, node in enumerate(("a", "b"))]
    cluster = gang_cluster(nodes=NODES, pods=pods, gangs=[make_gang("all", 1, of_gangs=True), *parts])

    assert chosen(search(cluster, URGENT)) == ("b", ["part-1-0"])


def test_all_parts_of_a_gang_go_where_it_needs_all() -> None:
    parts = [make_gang(f"part-{i}", 1, parent=make_gang("all", 2).key) for i in range(2)]
    pods = [running_member(f"part-{i}-0", f"part-{i}", node) for i, node in enumerate(("a", "b"))]
    cluster = gang_cluster(nodes=NODES, pods=pods, gangs=[make_gang("all", 2, of_gangs=True), *parts])

    found = search(cluster, URGENT)

    assert isinstance(found, Found)
    assert dict(found.gangs) == {"default/part-0-0": "default/all", "default/part-1-0": "default/all"}


def test_gangs_that_come_change_and_go_are_seen() -> None:
    pods = [running_member("train-0", "train", "a"), running_member("train-1", "train", "b")]
    cluster = gang_cluster(nodes=NODES, pods=pods, gangs=[])
    using = VictimSearch(cluster)

    def victims() -> int:
        found = search(cluster, URGENT, using)
        return len(found.victims) if isinstance(found, Found) else 0

    assert victims() == 1
    cluster.observe(GangSeen(make_gang("train", 2)))
    assert victims() == 2
    cluster.observe(GangSeen(make_gang("train", 2, priority=20)))
    assert victims() == 0
    cluster.observe(GangSeen(make_gang("train", 2, parent=make_gang("all", 1).key)))
    assert victims() == 2
    cluster.observe(GangSeen(make_gang("all", 1, of_gangs=True, priority=20)))
    assert victims() == 0
    cluster.observe(GangLost(make_gang("all", 1).key))
    assert victims() == 2
    cluster.observe(GangLost(make_gang("train", 2).key))
    assert victims() == 1


def test_a_pod_does_not_evict_its_own_gang() -> None:
    pods = [running_member("train-0", "train", "a"), running_member("train-1", "train", "b")]
    new = make_member("train-2", "train", cpu=2, priority=10)
    cluster = gang_cluster(nodes=NODES, pods=[*pods, new], gangs=[make_gang("train", 2, priority=0)])

    assert isinstance(search(cluster, new), InVain)


def test_a_gang_with_a_member_that_has_just_begun_is_protected_as_a_whole() -> None:
    pods = [
        running_member("train-0", "train", "a", started="01:00"),
        running_member("train-1", "train", "b", started="08:59"),
    ]
    cluster = gang_cluster(nodes=NODES, pods=pods, gangs=[make_gang("train", 2)])
    args = PreemptionCostArgs(minimum_runtime_seconds=120)

    message = "preemption: 0/2 nodes are available: 2 victims are protected for another 60s."
    assert search(cluster, URGENT, at="09:00", costs=args) == InVain(message, 60)
    assert isinstance(search(cluster, URGENT, at="09:01", costs=args), Found)


def test_a_gang_that_a_budget_protects_goes_last() -> None:
    pods = [
        running_member("small-0", "small", "a", labels={"app": "db"}),
        *(running_member(f"large-{i}", "large", node) for i, node in enumerate(("b", "c"))),
    ]
    cluster = gang_cluster(
        nodes=[*NODES, make_node("c", cpu=2)],
        pods=pods,
        gangs=[make_gang("small", 1), make_gang("large", 2)],
        related=[make_budget("db", labels={"app": "db"}, allowed=0)],
    )

    found = search(cluster, URGENT)

    assert isinstance(found, Found)
    assert {victim.pod.metadata.name for victim in found.victims} == {"large-0", "large-1"}
    assert found.violations == 0


def test_a_gang_elsewhere_goes_if_its_pods_keep_others_away() -> None:
    away = make_affinity(away=[make_pod_term(ZONE, labels={"app": "web"})])
    nodes = [make_node(name, cpu=2, zone="z", labels={HOSTNAME: name}) for name in ("a", "b")]
    pods = [
        running_member("train-0", "train", "a", cpu=1),
        running_member("train-1", "train", "b", cpu=1, affinity=away),
        make_running("held", "b", cpu=1, priority=20),
    ]
    cluster = gang_cluster(nodes=nodes, pods=pods, gangs=[make_gang("train", 2)])

    found = search(cluster, make_pod("pod", cpu=1, priority=10, labels={"app": "web"}))

    assert isinstance(found, Found)
    assert [victim.pod.metadata.name for victim in found.victims] == ["train-0", "train-1"]


def test_the_eviction_of_a_gang_counts_for_the_gang_as_one() -> None:
    pods = [running_member("train-0", "train", "a"), running_member("train-1", "train", "b")]
    profile = {
        "pluginConfig": [{"name": "PreemptionCost", "args": {"mostPreemptionsPerWorkload": 1, "windowSeconds": 60}}]
    }
    scheduler = gang_scheduler(
        nodes=NODES,
        pods=[*pods, make_pod("urgent", cpu=2, priority=10)],
        gangs=[make_gang("train", 2)],
        profile=profile,
    )
    start = seconds("09:00")
    assert sum(isinstance(found, Evict) for found in scheduler.cycle(start)) == 2
    for pod in pods:
        back = running_member(pod.metadata.name, "train", pod.spec.node_name)
        back.metadata.uid = f"again-{pod.metadata.name}"
        scheduler.handle(PodSeen(back))
    scheduler.handle(PodSeen(make_pod("next", cpu=2, priority=10)))

    decisions = scheduler.cycle(start + 10)

    assert not [found for found in decisions if isinstance(found, Evict)]


def test_a_pod_beside_a_gang_of_eight_goes_without_an_index_error() -> None:
    members = [running_member(f"train-{i}", "train", "a", cpu=0) for i in range(8)]
    pods = [*members, make_running("web", "a", cpu=1)]
    cluster = gang_cluster(nodes=NODES[:1], pods=pods, gangs=[make_gang("train", 8)])

    assert chosen(search(cluster, URGENT)) == ("a", ["web"])


def test_a_pod_beside_two_gangs_of_four_goes_without_an_index_error() -> None:
    members = [running_member(f"{gang}-{i}", gang, "a", cpu=0) for gang in ("first", "second") for i in range(4)]
    pods = [*members, make_running("web", "a", cpu=1)]
    cluster = gang_cluster(nodes=NODES[:1], pods=pods, gangs=[make_gang("first", 4), make_gang("second", 4)])

    assert chosen(search(cluster, URGENT)) == ("a", ["web"])
