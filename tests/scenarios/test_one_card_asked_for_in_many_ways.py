"""A GPU that is published for claims and handed out as a card: whoever has it, nobody else gets it."""

from typing import Any

import pytest

from mooring.engine.cycle import Scheduler
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.devices.joining import NVIDIA
from mooring.model.events import NodeLost, NodeSeen, PodLost, PodSeen, Related
from mooring.testing.builders import make_node, make_pod, make_scheduler
from mooring.testing.card_worlds import hami_register
from mooring.testing.claim_builders import make_claiming_pod, make_class, make_device, make_slice, make_template


def nvidia_slice(node: str, count: int, **given: Any) -> Any:
    devices = [
        make_device(f"gpu-{at}", attributes={"uuid": f"GPU-{node}-{at}", "type": "gpu"}, **given) for at in range(count)
    ]
    return make_slice(node, devices, driver=NVIDIA)


def scheduler_with(node: Node, count: int, **given: Any) -> Scheduler:
    related: list[Related] = [make_class(driver=NVIDIA), make_template("one"), nvidia_slice("n", count, **given)]
    return make_scheduler(nodes=[node], related=related)


def counted(gpus: int) -> Node:
    return make_node("n", gpu=gpus)


def hami(gpus: int) -> Node:
    return make_node("n", gpu=10 * gpus, annotations={"hami.io/node-nvidia-register": hami_register("n", gpus)})


def claiming(name: str, priority: int = 0) -> Pod:
    return make_claiming_pod(name, templates=["one"], priority=priority)


def vgpu(name: str, **given: Any) -> Pod:
    return make_pod(name, resources={"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000}, **given)


def fraction(name: str, **given: Any) -> Pod:
    return make_pod(name, annotations={"gpu-fraction": "0.5"}, **given)


def whole(name: str, **given: Any) -> Pod:
    return make_pod(name, gpu=1, **given)


def bound(decisions: list[Decision]) -> list[str]:
    return [found.pod.removeprefix("default/") for found in decisions if isinstance(found, Bind)]


def placed_in_turn(scheduler: Scheduler, *pods: Pod) -> list[str]:
    """Which pods get a place, each asked for once those before it have theirs."""
    placed = []
    for now, pod in enumerate(pods):
        scheduler.handle(PodSeen(pod))
        placed += bound(scheduler.cycle(float(now)))
    return placed


@pytest.mark.parametrize(
    ("node", "first", "second"),
    [
        pytest.param(hami(1), claiming("a"), vgpu("b"), id="a vGPU behind a claim"),
        pytest.param(hami(1), vgpu("a"), claiming("b"), id="a claim behind a vGPU"),
        pytest.param(hami(1), claiming("a"), fraction("b"), id="a fraction on a node of HAMi behind a claim"),
        pytest.param(counted(1), claiming("a"), fraction("b"), id="a fraction behind a claim"),
        pytest.param(counted(1), fraction("a"), claiming("b"), id="a claim behind a fraction"),
        pytest.param(counted(1), claiming("a"), whole("b"), id="a whole GPU behind a claim"),
        pytest.param(counted(1), whole("a"), claiming("b"), id="a claim behind a whole GPU"),
    ],
)
def test_the_only_gpu_of_a_node_goes_to_whoever_comes_first(node: Node, first: Pod, second: Pod) -> None:
    assert placed_in_turn(scheduler_with(node, 1), first, second) == ["a"]


def test_every_gpu_is_given_out_once_in_whatever_way() -> None:
    pods = [whole("whole"), claiming("claim"), fraction("left"), fraction("right"), claiming("late"), whole("later")]

    assert placed_in_turn(scheduler_with(counted(3), 3), *pods) == ["whole", "claim", "left", "right"]


def test_what_a_claim_leaves_of_a_device_that_is_given_out_by_amounts_others_may_share() -> None:
    capacity = {"memory": {"value": "15Gi"}, "cores": {"value": "100"}}
    scheduler = scheduler_with(hami(1), 1, allowMultipleAllocations=True, capacity=capacity)
    part = {"deviceClassName": "gpu", "capacity": {"requests": {"memory": "8Gi", "cores": "50"}}}
    scheduler.cluster.related.put(make_template("one", {"name": "gpu", "exactly": part}))

    assert placed_in_turn(scheduler, claiming("a"), vgpu("b"), vgpu("c"), claiming("late")) == ["a", "b"]


def test_devices_of_another_driver_are_other_devices() -> None:
    related: list[Related] = [make_class(), make_template("one"), make_slice("n", 1)]
    scheduler = make_scheduler(nodes=[counted(1)], related=related)

    assert placed_in_turn(scheduler, claiming("a"), whole("b")) == ["a", "b"]


@pytest.mark.parametrize(
    ("node", "runs", "comes"),
    [
        pytest.param(hami(1), vgpu("a", priority=0), claiming("b", priority=10), id="a claim for a vGPU"),
        pytest.param(hami(1), claiming("a"), vgpu("b", priority=10), id="a vGPU for a claim"),
        pytest.param(counted(1), whole("a", priority=0), claiming("b", priority=10), id="a claim for a whole GPU"),
    ],
)
def test_preemption_frees_a_card_whichever_way_it_was_asked_for(node: Node, runs: Pod, comes: Pod) -> None:
    scheduler = scheduler_with(node, 1)
    assert placed_in_turn(scheduler, runs) == ["a"]

    scheduler.handle(PodSeen(comes))
    evicted = [found.pod for found in scheduler.cycle(10.0) if isinstance(found, Evict)]
    scheduler.handle(PodLost("default/a"))

    assert evicted == ["default/a"]
    assert bound(scheduler.cycle(20.0)) == ["b"]


def test_a_node_that_comes_back_knows_what_claims_have_of_its_cards() -> None:
    scheduler = scheduler_with(hami(2), 2)
    assert placed_in_turn(scheduler, claiming("a")) == ["a"]

    scheduler.handle(NodeLost("n"))
    scheduler.cycle(10.0)
    scheduler.handle(
        NodeSeen(hami(2)), PodSeen(make_pod("b", resources={"nvidia.com/gpu": 2, "nvidia.com/gpumem": 10}))
    )

    assert bound(scheduler.cycle(20.0)) == []
    assert scheduler.cluster.card_holders.cards_with_pods(0) == set()
