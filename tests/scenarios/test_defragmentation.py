"""Pods with GPUs are moved so that what waits for whole nodes has room: with the fewest moves, and held for it."""

from typing import Any

from rebalancing_world import START, evictions, let_run, make_world, places, plan_of, policy_of, replica

from mooring.drivers.offline.driver import Offline
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind
from mooring.model.events import PodLost, PodSeen
from mooring.model.gangs.gang import Gang
from mooring.model.gangs.membership import membership
from mooring.testing.builders import make_nodes, make_pod

NOTHING_ELSE = policy_of({})


def world(*pods: Pod, nodes: int = 3, **given: Any) -> Offline:
    return make_world(make_nodes(nodes, cpu=64, gpu=8), pods, NOTHING_ELSE, **{"defragment_gpus": True, **given})


def serving(name: str, node: str, gpu: int, **given: Any) -> Pod:
    return replica(name, node, of="serve", cpu=1, gpu=gpu, **given)


def gang(pods: int, gpu: int) -> tuple[Gang, list[Pod]]:
    labels = {"scheduling.x-k8s.io/pod-group": "train"}
    members = [make_pod(f"train-{n}", cpu=1, gpu=gpu, labels=labels) for n in range(pods)]
    found = membership(members[0])
    assert found is not None
    return Gang(found.gang, "default/train", pods), members


def test_the_fewest_pods_make_room_for_one_that_wants_a_whole_node() -> None:
    found = world(
        *(serving(f"a-{n}", "node-0", 1) for n in range(3)),
        serving("b", "node-1", 2),
        serving("c", "node-2", 4),
        make_pod("train", cpu=1, gpu=8),
    )

    decisions = let_run(found, 60)

    assert evictions(decisions) == [("default/b", "node-1", "node-2")]
    assert places(found)["default/train"] == "node-1"
    assert places(found)["default/b"] == "node-2"


def test_a_gang_gets_room_for_all_of_it() -> None:
    declared, members = gang(2, 8)
    found = world(
        serving("a", "node-0", 2), serving("b", "node-1", 2), serving("c", "node-2", 2), *members, gangs=[declared]
    )

    decisions = let_run(found, 60)

    assert len(evictions(decisions)) == 2
    assert len({places(found)[f"default/train-{n}"] for n in range(2)}) == 2
    assert all(places(found).values())


def test_on_a_hundred_fragmented_nodes_a_gang_starts_after_the_fewest_moves_and_no_pod_is_without_a_place() -> None:
    # Every node has from one to five pods with a GPU each: the two nodes that one pod leaves are the cheapest.
    pods = [
        serving(f"p-{node:03}-{n}", f"node-{node}", 1, labels={"app": "serve"})
        for node in range(100)
        for n in range(1 + (node * 7) % 5)
    ]
    declared, members = gang(2, 8)
    found = world(*pods, *members, nodes=100, gangs=[declared])

    decisions = let_run(found, 60)

    assert len(evictions(decisions)) == 2
    assert all(target for _, _, target in evictions(decisions))
    assert len({places(found)[f"default/train-{n}"] for n in range(2)}) == 2
    assert all(places(found).values())


def test_a_gang_that_would_find_no_room_moves_nothing() -> None:
    declared, members = gang(3, 8)
    found = world(serving("a", "node-0", 2), serving("b", "node-1", 2), *members, gangs=[declared])

    assert evictions(let_run(found, 3600)) == []


def test_the_room_is_held_for_the_one_that_it_was_made_for() -> None:
    found = world(serving("a", "node-0", 2), serving("b", "node-1", 6), make_pod("train", cpu=1, gpu=8), nodes=2)
    scheduler = found.scheduler

    assert evictions(scheduler.cycle(START)) == [("default/a", "node-0", "node-1")]
    scheduler.handle(PodLost("default/a"), PodSeen(make_pod("thief", cpu=1, gpu=8, priority=-1)))

    assert [one for one in scheduler.cycle(START + 1) if isinstance(one, Bind)] == [Bind("default/train", "node-0")]


def test_nothing_moves_without_the_setting_or_for_less_than_it_costs() -> None:
    pods = [serving("a", "node-0", 2), serving("b", "node-1", 6), make_pod("train", cpu=1, gpu=8)]
    long_run = replica("a", "node-0", of="job", kind="Job", cpu=1, gpu=2)

    assert evictions(let_run(world(*pods, nodes=2, defragment_gpus=False), 60)) == []
    assert evictions(let_run(world(long_run, *pods[1:], nodes=2), 60)) == []


def test_a_plan_shows_who_makes_room_for_whom() -> None:
    found = world(serving("a", "node-0", 2), serving("b", "node-1", 6), make_pod("train", cpu=1, gpu=8), nodes=2)
    before = found.scheduler.cluster.pods.records.keys()
    found.scheduler.cluster.note_run("Rebalance", START)
    found.scheduler.cycle(START)

    (step,) = plan_of(found).steps

    assert (step.pod, step.node, step.target) == ("default/a", "node-0", "node-1")
    assert step.reason == "room for default/train, which waits for nvidia.com/gpu"
    assert (step.gain, step.cost) == (100.0, 1.0)
    assert found.scheduler.cluster.pods.records.keys() == before
    assert not found.scheduler.cluster.has_plans
