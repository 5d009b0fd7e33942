"""Measure what right-sizing costs: a minute's samples of every container into its histograms, and what they need."""

import time

import numpy as np

from mooring.state.usage.containers import ContainerUsage
from mooring.state.usage.estimates import EstimateSettings, estimate
from mooring.testing.tally import Measurement, peak_rss_mib
from mooring.testing.workloads import Workload

MINUTES = 20
MINUTE, DAY = 60.0, 86400.0
BEGINS = 1_772_409_600.0
"""A midnight. Samples are of minutes around the next one, so that the peak of a day is closed while it is measured."""


def measure_usage(workload: Workload, nodes: int, count: int) -> Measurement:
    """Time passes over all containers, each with histograms of its own: samples in, then an estimate for all."""
    generator = np.random.default_rng(0)
    usage = ContainerUsage()
    for _ in range(count):
        usage.add_container(usage.add_aggregate())
    rows = np.arange(count, dtype=np.intp)
    cores = generator.lognormal(-1.0, 1.0, count)
    memory = generator.lognormal(20.5, 1.0, count)
    one_each = np.ones(count, np.int64)
    passes, updates, estimates = [], 0.0, 0.0
    for minute in range(MINUTES):
        times = np.full(count, BEGINS + DAY + (minute - MINUTES / 2) * MINUTE)
        noise = generator.lognormal(0.0, 0.3, count)
        started, clock = time.process_time(), time.perf_counter()
        usage.see_cpu(rows, times, cores * noise)
        usage.see_memory(rows, times, (memory * noise).astype(np.int64))
        updated = time.process_time()
        found = estimate(usage, rows, one_each, EstimateSettings())
        ended = time.process_time()
        updates, estimates = updates + updated - started, estimates + ended - updated
        passes.append(time.perf_counter() - clock)
    assert int((found.target["cpu"] > 0).sum()) == count, "a container has no estimate"
    passes.sort()
    return Measurement(
        workload=workload.name,
        nodes=nodes,
        pods=count,
        pods_per_second=count * MINUTES / sum(passes),
        p50_us=passes[MINUTES // 2] * 1e6,
        p99_us=passes[-1] * 1e6,
        peak_rss_mib=peak_rss_mib(),
        placed=0,
        waiting=0,
        passes_per_second=MINUTES / sum(passes),
        update_cpu_seconds=updates / MINUTES,
        estimate_cpu_seconds=estimates / MINUTES,
    )
