"""Steady work for a while: memory, watches and cycles stay as they were. `MOORING_SOAK_SECONDS` makes it longer."""

import itertools
import os
import re
import statistics
import time
from collections import deque

import pytest
from control_plane import free_port
from kube import Kube, node, pod
from test_failures import get

pytestmark = pytest.mark.live

SECONDS = float(os.environ.get("MOORING_SOAK_SECONDS", "60"))
A_SECOND, STAY = 50, 1500
"""Pods created a second, and how many are there at a time."""
LEEWAY_MIB = 8
"""By how much memory may vary in the second half, however long that is: what grows with the pods goes beyond it."""


def value(metrics: str, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", metrics, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def test_memory_watches_and_cycles_stay_flat_under_churn(kube: Kube) -> None:
    kube.create(*(node(f"n{i:03}") for i in range(200)))
    address = f"127.0.0.1:{free_port()}"
    scheduler = kube.run(f"--health-address={address}")
    scheduler.wait_until_it_says("scheduling for")
    there: deque[str] = deque()
    samples: list[tuple[float, float, float, float]] = []
    began = time.monotonic()
    number = second = 0
    while time.monotonic() - began < SECONDS:
        batch = [pod(f"p{number + i}", cpu=("100m", "200m", "500m")[i % 3]) for i in range(A_SECOND)]
        number += A_SECOND
        kube.create(*batch)
        there.extend(each["metadata"]["name"] for each in batch)
        old = [pod(there.popleft()) for _ in range(len(there) - STAY)] if len(there) > STAY else []
        kube.delete(*old)
        second += 1
        if second % 5 == 0:
            text = get(f"{address}/metrics")[1]
            cycles = value(text, "scheduler_scheduling_algorithm_duration_seconds_count")
            spent = value(text, "scheduler_scheduling_algorithm_duration_seconds_sum")
            samples.append((scheduler.resident_bytes(), value(text, "mooring_watches"), cycles, spent))
        time.sleep(max(0.0, began + second - time.monotonic()))
    kube.wait_until_bound(there)
    memory = [sample[0] / 2**20 for sample in samples]
    watches = [sample[1] for sample in samples]
    means = [
        1000 * (after[3] - before[3]) / max(1.0, after[2] - before[2]) for before, after in itertools.pairwise(samples)
    ]
    rate = number / (time.monotonic() - began)
    quarters = [part * (len(means) - 1) // 4 for part in range(5)]
    shown = ", ".join(f"{memory[at]:.0f}" for at in quarters)
    cycles_shown = ", ".join(f"{statistics.mean(means[a : b + 1]):.2f}" for a, b in itertools.pairwise(quarters))
    print(f"{rate:.0f} pods/s for {SECONDS:.0f} s; by quarters: memory {shown} MiB; ms a cycle {cycles_shown}")
    settled = memory[len(memory) // 2]
    assert memory[-1] < settled + LEEWAY_MIB
    assert watches[-1] <= watches[0] + SECONDS / 10
    half = len(means) // 2
    assert sum(means[half:]) / len(means[half:]) < 3 * sum(means[:half]) / half + 5
