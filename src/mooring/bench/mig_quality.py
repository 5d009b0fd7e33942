"""How many MIG instances a cluster takes, packed as Mooring does it and by first fit, as DRA does today.

    python -m mooring.bench.mig_quality

Random requests come to 100 A100s, through the engine: without anybody leaving until the first is refused, and until
110 % of the GPUs' compute has been asked for; then with instances that end, at 110 % load for a while.
"""

import heapq
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np

from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind
from mooring.model.devices.mig import A100_80, PREFIX, Profile
from mooring.model.events import PodLost, PodSeen
from mooring.testing.builders import make_node, make_pod, make_profile, make_scheduler

NODES, CARDS = 25, 4
CAPACITY = 7 * NODES * CARDS
LOAD = 1.1
SEEDS = range(10)
LASTING = 1_000
"""Requests that come while others end."""
LABELS = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nos.nebuly.com/gpu-partitioning": "mig"}
WAYS: dict[str, tuple[str, ...]] = {"packing": (), "first fit": ("FirstFit",)}
"""The plugins that choose, besides those that filter."""


@dataclass(frozen=True)
class Found:
    """What one stream of requests came to."""

    until_refusal: int
    """Instances that were accepted before the first was refused."""
    until_load: int
    """Until so much had been asked for."""
    lasting: int
    """Of those that came while others ended."""


def run(way: str, seed: int, lasting: int = LASTING) -> Found:
    generator = np.random.default_rng(seed)
    return Found(*_filling_up(_Cluster(way), generator), _coming_and_going(_Cluster(way), generator, lasting))


def _filling_up(cluster: "_Cluster", generator: np.random.Generator) -> tuple[int, int]:
    asked, accepted, first = 0, 0, -1
    while asked < LOAD * CAPACITY:
        profile = _drawn(generator)
        asked += profile.compute
        if cluster.takes(profile):
            accepted += 1
        elif first < 0:
            first = accepted
    return (accepted if first < 0 else first), accepted


def _coming_and_going(cluster: "_Cluster", generator: np.random.Generator, requests: int) -> int:
    """Each stays for a while that is drawn; so many come in the meantime that they ask for LOAD of what there is."""
    wanted = mean(profile.compute for profile in A100_80.profiles)
    now, accepted, ends = 0.0, 0, list[tuple[float, str]]()
    for _ in range(requests):
        now += generator.exponential(wanted / (LOAD * CAPACITY))
        profile, lasts = _drawn(generator), generator.exponential(1.0)
        while ends and ends[0][0] <= now:
            cluster.end(heapq.heappop(ends)[1])
        if cluster.takes(profile):
            accepted += 1
            heapq.heappush(ends, (now + lasts, cluster.last))
    return accepted


def _drawn(generator: np.random.Generator) -> Profile:
    return A100_80.profiles[int(generator.integers(len(A100_80.profiles)))]


class _Cluster:
    """A hundred GPUs, and a scheduler that is asked for one instance after the other."""

    def __init__(self, way: str) -> None:
        nodes = [make_node(f"node-{index}", gpu=CARDS, pods=1000, labels=LABELS) for index in range(NODES)]
        self._scheduler: Scheduler = make_scheduler(nodes=nodes, profile=_profile(way))
        self._count = 0
        self.last = ""

    def takes(self, profile: Profile) -> bool:
        """Ask for one instance; one that finds no place goes away again."""
        self._count += 1
        pod = make_pod(f"pod-{self._count}", resources={PREFIX + profile.name: 1})
        self.last = pod.key
        self._scheduler.handle(PodSeen(pod))
        is_bound = any(isinstance(found, Bind) for found in self._scheduler.cycle(float(self._count)))
        if not is_bound:
            self.end(pod.key)
        return is_bound

    def end(self, key: str) -> None:
        self._scheduler.handle(PodLost(key))


def _profile(way: str) -> dict[str, Any]:
    chosen = WAYS[way]
    profile = make_profile("NodeResourcesFit", "GpuSharing", *chosen)
    without = ["NodeResourcesFit", *(["GpuSharing"] if chosen else [])]
    profile["plugins"]["score"] = {"disabled": [{"name": name} for name in without]}
    return profile


def lines(found: dict[str, list[Found]]) -> Iterator[str]:
    """A table for people: means over the seeds."""
    lasting = f"OF {LASTING:,} AT 110 % LOAD"
    yield f"{'WAY':<12}{'UNTIL THE FIRST REFUSAL':>25}{'UNTIL 110 % ASKED FOR':>24}{lasting:>26}"
    for way, runs in found.items():
        figures = (
            mean(run.until_refusal for run in runs),
            mean(run.until_load for run in runs),
            mean(run.lasting for run in runs),
        )
        yield f"{way:<12}{figures[0]:>25.1f}{figures[1]:>24.1f}{figures[2]:>26.1f}"
    yield ""
    yield f"accepted instances on {NODES * CARDS} A100s, means of {len(SEEDS)} seeds"


def main() -> int:
    found: dict[str, list[Found]] = {way: [] for way in WAYS}
    for seed in SEEDS:
        for way in WAYS:
            found[way].append(run(way, seed))
    print("\n".join(lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
