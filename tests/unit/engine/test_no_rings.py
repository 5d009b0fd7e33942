"""What is done with is gone at once: objects in a ring stay until somebody looks for rings, with columns of all nodes.

A driver looks for them seldom, by the number of objects. These are few, and each is large.
"""

import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind
from mooring.model.events import PodLost, PodSeen
from mooring.testing.builders import make_node, make_pod, make_scheduler, make_spread

ZONES = "topology.kubernetes.io/zone"
SPREAD = [make_spread(key, labels={"app": "web"}, soft=True) for key in (ZONES, "kubernetes.io/hostname")]


@pytest.fixture
def rings() -> Iterator[list[object]]:
    """Holds what the collector finds, and keeps it from looking before it is asked."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def some_pods(number: int) -> list[Pod]:
    """Of two kinds in turn; nodes are ranked for each, in another way."""
    if number % 2:
        return [make_pod(f"a-{number}-{index}", cpu="100m") for index in range(20)]
    return [make_pod(f"b-{number}-{index}", cpu="10m", labels={"app": "web"}, spread=SPREAD) for index in range(20)]


def test_nothing_is_left_of_decisions_for_the_collector(rings: list[object]) -> None:
    nodes = [
        make_node(f"n{index}", cpu=8, labels={ZONES: f"z{index % 3}", "kubernetes.io/hostname": f"n{index}"})
        for index in range(12)
    ]
    scheduler = make_scheduler(nodes=nodes)
    for number in range(6):
        pods = some_pods(number)
        scheduler.handle(*map(PodSeen, pods))
        decisions = scheduler.cycle(float(number))
        assert sum(isinstance(decision, Bind) for decision in decisions) == len(pods)
        scheduler.handle(*(PodLost(pod.key) for pod in pods))
    del pods, decisions
    gc.collect()
    ours = Counter(type(each).__name__ for each in rings if type(each).__module__.startswith("mooring."))
    assert ours == {}
