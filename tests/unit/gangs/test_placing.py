"""Gangs in the queue and on nodes: whole or absent, with everything that may happen in between."""

from collections.abc import Iterable
from typing import Any

from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Evict, Wait
from mooring.model.events import Failed, GangSeen, NodeLost, PodLost, PodSeen
from mooring.model.gangs.gang import Gang, Role, gang_key
from mooring.model.gangs.membership import PLAIN_KIND
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.builders import make_affinity, make_node, make_pod, make_pod_term, make_scheduler

RACK, BLOCK = "example.com/rack", "example.com/block"


def make_gang(name: str = "train", minimum: int = 4, **given: Any) -> Gang:
    return Gang(gang_key(PLAIN_KIND, "default", name), f"default/{name}", minimum, **given)


def make_members(count: int, gang: str = "train", prefix: str = "", **given: Any) -> list[Pod]:
    return [
        make_pod(f"{prefix or gang}-{i}", annotations={"mooring.dev/gang-name": gang}, **given) for i in range(count)
    ]


def start(*gangs: Gang, **given: Any) -> Scheduler:
    scheduler = make_scheduler(**given)
    scheduler.handle(*map(GangSeen, gangs))
    return scheduler


def bound(decisions: Iterable[Any]) -> dict[str, str]:
    return {found.pod.partition("/")[2]: found.node for found in decisions if isinstance(found, Bind)}


def waiting(decisions: Iterable[Any]) -> dict[str, str]:
    """By pod: why it waits; what preemption adds to that aside."""
    waits = [found for found in decisions if isinstance(found, Wait)]
    return {found.pod.partition("/")[2]: found.message.partition(" pod group preemption")[0] for found in waits}


def test_a_gang_that_does_not_fit_holds_nothing_and_starts_when_the_rest_is_freed() -> None:
    nodes = [make_node(f"n{i}", gpu=4) for i in range(4)]
    other = make_pod("other", gpu=4, node="n3")
    scheduler = start(make_gang(minimum=16), nodes=nodes, pods=[*make_members(16, gpu=1), other])

    first = scheduler.cycle(1.0)

    assert not bound(first)
    assert set(waiting(first).values()) == {"gang default/train: room for 12 of 16 members"}
    assert not scheduler.cluster.pods.on_row.keys() - {scheduler.cluster.nodes.row_of["n3"]}

    scheduler.handle(PodLost("default/other"))
    assert len(bound(scheduler.cycle(2.0))) == 16


def test_of_two_gangs_that_fit_alone_but_not_together_one_runs_and_the_other_has_nothing() -> None:
    pods = [pod for pair in zip(make_members(3, "a", gpu=1), make_members(3, "b", gpu=1), strict=True) for pod in pair]
    scheduler = start(make_gang("a", 3), make_gang("b", 3), nodes=[make_node("n", gpu=4)], pods=pods)

    decisions = scheduler.cycle(1.0)

    assert set(bound(decisions)) == {"a-0", "a-1", "a-2"}
    assert set(waiting(decisions)) == {"b-0", "b-1", "b-2"}


def test_a_gang_waits_until_enough_of_it_exists() -> None:
    scheduler = start(make_gang(minimum=3), nodes=[make_node("n", gpu=4)], pods=make_members(2, gpu=1))

    assert scheduler.cycle(1.0) == []
    reasons = {rejection.reasons for _, rejection in scheduler.queue.gated()}
    assert reasons == {("gang default/train waits for its members: 2 of 3 exist",)}

    scheduler.handle(PodSeen(make_members(3, gpu=1)[2]))
    assert set(bound(scheduler.cycle(2.0))) == {"train-0", "train-1", "train-2"}


def test_a_gang_that_nobody_declared_waits() -> None:
    scheduler = start(nodes=[make_node("n", gpu=4)], pods=make_members(1, gpu=1))

    assert scheduler.cycle(1.0) == []
    assert [rejection.reasons for _, rejection in scheduler.queue.gated()] == [("gang default/train is not declared",)]


def test_an_elastic_gang_starts_at_its_minimum_and_grows_when_there_is_room() -> None:
    scheduler = start(make_gang(minimum=2), nodes=[make_node("n", gpu=3)], pods=make_members(5, gpu=1))

    assert set(bound(scheduler.cycle(1.0))) == {"train-0", "train-1", "train-2"}

    scheduler.handle(PodLost("default/train-2"))
    assert set(bound(scheduler.cycle(20.0))) == {"train-3"}


def test_members_of_different_shapes_start_together() -> None:
    gang = make_gang(minimum=3)
    workers = make_members(2, gpu=4, prefix="worker")
    leader = make_pod("leader", cpu=1, annotations={"mooring.dev/gang-name": "train"})
    nodes = [make_node("g0", gpu=4), make_node("g1", gpu=4)]

    assert len(bound(start(gang, nodes=nodes, pods=[leader, *workers]).cycle(1.0))) == 3
    assert not bound(start(gang, nodes=nodes[:1], pods=[leader, *workers]).cycle(1.0))


def test_minimums_of_roles_count() -> None:
    gang = make_gang(minimum=2, roles=(Role("ps", 1),))
    annotations = {"scheduling.volcano.sh/group-name": "train"}
    key = gang_key("PodGroup.scheduling.volcano.sh", "default", "train")
    gang = Gang(key, gang.name, gang.minimum, gang.roles)
    workers = [
        make_pod(f"w-{i}", gpu=1, annotations={**annotations, "volcano.sh/task-spec": "worker"}) for i in range(3)
    ]
    server = make_pod("ps-0", gpu=1, annotations={**annotations, "volcano.sh/task-spec": "ps"})

    assert not bound(start(gang, nodes=[make_node("n", gpu=4)], pods=workers).cycle(1.0))
    assert "ps-0" in bound(start(gang, nodes=[make_node("n", gpu=2)], pods=[*workers, server]).cycle(1.0))


def test_the_order_of_members_is_turned_round_where_greed_fails() -> None:
    gang = make_gang(minimum=3)
    small = make_members(2, prefix="small", gpu=2)
    large = make_pod("large", gpu=4, annotations={"mooring.dev/gang-name": "train"})
    nodes = [make_node("a", gpu=4), make_node("b", gpu=4)]

    placed = bound(start(gang, nodes=nodes, pods=[*small, large]).cycle(1.0))

    assert placed["small-0"] == placed["small-1"] != placed["large"]


def test_a_leader_goes_where_the_workers_that_want_to_be_near_it_have_room() -> None:
    near = make_affinity(near=[make_pod_term(labels={"role": "leader"}, key="zone")])
    leader = make_pod("leader", cpu=1, labels={"role": "leader"}, annotations={"mooring.dev/gang-name": "train"})
    workers = make_members(2, prefix="worker", gpu=1, affinity=near)
    nodes = [
        make_node("empty", cpu=64, labels={"zone": "a"}),
        make_node("gpus", cpu=4, gpu=2, labels={"zone": "b"}),
    ]
    scheduler = start(make_gang(minimum=3), nodes=nodes, pods=[leader, *workers])

    assert bound(scheduler.cycle(1.0)) == {"leader": "gpus", "worker-0": "gpus", "worker-1": "gpus"}


def test_a_failed_bind_is_made_good_at_once_or_releases_all() -> None:
    nodes = [make_node("a", gpu=2), make_node("b", gpu=1)]
    scheduler = start(make_gang(minimum=2), nodes=nodes, pods=make_members(2, gpu=1))
    assert len(bound(scheduler.cycle(1.0))) == 2

    scheduler.handle(Failed(Bind("default/train-0", "")))
    assert set(bound(scheduler.cycle(2.0))) == {"train-0"}

    scheduler.handle(NodeLost("a"), NodeLost("b"))
    scheduler.cycle(3.0)
    assert not scheduler.cluster.pods.on_row


def test_a_node_that_disappears_while_a_gang_starts_releases_the_others() -> None:
    nodes = [make_node("a", gpu=1), make_node("b", gpu=1)]
    scheduler = start(make_gang(minimum=2), nodes=nodes, pods=make_members(2, gpu=1))
    placed = bound(scheduler.cycle(1.0))
    lost = next(pod for pod, node in placed.items() if node == "a")
    other = next(pod for pod, node in placed.items() if node == "b")

    scheduler.handle(NodeLost("a"))
    evicted = [found for found in scheduler.cycle(2.0) if isinstance(found, Evict)]

    assert [(found.pod, found.node) for found in evicted] == [(f"default/{other}", "b")]
    assert "could not start" in evicted[0].reason
    assert lost != other


def test_a_gang_that_ran_gets_time_for_its_members_to_come_back() -> None:
    gang = make_gang(minimum=2, timeout_seconds=60)
    running = make_members(2, gpu=1, node="a")
    scheduler = start(gang, nodes=[make_node("a", gpu=2)], pods=running)
    scheduler.cycle(1.0)

    scheduler.handle(PodLost("default/train-0"))
    assert scheduler.cycle(2.0) == []
    evicted = [found for found in scheduler.cycle(90.0) if isinstance(found, Evict)]

    assert [found.pod for found in evicted] == ["default/train-1"]
    assert "not whole for 60s" in evicted[0].reason


def rack_nodes(racks: dict[str, int], gpu: int = 2) -> list[Any]:
    return [
        make_node(f"{rack}-{i}", gpu=gpu, labels={RACK: rack, BLOCK: rack[0]})
        for rack, count in racks.items()
        for i in range(count)
    ]


def test_a_gang_goes_to_the_tightest_rack_that_holds_it_ranks_in_order() -> None:
    gang = make_gang(minimum=4, topology_request=TopologyRequest(required=RACK))
    nodes = rack_nodes({"a1": 4, "a2": 2, "b1": 3})
    placed = bound(start(gang, nodes=nodes, pods=make_members(4, gpu=1)).cycle(1.0))

    assert placed == {"train-0": "a2-0", "train-1": "a2-0", "train-2": "a2-1", "train-3": "a2-1"}


def test_a_gang_too_large_for_every_rack_waits_and_says_so() -> None:
    gang = make_gang(minimum=6, topology_request=TopologyRequest(required=RACK))
    scheduler = start(gang, nodes=rack_nodes({"a1": 2, "a2": 2}), pods=make_members(6, gpu=1))

    assert set(waiting(scheduler.cycle(1.0)).values()) == {"gang default/train: largest rack holds 4 of 6 members"}


def test_a_preferred_rack_gives_way_to_the_block() -> None:
    gang = make_gang(minimum=6, topology_request=TopologyRequest(required=BLOCK, preferred=RACK))
    placed = bound(start(gang, nodes=rack_nodes({"a1": 2, "a2": 2, "b1": 2}), pods=make_members(6, gpu=1)).cycle(1.0))

    assert {node[0] for node in placed.values()} == {"a"}


def test_members_that_join_later_go_to_the_domain_of_the_others() -> None:
    gang = make_gang(minimum=2, topology_request=TopologyRequest(required=RACK))
    members = make_members(4, gpu=1)
    scheduler = start(gang, nodes=rack_nodes({"a1": 2, "a2": 1}), pods=members[:2])
    first = bound(scheduler.cycle(1.0))
    assert {node[:2] for node in first.values()} == {"a2"}

    scheduler.handle(*map(PodSeen, members[2:]))
    decisions = scheduler.cycle(2.0)

    assert not bound(decisions), "the rack of the others is full"
    assert set(waiting(decisions)) == {"train-2", "train-3"}


def test_a_reservation_keeps_room_from_those_behind_it_and_lets_short_ones_pass() -> None:
    nodes = [make_node("a", gpu=4), make_node("b", gpu=4)]
    busy = make_pod("busy", gpu=4, node="b", annotations={"mooring.dev/duration": "1h"})
    gang = make_gang(minimum=8, created=0.0)
    scheduler = start(gang, nodes=nodes, pods=[busy, *make_members(8, gpu=1)])
    scheduler.cycle(1.0)

    scheduler.handle(PodSeen(make_pod("endless", gpu=1)))
    scheduler.handle(PodSeen(make_pod("short", gpu=1, annotations={"mooring.dev/duration": "10m"})))
    scheduler.handle(PodSeen(make_pod("long", gpu=1, annotations={"mooring.dev/duration": "2h"})))
    scheduler.handle(PodSeen(make_pod("lesser", gpu=1, priority=-5)))
    decisions = scheduler.cycle(1000.0)

    assert set(bound(decisions)) == {"short", "lesser"}
    assert {"endless", "long"} <= set(waiting(decisions))
    assert sum(len(slots) for slots in scheduler.cluster.pods.on_row.values()) == 3, "the gang itself holds nothing"
