"""What is said of devices, cards and volumes in a profile changes what is decided: through the commands."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mooring.testing.builders import make_config

Call = Callable[..., Any]
Json = dict[str, Any]

DRIVER = "gpu.example.com"


def node(name: str, **amounts: Any) -> Json:
    allocatable = {"cpu": 64, "memory": "64Gi", "pods": 50, **amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def pod(name: str, template: str = "", annotations: Json | None = None, **spec: Any) -> Json:
    containers = [{"name": "c", "image": "x", "resources": spec.pop("resources", {})}]
    claims = {"resourceClaims": [{"name": "d", "resourceClaimTemplateName": template}]} if template else {}
    metadata = {"name": name, "annotations": annotations or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **claims, **spec},
    }


@pytest.fixture
def told(mooring: Call, write: Call) -> Call:
    def result(documents: list[Json], profile: Json) -> Json:
        file = write(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}), "cluster.json")
        config = write(json.dumps(make_config(profile)), "config.json")
        outcome = mooring("schedule", "-q", "-o", "json", "-f", file, "--config", config)
        assert (outcome.code, outcome.err) == (0, "")
        found: Json = json.loads(outcome.out)
        return found

    return result


def arguments(plugin: str, **args: Any) -> Json:
    return {"pluginConfig": [{"name": plugin, "args": args}]}


def placed(found: Json) -> dict[str, str]:
    return {each["pod"]: each["node"] for each in found["placements"]}


# Claims.


def cut(name: str, *parts: int) -> Json:
    consumes = [{"counterSet": "gpu-0", "counters": {f"slice-{n}": {"value": "1"} for n in parts}}]
    return {"name": name, "attributes": {"size": {"int": len(parts)}}, "consumesCounters": consumes}


def resource(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def template(name: str, *requests: Json, constraints: list[Json] | None = None) -> Json:
    devices = {"requests": list(requests), "constraints": constraints or []}
    return resource("ResourceClaimTemplate", name, {"spec": {"devices": devices}})


def request(name: str, count: int = 1, expression: str = "") -> Json:
    selectors = {"selectors": [{"cel": {"expression": expression}}]} if expression else {}
    return {"name": name, "exactly": {"deviceClassName": "gpu", "count": count, **selectors}}


CLASS = resource("DeviceClass", "gpu", {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]})


@pytest.mark.parametrize(("strategy", "expected"), [("FirstFit", 2), ("Packed", 3)])
def test_cuts_of_a_gpu_are_the_first_that_fit_or_packed(told: Call, strategy: str, expected: int) -> None:
    """A driver that lists its small cuts from both ends: first fit takes one of each half, and leaves none whole."""
    cuts = [cut("q-0", 0), cut("q-2", 2), cut("q-1", 1), cut("q-3", 3), cut("half-0", 0, 1), cut("half-1", 2, 3)]
    pool = {"driver": DRIVER, "nodeName": "a", "pool": {"name": "a", "generation": 1, "resourceSliceCount": 2}}
    counters = {"name": "gpu-0", "counters": {f"slice-{n}": {"value": "1"} for n in range(4)}}
    sized = [
        template(name, request("cut", 1, f'device.attributes["{DRIVER}"].size == {size}'))
        for name, size in (("quarter", 1), ("half", 2))
    ]
    slices = [
        resource("ResourceSlice", "counters", {**pool, "sharedCounters": [counters]}),
        resource("ResourceSlice", "cuts", {**pool, "devices": cuts}),
    ]
    pods = [pod(f"p{number}", name) for number, name in enumerate(["quarter", "quarter", "half"])]

    found = told([node("a"), CLASS, *sized, *slices, *pods], arguments("DynamicResources", allocationStrategy=strategy))

    assert len(found["placements"]) == expected


@pytest.mark.parametrize(("timeout", "steps"), [("1s", 10_000), ("2s", 20_000)])
def test_the_search_for_devices_is_given_up_when_its_time_is_over(told: Call, timeout: str, steps: int) -> None:
    many = [{"name": f"gpu-{n}", "attributes": {"index": {"int": n}, "half": {"int": n % 2}}} for n in range(24)]
    constraints = [{"matchAttribute": f"{DRIVER}/half"}, {"distinctAttribute": f"{DRIVER}/index"}]
    mad = template("mad", *(request(f"r{n}", 3) for n in range(6)), constraints=constraints)
    pool = {"driver": DRIVER, "nodeName": "a", "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1}}
    documents = [node("a"), CLASS, mad, resource("ResourceSlice", "s", {**pool, "devices": many}), pod("p", "mad")]

    (waits,) = told(documents, arguments("DynamicResources", filterTimeout=timeout))["waiting"]

    assert f"gave up after {steps} steps" in waits["message"]


# Cards.


def cards(name: str, count: int = 1, cpu: int = 64, model: str = "V100") -> Json:
    found = node(name, cpu=cpu, **{"alibabacloud.com/gpu-count": count})
    found["metadata"]["labels"] = {"alibabacloud.com/gpu-card-model": model}
    return found


def share(name: str, milli: int, cpu: int = 1, on: str = "") -> Json:
    asked = {"alibabacloud.com/gpu-milli": str(milli), "alibabacloud.com/gpu-count": "1"}
    where = {"nodeName": on} if on else {}
    return pod(name, "", asked, resources={"requests": {"cpu": cpu}}, **where)


def only(plugin: str, **args: Any) -> Json:
    score = {"disabled": [{"name": "*"}], "enabled": [{"name": plugin}]}
    return {"plugins": {"score": score}, **arguments(plugin, **args)}


WHOLE = {"cpuMilli": 1000, "gpuMilli": 1000, "gpuCount": 1}
HALF = {"cpuMilli": 1000, "gpuMilli": 500, "gpuCount": 1}


@pytest.mark.parametrize(
    ("typical", "expected"),
    [
        ([WHOLE], "a"),
        ([HALF], "b"),
        ([WHOLE | {"weight": 2}, HALF], "a"),
        ([WHOLE, HALF | {"weight": 30}], "b"),
        ([WHOLE | {"weight": 2, "gpuModels": ["A100"]}, HALF], "b"),
    ],
    ids=["whole GPUs", "halves", "mostly whole ones", "mostly halves", "whole ones of another model"],
)
def test_cards_are_kept_of_use_to_the_pods_that_are_typical(told: Call, typical: list[Json], expected: str) -> None:
    """Half a card is left on a, a whole one on b, and 400 thousandths are asked for."""
    there = [cards("a"), cards("b"), share("old", 500, on="a")]

    found = told([*there, share("new", 400)], only("GpuFragmentation", typicalPods=typical))

    assert placed(found) == {"new": expected}


SMALL = HALF | {"gpuMilli": 350}


@pytest.mark.parametrize(
    ("typical", "expected"),
    [
        ([WHOLE], "a"),
        ([SMALL], "b"),
        ([WHOLE | {"weight": 1000}, SMALL], "a"),
        ([WHOLE, SMALL | {"weight": 30}], "b"),
        ([WHOLE | {"weight": 1000, "gpuModels": ["A100"]}, SMALL], "b"),
    ],
    ids=["whole GPUs", "small shares", "mostly whole ones", "mostly small ones", "whole ones of another model"],
)
def test_as_many_typical_pods_as_possible_fit_in_the_end(told: Call, typical: list[Json], expected: str) -> None:
    """400 thousandths are left on a, a whole card on b, and 300 are asked for: small shares lose one if a is cut."""
    there = [cards("a"), cards("b"), share("old", 600, on="a")]

    found = told([*there, share("new", 300)], only("GpuLookahead", typicalPods=typical))

    assert placed(found) == {"new": expected}


@pytest.mark.parametrize("plugin", ["BestFit", "WorstFit", "DotProduct"])
def test_cpus_count_against_gpus_as_the_largest_node_says(told: Call, plugin: str) -> None:
    """Node a has many CPUs and one card free, b few CPUs and four cards: the units decide which of them has more."""
    there = [cards("a", 1, cpu=64), cards("b", 4, cpu=8)]

    chosen = [
        placed(told([*there, share("new", 500, cpu=8)], only(plugin, cpuMilli=cpu, gpuMilli=gpu)))["new"]
        for cpu, gpu in ((64_000, 80_000), (640_000, 4_000))
    ]

    assert sorted(chosen) == ["a", "b"]


def test_what_is_free_counts_by_the_gpus_of_the_largest_node(told: Call) -> None:
    """Beside nodes of a thousand GPUs, four and one that are free are alike, and any of the two will do."""
    there = [cards("a", 4), cards("b", 1)]

    chosen = [
        placed(told([*there, share("new", 500)], only("GpuClustering", gpuMilli=gpu)))["new"]
        for gpu in (4_000, 1_000_000)
    ]

    assert chosen == ["b", "a"]


# Volumes.


@pytest.mark.parametrize(("scores", "expected"), [((0, 10), "full"), ((10, 0), "empty")])
def test_storage_is_scored_by_its_shape(told: Call, scores: tuple[int, int], expected: str) -> None:
    """A claim that waits for its first consumer; one node has a volume of its size, the other one of ten times that."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    nodes = [node("full"), node("empty")]
    for each in nodes:
        each["metadata"]["labels"] = {"kubernetes.io/hostname": each["metadata"]["name"]}
    volumes = [_volume("full", "10Gi"), _volume("empty", "100Gi")]
    user = pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    shape = [{"utilization": 0, "score": scores[0]}, {"utilization": 100, "score": scores[1]}]

    found = told([storage_class, claim, *nodes, *volumes, user], only("VolumeBinding", shape=shape))

    assert placed(found) == {"p": expected}


def _volume(on: str, size: str) -> Json:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"on-{on}"},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }


# NUMA zones.


def _zones(name: str, **available: str) -> Json:
    amounts = [
        {"name": resource, "capacity": "10", "allocatable": "10", "available": free}
        for resource, free in available.items()
    ]
    amounts.append({"name": "memory", "capacity": "64Gi", "allocatable": "64Gi", "available": "64Gi"})
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
        "zones": [{"name": "node-0", "type": "Node", "resources": amounts}],
    }


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({"type": "LeastAllocated"}, "b"),
        ({"type": "MostAllocated"}, "a"),
        ({"type": "LeastAllocated", "resources": [{"name": "example.com/x", "weight": 9}]}, "a"),
        ({"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 9}]}, "b"),
    ],
    ids=["least", "most", "by the device", "by CPUs"],
)
def test_numa_zones_are_scored_by_the_strategy(told: Call, strategy: Json, expected: str) -> None:
    """Node a has few CPUs and many devices free in its zone, b many CPUs and not quite as many devices."""
    nodes = [node(name, **{"example.com/x": 10}) for name in ("a", "b")]
    zones = [
        _zones("a", cpu="4", **{"example.com/x": "8"}),
        _zones("b", cpu="10", **{"example.com/x": "6"}),
    ]
    asked = {"cpu": 2, "memory": "1Gi", "example.com/x": 2}
    profile = only("NodeResourceTopologyMatch", scoringStrategy=strategy)
    profile["plugins"]["filter"] = {"enabled": [{"name": "NodeResourceTopologyMatch"}]}

    found = told([*nodes, *zones, pod("p", resources={"requests": asked, "limits": asked})], profile)

    assert placed(found) == {"p": expected}
