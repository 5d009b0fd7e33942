"""Bad days while urgent pods push others out: everybody urgent gets a place, whatever becomes of the evictions."""

import random
import signal
import time

import pytest
from faulty_proxy import Faults, behind_proxy
from judge import Judge
from kube import Kube, Object, node, pod
from test_chaos import gang, members

pytestmark = pytest.mark.live

NODES, CPU = 12, 8
CLASSES = {"low": 10, "middle": 100, "high": 1000}


def fill(kube: Kube) -> dict[str, int]:
    """Nodes that are full to the last core of pods and gangs that nobody would miss; the sizes of the gangs."""
    for name, value in CLASSES.items():
        found = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        kube.create({**found, "value": value})
    kube.create(*(node(f"n{i:02}", cpu=CPU) for i in range(NODES)))
    sizes = {f"idle-{i}": 4 for i in range(4)}
    kube.create(*of_class("low", [gang(name, size) for name, size in sizes.items()]))
    gangs = [each for name, size in sizes.items() for each in members(name, size)]
    singles = [pod(f"batch-{i}", cpu="1") for i in range(NODES * CPU - 2 * len(gangs))]
    for pods in (gangs, singles):  # in this order, or single cores would be left over
        kube.create(*of_class("low", pods))
        kube.wait_until_bound(found["metadata"]["name"] for found in pods)
    return sizes


def of_class(name: str, objects: list[Object]) -> list[Object]:
    """Pods or gangs of that PriorityClass."""
    for found in objects:
        found["spec"]["priorityClassName"] = name
    return objects


def urgent_wave(kube: Kube, wave: int) -> dict[str, int]:
    """Urgent pods, some more so than others, and an urgent gang; three waves of them fit."""
    sizes = {f"train-{wave}": 4}
    kube.create(*of_class("high", [gang(f"train-{wave}", 4)]))
    kube.create(
        *of_class("high", members(f"train-{wave}", 4)),
        *of_class("high", [pod(f"high-{wave}-{i}", cpu="2") for i in range(4)]),
        *of_class("middle", [pod(f"middle-{wave}-{i}", cpu="1") for i in range(8)]),
    )
    return sizes


def urgent_without_a_place(kube: Kube, waves: int) -> list[str]:
    """Those that were evicted although nobody is more urgent, or wait still."""
    found = kube.pods()
    wanted = [f"train-{wave}-{i}" for wave in range(waves) for i in range(4)]
    wanted += [f"high-{wave}-{i}" for wave in range(waves) for i in range(4)]
    wanted += [f"middle-{wave}-{i}" for wave in range(waves) for i in range(8)]
    return [name for name in wanted if not found.get(name, {"spec": {}})["spec"].get("nodeName")]


@pytest.mark.parametrize(
    "faults",
    [
        Faults(conflict=0.1, error=0.1, lost_answer=0.15),
        Faults(too_many=0.1, slow=0.15, dropped_watch=0.1),
    ],
    ids=["refusals", "slowness"],
)
def test_whoever_is_urgent_gets_a_place_though_evictions_fail(kube: Kube, faults: Faults) -> None:
    with behind_proxy(kube) as proxy:
        scheduler = kube.run()
        sizes = fill(kube)
        with Judge(kube, sizes, proxy) as judge:
            proxy.faults = faults
            for wave in range(3):
                sizes |= urgent_wave(kube, wave)
                time.sleep(2)
            assert sum(faults.counted.values()) > 10, faults.counted
            proxy.faults = Faults()
            judge.wait_until_sound(lambda: urgent_without_a_place(kube, 3))
        assert scheduler.is_running


def test_a_scheduler_that_is_killed_while_it_evicts_leaves_nothing_half_done(kube: Kube) -> None:
    first = kube.run(name="first")
    sizes = fill(kube)
    first.kill()
    drawn = random.Random(13)
    with Judge(kube, sizes) as judge:
        for wave in range(3):
            scheduler = kube.run(name=f"scheduler-{wave}")
            scheduler.wait_until_it_says("scheduling for")
            sizes |= urgent_wave(kube, wave)
            time.sleep(drawn.uniform(0.0, 0.3))
            scheduler.send(signal.SIGKILL)
        kube.run(name="last")
        judge.wait_until_sound(lambda: urgent_without_a_place(kube, 3))
