"""How each dialect asks for cards, and what it is told when a pod gets some."""

import msgspec
import pytest

from mooring.engine.cycle import Scheduler
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind
from mooring.model.devices.card_dialects import cards_of, check_card_request
from mooring.model.devices.cards import CardAsk, CardShare, Sharing
from mooring.model.devices.dialects.koordinator import Device
from mooring.model.devices.dialects.koordinator import cards as koordinator_cards
from mooring.model.devices.dialects.reading import BadShare
from mooring.testing.builders import make_node, make_pod, make_scheduler
from mooring.testing.card_worlds import hami_register

REGISTER = "hami.io/node-nvidia-register"
DEVICE = msgspec.convert(
    {
        "metadata": {"name": "n"},
        "spec": {
            "devices": [
                {
                    "type": "gpu",
                    "id": f"GPU-{minor}",
                    "minor": minor,
                    "health": minor != 2,
                    "resources": {"koordinator.sh/gpu-memory": "16Gi", "koordinator.sh/gpu-core": 100},
                    "topology": {"pcieID": str(minor // 2)},
                }
                for minor in range(3)
            ]
        },
    },
    Device,
)


def hami_node(cards: int = 2) -> Node:
    return make_node("n", gpu=10 * cards, annotations={REGISTER: hami_register("n", cards)})


def asks(pod: Pod, kind: Sharing) -> tuple[CardAsk, ...]:
    request = check_card_request(pod)
    assert request is not None
    return request.asks[kind]


def decided(scheduler: Scheduler) -> list[Bind]:
    return [found for found in scheduler.cycle(1.0) if isinstance(found, Bind)]


def test_hami_gives_all_memory_where_none_is_asked_for_and_as_many_different_cards() -> None:
    some = make_pod(resources={"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30})
    part = make_pod(resources={"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 25})
    all_of_it = make_pod(gpu=1)

    assert asks(some, Sharing.HAMI) == (CardAsk(2, 300, 3000),)
    assert asks(part, Sharing.HAMI) == (CardAsk(1, 0, 0, 250),)
    assert asks(all_of_it, Sharing.HAMI) == (CardAsk(1, 0, 0, 1000),)
    assert asks(all_of_it, Sharing.COUNTED) == ()


def test_koordinator_counts_in_hundredths_and_several_hundreds_are_whole_cards() -> None:
    half = make_pod(resources={"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50})
    two = make_pod(resources={"koordinator.sh/gpu": 200})
    split = make_pod(
        resources={"koordinator.sh/gpu.shared": 2, "koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory": "8Gi"}
    )

    assert asks(half, Sharing.KOORDINATOR) == (CardAsk(1, 500, 0, 500),)
    assert asks(two, Sharing.KOORDINATOR) == (CardAsk(2, 1000, 0, 1000),)
    assert asks(split, Sharing.KOORDINATOR) == (CardAsk(2, 500, 4096),)
    assert [(card.index, card.memory, card.is_healthy, card.island) for card in koordinator_cards(DEVICE).cards] == [
        (0, 16384, True, 0),
        (1, 16384, True, 0),
        (2, 16384, False, 1),
    ]


def test_a_fraction_is_of_compute_and_memory_alike_and_gpu_memory_of_memory_alone() -> None:
    third = make_pod(annotations={"gpu-fraction": "0.3", "gpu-fraction-num-devices": "2"})

    assert asks(third, Sharing.COUNTED) == (CardAsk(2, 300, 0, 300),)
    assert asks(make_pod(annotations={"gpu-memory": "2000"}), Sharing.COUNTED) == (CardAsk(1, 0, 2000),)


@pytest.mark.parametrize(
    ("annotations", "key", "expected"),
    [
        ({"gpu-fraction": "0"}, "gpu-fraction", "more than 0 and less than 1; whole GPUs are limits of nvidia.com/gpu"),
        (
            {"gpu-fraction": "1.5"},
            "gpu-fraction",
            "more than 0 and less than 1; whole GPUs are limits of nvidia.com/gpu",
        ),
        (
            {"gpu-fraction": "half"},
            "gpu-fraction",
            "more than 0 and less than 1; whole GPUs are limits of nvidia.com/gpu",
        ),
        ({"gpu-memory": "0"}, "gpu-memory", "MiB of a card's memory, from 1 on"),
        ({"gpu-fraction": "0.5", "gpu-memory": "1"}, "gpu-memory", "none beside gpu-fraction"),
        ({"gpu-fraction-num-devices": "2"}, "gpu-fraction-num-devices", "gpu-fraction or gpu-memory beside it"),
        ({"alibabacloud.com/gpu-milli": "1500"}, "alibabacloud.com/gpu-milli", "from 1 to 1000, thousandths of a GPU"),
    ],
)
def test_shares_that_cannot_be_are_named(annotations: dict[str, str], key: str, expected: str) -> None:
    with pytest.raises(BadShare) as caught:
        check_card_request(make_pod(annotations=annotations))

    assert (caught.value.key, caught.value.expected) == (key, expected)


def test_hami_is_told_the_cards_of_each_container_as_it_writes_them_itself() -> None:
    asked = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}
    (bound,) = decided(make_scheduler(nodes=[hami_node()], pods=[make_pod("p", resources=asked)]))

    written = dict(bound.annotations)
    assert written == {
        "hami.io/vgpu-node": "n",
        "hami.io/vgpu-devices-to-allocate": "GPU-n-0,NVIDIA,3000,30:GPU-n-1,NVIDIA,3000,30:;",
        "hami.io/vgpu-devices-allocated": "GPU-n-0,NVIDIA,3000,30:GPU-n-1,NVIDIA,3000,30:;",
        "hami.io/bind-phase": "allocating",
    }
    again = make_pod("p", node="n", annotations=written, resources=asked)
    cluster = make_scheduler(nodes=[hami_node()], pods=[again]).cluster
    assert cluster.card_holders.shares_of(again.key) == (CardShare(0, 300, 3000), CardShare(1, 300, 3000))


def test_gpu_milli_is_told_the_index_and_kai_the_group() -> None:
    trace = make_node(
        "t", resources={"alibabacloud.com/gpu-count": 2}, labels={"alibabacloud.com/gpu-card-model": "T4"}
    )
    milli = {"alibabacloud.com/gpu-milli": "460", "alibabacloud.com/gpu-card-model": "T4|P100"}
    found = decided(
        make_scheduler(
            nodes=[trace, make_node("plain", gpu=1)],
            pods=[
                make_pod("m", annotations=milli),
                make_pod("k", annotations={"gpu-memory": "10"}),
                make_pod("w", gpu=1),
            ],
        )
    )

    assert [(each.pod, each.node, each.annotations, each.labels) for each in found] == [
        ("default/m", "t", (("alibabacloud.com/gpu-index", "0"),), ()),
        ("default/w", "plain", (), ()),
    ]
    shared = decided(
        make_scheduler(nodes=[make_node("plain", gpu=1)], pods=[make_pod("k", annotations={"gpu-fraction": "0.5"})])
    )
    assert shared == [Bind("default/k", "plain", (), (("runai-gpu-group", "plain-gpu-0"),))]


def test_an_unhealthy_card_and_one_that_is_cordoned_get_nobody() -> None:
    annotations = {REGISTER: hami_register("n", 3, sick=0), "hami.io/device-cordon": "GPU-n-2"}
    node = make_node("n", gpu=30, annotations=annotations)
    pods = [make_pod(f"p-{index}", resources={"nvidia.com/gpu": 1, "nvidia.com/gpumem": 9000}) for index in range(2)]

    scheduler = make_scheduler(nodes=[node], pods=pods)

    assert [dict(found.annotations)["hami.io/vgpu-devices-allocated"] for found in decided(scheduler)] == [
        "GPU-n-1,NVIDIA,9000,0:;"
    ]


def test_the_older_form_of_the_register_is_read_too() -> None:
    node = make_node(
        "n", annotations={REGISTER: "GPU-a,10,32768,100,NVIDIA-V100,0,true:GPU-b,10,32768,100,NVIDIA-V100,0,false:"}
    )

    assert [(card.uuid, card.memory, card.slots, card.is_healthy) for card in cards_of(node).cards] == [
        ("GPU-a", 32768, 10, True),
        ("GPU-b", 32768, 10, False),
    ]


def test_whole_gpus_and_fractions_never_meet_on_a_card_that_is_handed_out_by_count() -> None:
    pods = [make_pod("f", annotations={"gpu-fraction": "0.1"}), *(make_pod(f"w-{index}", gpu=1) for index in range(3))]

    scheduler = make_scheduler(nodes=[make_node("n", gpu=3)], pods=pods)

    assert [found.pod for found in decided(scheduler)] == ["default/f", "default/w-0", "default/w-1"]
    assert scheduler.cluster.nodes.requested("nvidia.com/gpu")[0] == 3
