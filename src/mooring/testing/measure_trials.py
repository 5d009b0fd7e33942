"""Measure what a trial costs: rows opened that no node has, and closed, or running pods resized; all of it undone."""

import time

from mooring.model.api.pods import ResourceRequirements
from mooring.model.keys import PodKey
from mooring.model.node_offer import NodeOffer
from mooring.model.pod_patch import PodPatch
from mooring.state.cluster import Cluster
from mooring.testing.tally import Measurement, peak_rss_mib
from mooring.testing.workloads import Workload

TRIALS = 20


def measure_trials(workload: Workload, cluster: Cluster, nodes: int, count: int) -> Measurement:
    """Time trials that open and close so many rows, or change so many running pods, from beginning to end."""
    before = cluster.nodes.fingerprint()
    offer, changes = NodeOffer(cluster.nodes.node(0)), _resizes(cluster, count)
    each = []
    for _ in range(TRIALS):
        started = time.perf_counter()
        with cluster.what_if():
            if workload.decision == "offer":
                cluster.close_rows(cluster.open_rows(offer, count).tolist())
            else:
                for key, patch in changes:
                    cluster.amend(key, patch)
        each.append(time.perf_counter() - started)
    assert cluster.nodes.fingerprint() == before, "a trial left something behind"
    each.sort()
    return Measurement(
        workload=workload.name,
        nodes=nodes,
        pods=count,
        pods_per_second=count * TRIALS / sum(each),
        p50_us=each[TRIALS // 2] * 1e6,
        p99_us=each[-1] * 1e6,
        peak_rss_mib=peak_rss_mib(),
        placed=0,
        waiting=0,
        trials_per_second=TRIALS / sum(each),
    )


def _resizes(cluster: Cluster, count: int) -> list[tuple[PodKey, PodPatch]]:
    """Running pods, each with a request for CPU of one of a few sizes."""
    running = [record for record in cluster.pods.records.values() if record.node_name][:count]
    patches = [
        PodPatch.of(resources={"work": ResourceRequirements(requests={"cpu": f"{100 * number}m"})})
        for number in range(1, 9)
    ]
    return [(record.key, patches[number % len(patches)]) for number, record in enumerate(running)]
