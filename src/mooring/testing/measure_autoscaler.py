"""Measure one loop of the autoscaler: from the objects of a cluster to the sizes of its node groups."""

import time

from mooring.assembly import Assembly
from mooring.config.autoscaler_flags import parse_autoscaler_flags
from mooring.config.node_groups import parse_node_groups
from mooring.drivers.offline.autoscaler import AutoscalerPlan, plan_node_groups
from mooring.errors import InvariantBroken
from mooring.model.loading.manifests import Manifests
from mooring.testing.tally import Measurement, peak_rss_mib
from mooring.testing.workloads import Workload

LOOPS = 3


def measure_autoscaler(workload: Workload, assembly: Assembly, manifests: Manifests, nodes: int) -> Measurement:
    """Time loops that decide from nothing which groups grow or shrink."""
    groups = parse_node_groups([{"nodeGroups": workload.groups}], f"{workload.name}: groups")
    flags = parse_autoscaler_flags(workload.flags, f"{workload.name}: flags")
    each, cpu = [], []
    found: AutoscalerPlan | None = None
    for _ in range(LOOPS):
        started, began = time.perf_counter(), time.process_time()
        found = plan_node_groups(assembly, manifests, groups, flags, now=0.0)
        each.append(time.perf_counter() - started)
        cpu.append(time.process_time() - began)
    assert found is not None
    if (workload.decision == "scale-up") == (found.scale_down is not None):
        raise InvariantBroken(f"workload {workload.name}: {found.scale_up.result} where a {workload.decision} was due")
    each.sort()
    pods = len(manifests.pods)
    waiting = sum(len(why.pods) for why in found.scale_up.remain) + len(found.scale_up.awaiting)
    return Measurement(
        workload=workload.name,
        nodes=nodes,
        pods=pods,
        pods_per_second=pods * LOOPS / sum(each),
        p50_us=each[LOOPS // 2] * 1e6,
        p99_us=each[-1] * 1e6,
        peak_rss_mib=peak_rss_mib(),
        placed=len(found.scale_up.triggered) + len(found.scale_up.fits),
        waiting=waiting,
        loops_per_second=LOOPS / sum(each),
        loop_cpu_seconds=min(cpu),
        nodes_added=sum(growth.nodes for growth in found.scale_up.growths),
        nodes_unneeded=0 if found.scale_down is None else len(found.scale_down.unneeded),
    )
