"""Who is spared by a preemption keeps the very devices that it has, in every dialect: trials move nobody to others."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]

PRIORITIES = [
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
    for name, value in (("middle", 10), ("high", 100))
]
GANG = {"mooring.dev/gang-name": "g", "mooring.dev/gang-minimum": "1"}


def node(labels: Any = None, annotations: Any = None, **amounts: str) -> dict[str, Any]:
    metadata = {"name": "n0", "labels": labels or {}, "annotations": annotations or {}}
    allocatable = {"cpu": "32", "memory": "64Gi", "pods": "20", **amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


def pod(name: str, asked: dict[str, Any], priority: str = "", gang: bool = False) -> dict[str, Any]:
    annotations = {**asked.get("annotations", {}), **(GANG if gang else {})}
    container = {"name": "m", "image": "i", "resources": asked.get("resources", {})}
    spec: dict[str, Any] = {"containers": [container]}
    if priority:
        spec["priorityClassName"] = priority
    if "claim" in asked:
        spec["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": asked["claim"]}]
        container["resources"] = {"claims": [{"name": "g"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def slice_of(*devices: dict[str, Any]) -> dict[str, Any]:
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n0", "pool": pool, "devices": list(devices)}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "n0"}, "spec": spec}


def device_class(name: str, expression: str) -> dict[str, Any]:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def template(name: str, request: dict[str, Any]) -> dict[str, Any]:
    spec = {"spec": {"devices": {"requests": [{"name": "r", **request}]}}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": spec,
    }


def koordinator_devices() -> dict[str, Any]:
    names = ("gpu-core", "gpu-memory-ratio", "gpu-memory")
    amounts = {f"koordinator.sh/{name}": amount for name, amount in zip(names, ("100", "100", "16Gi"), strict=True)}
    cards = [{"type": "gpu", "id": f"G{i}", "minor": i, "health": True, "resources": amounts} for i in range(2)]
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Device",
        "metadata": {"name": "n0"},
        "spec": {"devices": cards},
    }


def hami_node() -> dict[str, Any]:
    cards = [
        {
            "id": f"GPU-{i}",
            "index": i,
            "count": 10,
            "devmem": 16384,
            "devcore": 100,
            "type": "NVIDIA-T4",
            "health": True,
        }
        for i in range(2)
    ]
    return node(annotations={"hami.io/node-nvidia-register": json.dumps(cards)}, **{"nvidia.com/gpu": "20"})


MACHINE = {
    "mooring.dev/machine": json.dumps(
        {
            "regular": {"sockets": 2, "numaPerSocket": 1, "coresPerNuma": 4, "threadsPerCore": 1}
            | {"memoryPerNuma": "32Gi"}
        }
    ),
    "mooring.dev/kubelet": json.dumps(
        {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "pod", "cpuManagerPolicy": "static"}
    ),
}
MIG = {
    "nos.nebuly.com/gpu-partitioning": "mig",
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
    "nvidia.com/gpu.memory": "81920",
}
SHARED = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "16Gi"}}}


def amounts_of(memory: str) -> dict[str, Any]:
    return {"exactly": {"deviceClassName": "any", "capacity": {"requests": {"memory": memory}}}}


DIALECTS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]] = {
    "KAI": (
        [node({"nvidia.com/gpu.memory": "16000"}, **{"nvidia.com/gpu": "2"})],
        {"annotations": {"gpu-fraction": "0.5"}},
        {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
    ),
    "MIG": (
        [node(MIG, **{"nvidia.com/gpu": "2"})],
        {"resources": {"limits": {"nvidia.com/mig-3g.40gb": "1"}}},
        {"resources": {"limits": {"nvidia.com/mig-7g.80gb": "1"}}},
    ),
    "Koordinator": (
        [
            node(**{"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"}),
            koordinator_devices(),
        ],
        {"resources": {"limits": {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}}},
        {"resources": {"limits": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}}},
    ),
    "HAMi": (
        [hami_node()],
        {"resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8192", "nvidia.com/gpucores": "50"}}}
        | {"annotations": {"hami.io/gpu-scheduler-policy": "binpack"}},
        {"resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16384", "nvidia.com/gpucores": "100"}}},
    ),
    "NUMA": (
        [node(annotations=MACHINE, cpu="8")],
        {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}},
        {"resources": {"limits": {"cpu": "4", "memory": "1Gi"}}},
    ),
    "consumable capacity": (
        [
            node(),
            slice_of({"name": "g0", **SHARED}, {"name": "g1", **SHARED}),
            device_class("any", "true"),
            template("half", amounts_of("8Gi")),
            template("whole", amounts_of("16Gi")),
        ],
        {"claim": "half"},
        {"claim": "whole"},
    ),
}


@pytest.fixture
def story(mooring: Call, write: Call) -> Call:
    """Run steps one after the other; the result of the last."""

    def run(*steps: list[dict[str, Any]]) -> dict[str, Any]:
        files = [write("\n---\n".join(map(json.dumps, step)), f"{n}.yaml") for n, step in enumerate(steps)]
        then = [argument for file in files[1:] for argument in ("--then", file)]
        found = mooring("schedule", "-q", "-o", "json", "-f", files[0], *then)
        assert found.code == 0, found.err
        result: dict[str, Any] = json.loads(found.out)["steps"][-1]["result"]
        return result

    return run


def evicted(result: dict[str, Any]) -> list[str]:
    return [each["pod"] for each in result["evicted"]]


def placed(result: dict[str, Any]) -> set[str]:
    return {each["pod"] for each in result["placements"]}


@pytest.mark.parametrize("gang", [False, True], ids=["pod", "gang"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_two_half_used_cards_are_one_whole_card_for_an_urgent_pod(story: Call, dialect: str, gang: bool) -> None:
    objects, half, whole = DIALECTS[dialect]
    ended = pod("x", half) | {"status": {"phase": "Succeeded"}}

    result = story(
        [*objects, *PRIORITIES, *(pod(name, half) for name in ("a", "x", "b"))],
        [ended],
        [pod("whole", whole, "high", gang)],
    )

    assert len(evicted(result)) == 1
    assert set(evicted(result)) < {"a", "b"}
    assert placed(result) == {"whole", *evicted(result)}  # what has to go fits beside the other one
    assert result["waiting"] == []


DEVICES = [
    node(),
    slice_of(
        {"name": "whole", "attributes": {"kind": {"string": "whole"}}},
        {"name": "part", "attributes": {"kind": {"string": "part"}}},
    ),
    *(device_class(n, f'device.attributes["gpu.example.com"].kind == "{n}"') for n in ("whole", "part")),
    *(template(name, {"exactly": {"deviceClassName": name}}) for name in ("whole", "part")),
    template(
        "either", {"firstAvailable": [{"name": n, "deviceClassName": c} for n, c in (("a", "part"), ("b", "whole"))]}
    ),
    *PRIORITIES,
]


def test_the_pod_that_has_the_device_goes_and_not_one_that_would_take_it_as_well(story: Call) -> None:
    result = story(
        [*DEVICES, pod("first", {"claim": "either"})],
        [pod("second", {"claim": "either"}, "middle")],
        [pod("whole", {"claim": "whole"}, "high")],
    )

    assert evicted(result) == ["second", "first"]  # which is more important, and takes the part in its turn
    assert placed(result) == {"whole", "second"}


def test_a_spared_pod_does_not_get_the_device_that_is_wanted(story: Call) -> None:
    result = story(
        [*DEVICES, pod("part", {"claim": "part"})],
        [pod("either", {"claim": "either"}, "middle")],
        [pod("whole", {"claim": "whole"}, "high")],
    )

    assert evicted(result) == ["either", "part"]
    assert placed(result) == {"whole", "either"}


@pytest.mark.parametrize("gang", [False, True], ids=["pod", "gang"])
def test_a_gang_that_needs_a_gpu_evicts_who_has_an_instance_of_it(story: Call, gang: bool) -> None:
    whole = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    low = {"resources": {"limits": {"nvidia.com/mig-3g.40gb": "1"}}}
    train = {"resources": {"limits": {"nvidia.com/mig-7g.80gb": "1"}}}

    result = story(
        [node(MIG, **{"nvidia.com/gpu": "2"}), *PRIORITIES, pod("whole", whole, "high"), pod("low", low)],
        [pod("train", train, "high", gang)],
    )

    assert (evicted(result), placed(result)) == (["low"], {"train"})


def test_a_gang_whose_members_share_a_card_does_not_share_one_that_is_handed_out_whole(story: Call) -> None:
    """With both members on the card, each fits beside the other: that the card is taken must not go unseen."""
    fraction = {"annotations": {"gpu-fraction": "0.3"}}
    whole = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    members = [pod(f"g-{i}", fraction, "middle", gang=True) for i in range(2)]
    for member in members:
        member["metadata"]["annotations"]["mooring.dev/gang-minimum"] = "2"
        member["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "8"}}
    full = {"annotations": {"gpu-fraction": "0.9"}}
    busy = {"resources": {"requests": {"cpu": "20"}}}

    result = story(
        [node({"nvidia.com/gpu.memory": "16000"}, **{"nvidia.com/gpu": "2"}), *PRIORITIES, pod("full", full, "high")],
        [pod("whole", whole), pod("busy", busy)],
        members,
    )

    assert set(evicted(result)) == {"whole", "busy"}
    assert placed(result) == {"g-0", "g-1"}
    assert result["pools"][0]["resources"]["nvidia.com/gpu"]["requested"] == 2
