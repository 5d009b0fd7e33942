"""Cards and everything else: preemption frees them, gangs get them whole, quotas count them, sick ones get nobody."""

from typing import Any

from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict, Partition
from mooring.model.events import NodeLost, NodeSeen, ObjectSeen, PodLost, PodSeen
from mooring.model.loading.manifests import build_manifests
from mooring.testing.builders import make_node, make_pod, make_scheduler
from mooring.testing.card_worlds import hami_register

REGISTER = "hami.io/node-nvidia-register"


def hami(name: str, cards: int, **given: Any) -> Any:
    return make_node(name, gpu=10 * cards, annotations={REGISTER: hami_register(name, cards, **given)})


def vgpu(name: str, memory: int, cores: int = 0, **given: Any) -> Pod:
    amounts = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": memory} | ({"nvidia.com/gpucores": cores} if cores else {})
    return make_pod(name, resources=amounts, **given)


def bound(decisions: list[Decision]) -> list[str]:
    return [found.pod for found in decisions if isinstance(found, Bind)]


def evicted(decisions: list[Decision]) -> list[str]:
    return [found.pod for found in decisions if isinstance(found, Evict)]


def cards_of(scheduler: Scheduler, pod: str) -> list[int]:
    return [share.card for share in scheduler.cluster.card_holders.shares_of(pod)]  # type: ignore[arg-type]


def test_a_more_urgent_pod_gets_the_very_card_that_its_victim_leaves() -> None:
    pods = [vgpu("small", 9000, priority=0), vgpu("other", 9000, priority=5)]
    scheduler = make_scheduler(nodes=[hami("n", 2)], pods=pods)
    assert bound(scheduler.cycle(1.0)) == ["default/other", "default/small"]
    left = cards_of(scheduler, "default/small")

    scheduler.handle(PodSeen(vgpu("urgent", 12000, priority=10)))
    assert evicted(scheduler.cycle(2.0)) == ["default/small"]
    scheduler.handle(PodLost("default/small"))

    assert bound(scheduler.cycle(3.0)) == ["default/urgent"]
    assert cards_of(scheduler, "default/urgent") == left


def test_a_mig_instance_is_given_up_for_a_more_urgent_one() -> None:
    labels = {"nos.nebuly.com/gpu-partitioning": "mig", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    small = [make_pod(f"s-{at}", resources={"nvidia.com/mig-3g.40gb": 1}, priority=at) for at in range(2)]
    scheduler = make_scheduler(nodes=[make_node("n", gpu=1, labels=labels)], pods=small)
    assert len(bound(scheduler.cycle(1.0))) == 2

    scheduler.handle(PodSeen(make_pod("urgent", resources={"nvidia.com/mig-4g.40gb": 1}, priority=10)))
    victims = evicted(scheduler.cycle(2.0))
    scheduler.handle(*map(PodLost, victims))

    assert len(victims) == 1  # the one that is where 4g.40gb can begin
    assert bound(scheduler.cycle(3.0)) == ["default/urgent"]


def test_a_card_that_falls_sick_gets_nobody_any_more() -> None:
    scheduler = make_scheduler(nodes=[hami("n", 2)])
    scheduler.cycle(1.0)

    scheduler.handle(NodeSeen(hami("n", 2, sick=1)), *(PodSeen(vgpu(f"p-{at}", 9000)) for at in range(2)))

    assert bound(scheduler.cycle(2.0)) == ["default/p-0"]
    assert cards_of(scheduler, "default/p-0") == [0]


def test_pods_keep_their_cards_when_their_node_is_described_anew() -> None:
    scheduler = make_scheduler(nodes=[hami("n", 2)], pods=[vgpu("a", 9000), vgpu("b", 3000)])
    scheduler.cycle(1.0)
    before = [cards_of(scheduler, name) for name in ("default/a", "default/b")]

    scheduler.handle(NodeSeen(hami("n", 2, memory=20_000)))
    scheduler.cycle(2.0)

    assert [cards_of(scheduler, name) for name in ("default/a", "default/b")] == before


def objects(*documents: dict[str, Any]) -> Any:
    return build_manifests(list(documents), source="test")


def gang(name: str, count: int, annotations: dict[str, str]) -> list[dict[str, Any]]:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": count},
    }
    container = {"name": "main", "image": "registry.example.com/a:1"}
    labels = {"scheduling.x-k8s.io/pod-group": name}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{at}", "labels": labels, "annotations": annotations},
            "spec": {"containers": [container]},
        }
        for at in range(count)
    ]
    return [group, *pods]


def node_document(name: str, gpus: int, labels: dict[str, str] | None = None) -> dict[str, Any]:
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"allocatable": allocatable},
    }


def loaded(*documents: dict[str, Any]) -> Scheduler:
    scheduler = make_scheduler()
    scheduler.load(objects(*documents))
    return scheduler


def test_a_gang_of_fractions_starts_whole_or_waits_without_holding_a_card() -> None:
    scheduler = loaded(node_document("n", 2), *gang("five", 5, {"gpu-fraction": "0.5"}))
    assert bound(scheduler.cycle(1.0)) == []
    assert scheduler.cluster.nodes.requested("nvidia.com/gpu")[0] == 0

    scheduler = loaded(node_document("n", 2), *gang("four", 4, {"gpu-fraction": "0.5"}))
    assert len(bound(scheduler.cycle(1.0))) == 4
    assert scheduler.cluster.nodes.requested("nvidia.com/gpu")[0] == 2


def test_a_device_object_of_koordinator_tells_a_nodes_cards() -> None:
    device = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Device",
        "metadata": {"name": "n"},
        "spec": {
            "devices": [
                {
                    "type": "gpu",
                    "id": f"GPU-{m}",
                    "minor": m,
                    "health": m == 1,
                    "resources": {"koordinator.sh/gpu-memory": "16Gi"},
                }
                for m in range(2)
            ]
        },
    }
    found = objects(device)
    scheduler = make_scheduler(nodes=[make_node("n", gpu=2)])
    scheduler.handle(*(ObjectSeen(each) for kind in found.others.values() for each in kind))
    half = {"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50}
    scheduler.handle(*(PodSeen(make_pod(f"p-{at}", resources=half)) for at in range(3)))

    made = [found for found in scheduler.cycle(1.0) if isinstance(found, Bind)]

    assert [found.pod for found in made] == ["default/p-0", "default/p-1"]
    assert dict(made[0].annotations) == {
        "scheduling.koordinator.sh/device-allocated": '{"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":"50",'
        '"koordinator.sh/gpu-memory":"8192Mi","koordinator.sh/gpu-memory-ratio":"50"}}]}'
    }


def test_several_gpus_of_a_pod_are_linked_if_they_can_be() -> None:
    """Pairs with a bridge: whoever wants two gets a pair, though single GPUs are free before it."""
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB", "nvidia.com/gpu.memory": "40960"}
    running = make_pod("r", node="n", labels={"runai-gpu-group": "n-gpu-0"}, annotations={"gpu-fraction": "0.9"})
    pair = make_pod("pair", annotations={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"})

    scheduler = make_scheduler(nodes=[make_node("n", gpu=4, labels=labels)], pods=[running, pair])
    scheduler.cycle(1.0)

    assert cards_of(scheduler, "default/pair") == [2, 3]


def test_a_profile_without_gpu_sharing_knows_sums_and_no_cards() -> None:
    profile = {"plugins": {"multiPoint": {"disabled": [{"name": "GpuSharing"}]}}}
    scheduler = make_scheduler(nodes=[hami("n", 1)], pods=[vgpu("a", 16000), vgpu("b", 16000)], profile=profile)

    assert bound(scheduler.cycle(1.0)) == ["default/a"]  # the sum of memory says no to the second


def test_members_that_differ_find_the_node_whose_cards_are_cut_right() -> None:
    """Two nodes with as much free in sum: on one of them it is in two halves, on the other in one piece."""
    running = [
        make_pod(
            f"r-{name}-{at}",
            node=name,
            labels={"runai-gpu-group": f"{name}-gpu-{at}"},
            annotations={"gpu-fraction": share},
        )
        for name, shares in (("halves", ("0.5", "0.5")), ("piece", ("0.9", "0.1")))
        for at, share in enumerate(shares)
    ]
    scheduler = make_scheduler(nodes=[make_node("halves", gpu=2), make_node("piece", gpu=2)], pods=running)
    members = [*gang("pair", 2, {"gpu-fraction": "0.5"})]
    members[2]["metadata"]["annotations"] = {"gpu-fraction": "0.9"}
    found = objects(*members)
    scheduler.load(found)

    made = {each.pod: each.node for each in scheduler.cycle(1.0) if isinstance(each, Bind)}

    assert made == {"default/pair-0": "halves", "default/pair-1": "piece"}


def fraction(name: str, share: str, priority: int, group: str = "") -> Pod:
    labels = {"runai-gpu-group": group} if group else {}
    node = "n" if group else ""
    return make_pod(name, node=node, labels=labels, annotations={"gpu-fraction": share}, priority=priority)


def test_a_whole_gpu_is_free_once_everybody_who_shares_it_is_gone() -> None:
    """One GPU is shared by two pods, another one by an important pod: who wants a whole GPU evicts the two."""
    running = [
        fraction("important", "0.5", 20, "n-gpu-0"),
        fraction("left", "0.5", 0, "n-gpu-1"),
        fraction("right", "0.4", 0, "n-gpu-1"),
    ]
    scheduler = make_scheduler(nodes=[make_node("n", gpu=2)], pods=running)
    scheduler.handle(PodSeen(make_pod("whole", gpu=1, priority=10)))

    victims = evicted(scheduler.cycle(1.0))
    scheduler.handle(*map(PodLost, victims))

    assert sorted(victims) == ["default/left", "default/right"]
    assert bound(scheduler.cycle(2.0)) == ["default/whole"]


def test_nobody_is_evicted_from_a_gpu_that_somebody_more_important_shares() -> None:
    running = [fraction("important", "0.5", 20, "n-gpu-0"), fraction("left", "0.4", 0, "n-gpu-0")]
    scheduler = make_scheduler(nodes=[make_node("n", gpu=1)], pods=running)
    scheduler.handle(PodSeen(make_pod("whole", gpu=1, priority=10)))

    assert evicted(scheduler.cycle(1.0)) == []


def test_a_whole_gpu_rather_costs_one_pod_than_two() -> None:
    running = [
        fraction("left", "0.5", 0, "n-gpu-0"),
        fraction("right", "0.4", 0, "n-gpu-0"),
        make_pod("one", node="n", gpu=1, priority=0),
    ]
    scheduler = make_scheduler(nodes=[make_node("n", gpu=2)], pods=running)
    scheduler.handle(PodSeen(make_pod("whole", gpu=1, priority=10)))

    assert len(evicted(scheduler.cycle(1.0))) == 1


CUT_ON_DEMAND = {"nos.nebuly.com/gpu-partitioning": "mig", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}


def cuts(decisions: list[Decision]) -> list[dict[str, str]]:
    return [dict(found.annotations) for found in decisions if isinstance(found, Partition)]


def test_a_node_that_comes_back_before_it_was_cut_is_told_again() -> None:
    node = make_node("n", gpu=1, labels=CUT_ON_DEMAND)
    scheduler = make_scheduler(nodes=[node], pods=[make_pod("p", resources={"nvidia.com/mig-3g.40gb": 1})])
    told = cuts(scheduler.cycle(1.0))

    scheduler.handle(NodeLost("n"))
    assert cuts(scheduler.cycle(2.0)) == []
    scheduler.handle(NodeSeen(node))

    assert told == [{"nos.nebuly.com/spec-gpu-0-3g.40gb": "1"}]
    assert cuts(scheduler.cycle(3.0)) == told
    assert cuts(scheduler.cycle(4.0)) == []


def test_what_a_gpu_was_told_before_the_scheduler_began_is_taken_away() -> None:
    """Else its agent would try to cut what nobody wants beside what is wanted, and that does not fit."""
    annotations = {"nos.nebuly.com/spec-gpu-0-1g.10gb": "7", "nos.nebuly.com/spec-gpu-1-1g.10gb": "2"}
    node = make_node("n", gpu=2, labels=CUT_ON_DEMAND, annotations=annotations)
    scheduler = make_scheduler(nodes=[node], pods=[make_pod("p", resources={"nvidia.com/mig-7g.80gb": 1})])

    assert cuts(scheduler.cycle(1.0)) == [
        {"nos.nebuly.com/spec-gpu-0-7g.80gb": "1", "nos.nebuly.com/spec-gpu-0-1g.10gb": ""},
        {"nos.nebuly.com/spec-gpu-1-1g.10gb": ""},
    ]
