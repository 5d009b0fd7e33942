"""Measure a plan of rebalancing: from the state of a cluster to the pods that are to move, and where to."""

import time

from mooring.actions.rebalance.action import RebalanceSection
from mooring.actions.rebalance.planned.steps import RebalancePlan
from mooring.engine.action import Cycle
from mooring.engine.cycle import Scheduler
from mooring.errors import ConfigError, InvariantBroken
from mooring.testing.tally import Measurement, peak_rss_mib
from mooring.testing.workloads import Workload

PLANS = 3
NOW = 1_800_000_000.0


def measure_rebalance(workload: Workload, scheduler: Scheduler, nodes: int) -> Measurement:
    """Time plans of the same cluster; the first is the one that has no answers kept from before."""
    cluster = scheduler.cluster
    sections = scheduler.sections(RebalanceSection, NOW)
    if not sections:
        raise ConfigError(workload.name, "config", expected="a DeschedulerPolicy", found="none")
    before = cluster.nodes.fingerprint()
    each: list[float] = []
    cpu: list[float] = []
    plans: list[RebalancePlan] = []
    for _ in range(PLANS):
        started, began = time.perf_counter(), time.process_time()
        plans.append(sections[0].plan(Cycle(cluster, scheduler.queue, NOW), ()))
        each.append(time.perf_counter() - started)
        cpu.append(time.process_time() - began)
    if cluster.nodes.fingerprint() != before or any(plan != plans[0] for plan in plans):
        raise InvariantBroken(f"workload {workload.name}: a plan that was not carried out has changed something")
    pods = len(cluster.pods.records)
    return Measurement(
        workload=workload.name,
        nodes=nodes,
        pods=pods,
        pods_per_second=pods * PLANS / sum(each),
        p50_us=sorted(each)[PLANS // 2] * 1e6,
        p99_us=max(each) * 1e6,
        peak_rss_mib=peak_rss_mib(),
        placed=0,
        waiting=0,
        plans_per_second=PLANS / sum(each),
        plan_seconds=each[0],
        plan_cpu_seconds=cpu[0],
        moves=len(plans[0].steps),
        stays=len(plans[0].stays),
    )
