"""Which node and which card each policy chooses, and how GPUs are cut."""

from typing import Any

import pytest

from mooring.bench.mig_quality import run
from mooring.engine.cycle import Scheduler
from mooring.errors import ConfigError
from mooring.model.decisions import Bind, Decision, Instance, Partition
from mooring.model.devices.mig import A30, A100_80, GEOMETRIES, geometry_of
from mooring.model.events import PodLost, PodSeen
from mooring.plugins.gpu_fragmentation import TypicalPod, typical_pods
from mooring.testing.builders import make_node, make_pod, make_profile, make_scheduler


def only(policy: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
    profile = make_profile("NodeResourcesFit", "GpuSharing", policy, args={policy: args} if args else None)
    profile["plugins"]["score"] = {"disabled": [{"name": "NodeResourcesFit"}, {"name": "GpuSharing"}]}
    return profile


def milli(name: str, share: int, count: int = 1, **given: Any) -> Any:
    annotations = {"alibabacloud.com/gpu-milli": str(share), "alibabacloud.com/gpu-count": str(count)}
    return make_pod(name, annotations=annotations, **given)


def choice(policy: str, pod: Any, args: dict[str, Any] | None = None) -> tuple[str, str]:
    """Where a pod goes: three nodes of two cards, one idle, one with half a card taken, one with a whole one."""
    nodes = [make_node(name, resources={"alibabacloud.com/gpu-count": 2}) for name in ("idle", "half", "one")]
    running = [milli("h", 500, node="half"), milli("o", 1000, node="one")]
    scheduler = make_scheduler(nodes=nodes, pods=[*running, pod], profile=only(policy, args))
    (bound,) = scheduler.cycle(1.0)
    assert isinstance(bound, Bind)
    return bound.node, dict(bound.annotations).get("alibabacloud.com/gpu-index", "")


@pytest.mark.parametrize(
    ("policy", "share", "expected"),
    [
        ("BestFit", 300, ("one", "1")),
        ("WorstFit", 300, ("idle", "0")),
        ("GpuPacking", 300, ("half", "0")),
        ("GpuPacking", 1000, ("half", "1")),
        ("GpuClustering", 300, ("half", "0")),
        ("GpuClustering", 1000, ("one", "1")),
        ("GpuFragmentation", 300, ("half", "0")),
        ("GpuLookahead", 300, ("half", "0")),
    ],
)
def test_each_policy_chooses_its_node_and_its_card(policy: str, share: int, expected: tuple[str, str]) -> None:
    assert choice(policy, milli("p", share)) == expected


def test_the_dot_product_is_small_where_little_is_left() -> None:
    assert choice("DotProduct", milli("p", 300), {"gpuMilli": 2000}) == ("one", "1")


def test_fragmentation_is_what_typical_pods_cannot_use() -> None:
    """Where halves are typical, a half goes where it fills a card; where they are not, it may as well open one."""
    halves = {"typicalPods": [{"gpuMilli": 500, "gpuCount": 1}, {"gpuMilli": 1000, "gpuCount": 1}]}

    assert choice("GpuFragmentation", milli("p", 500), halves) == ("half", "0")


def test_classes_that_make_up_nearly_all_pods_are_typical() -> None:
    pods = [TypicalPod(cpu_milli=1000)] * 60 + [TypicalPod(gpu_milli=500, gpu_count=1)] * 36
    pods += [TypicalPod(gpu_milli=1000, gpu_count=8)] * 4

    assert [(pod.cpu_milli, pod.gpu_milli, round(pod.weight, 6)) for pod in typical_pods(pods)] == [
        (1000, 0, 0.625),
        (0, 500, 0.375),
    ]


def test_a_share_of_more_than_a_gpu_is_no_typical_pod() -> None:
    with pytest.raises(ConfigError, match=r"gpuMilli: expected from 0 to 1000, thousandths of a GPU, found 1500"):
        make_scheduler(profile=only("GpuFragmentation", {"typicalPods": [{"gpuMilli": 1500}]}))


def test_random_choices_are_the_same_for_the_same_events_and_not_always_the_first() -> None:
    def nodes_of() -> list[str]:
        nodes = [make_node(f"n-{index}", resources={"alibabacloud.com/gpu-count": 1}) for index in range(6)]
        pods = [milli(f"p-{index}", 200) for index in range(8)]
        made = make_scheduler(nodes=nodes, pods=pods, profile=only("RandomFit")).cycle(1.0)
        return [found.node for found in made if isinstance(found, Bind)]

    assert nodes_of() == nodes_of()
    assert len(set(nodes_of())) > 2


# MIG.

PARTITIONED = {"nos.nebuly.com/gpu-partitioning": "mig", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}


def mig(name: str, profile: str, count: int = 1, **given: Any) -> Any:
    return make_pod(name, resources={f"nvidia.com/mig-{profile}": count}, **given)


def decided(scheduler: Scheduler) -> list[Decision]:
    return scheduler.cycle(1.0)


@pytest.mark.parametrize(
    ("model", "memory", "name"),
    [
        ("NVIDIA-A100-SXM4-40GB", 40960, "A100-40GB"),
        ("NVIDIA-A100-SXM4-80GB", 81920, "A100-80GB"),
        ("NVIDIA-A30", 24576, "A30"),
        ("NVIDIA-H100-80GB-HBM3", 81559, "H100-80GB"),
        ("NVIDIA-H100-NVL", 95830, "H100-94GB"),
        ("NVIDIA-H200", 143771, "H200-141GB"),
        ("NVIDIA-B200", 183359, "B200-180GB"),
        ("Tesla-T4", 15360, ""),
    ],
)
def test_geometries_are_known_by_model_and_memory(model: str, memory: int, name: str) -> None:
    found = geometry_of(model, memory)

    assert (found.name if found is not None else "") == name


def test_no_placement_of_any_profile_leaves_its_gpu() -> None:
    for geometry in GEOMETRIES:
        for profile in geometry.profiles:
            assert max(profile.starts) + profile.slices <= geometry.slices


def test_a_gpu_that_is_whole_is_cut_last_and_no_compute_is_lost_in_vain() -> None:
    beside_another = A100_80.best_start("3g.40gb", 0b11110000)
    alone = A100_80.best_start("3g.40gb", 0)

    assert beside_another is not None and alone is not None and beside_another < alone
    assert A100_80.best_start("2g.20gb", 0b00000001) == (7, 2)  # at 4 it would keep 3g.40gb from fitting
    assert A30.best_start("4g.24gb", 0b0001) is None


def test_a_gpu_is_told_how_to_be_cut_and_to_be_whole_again() -> None:
    scheduler = make_scheduler(
        nodes=[make_node("n", gpu=1, labels=PARTITIONED)], pods=[mig("a", "3g.40gb"), mig("b", "3g.40gb")]
    )

    both = Partition(
        "n", 0, (Instance("3g.40gb", 0), Instance("3g.40gb", 4)), (("nos.nebuly.com/spec-gpu-0-3g.40gb", "2"),)
    )
    assert [found for found in decided(scheduler) if isinstance(found, Partition)] == [both]
    scheduler.handle(PodLost("default/a"), PodLost("default/b"))
    assert scheduler.cycle(2.0) == [Partition("n", 0, (), (("nos.nebuly.com/spec-gpu-0-3g.40gb", ""),))]


def test_who_wants_a_whole_gpu_gets_none_that_is_cut_and_the_other_way_round() -> None:
    pods = [mig("a", "1g.10gb"), make_pod("w", gpu=1), mig("b", "7g.80gb")]
    scheduler = make_scheduler(nodes=[make_node("n", gpu=2, labels=PARTITIONED)], pods=pods)

    assert [found.pod for found in decided(scheduler) if isinstance(found, Bind)] == ["default/a", "default/w"]
    scheduler.handle(PodLost("default/w"), PodSeen(pods[2]))
    assert [found.pod for found in scheduler.cycle(2.0) if isinstance(found, Bind)] == ["default/b"]


def test_instances_of_another_model_are_found_nowhere_and_that_is_said() -> None:
    scheduler = make_scheduler(nodes=[make_node("n", gpu=1, labels=PARTITIONED)], pods=[mig("a", "1g.5gb")])

    (wait,) = decided(scheduler)

    assert "Insufficient nvidia.com/mig-1g.5gb" in getattr(wait, "message", "")


def test_packing_takes_more_instances_than_first_fit() -> None:
    packing, first_fit = (run(way, seed=2, lasting=60) for way in ("packing", "first fit"))

    assert packing.until_refusal > first_fit.until_refusal
    assert packing.until_load > first_fit.until_load
    assert packing.lasting == first_fit.lasting == 60  # there is room for so many
