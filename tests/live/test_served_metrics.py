"""What /metrics says of a cluster on which something happens."""

import re
from pathlib import Path

from control_plane import Program, free_port, until
from kube import Kube, node, pod
from test_failures import get
from test_live_queueing import install_kinds, job, queueing, suspended

__all__ = ["queueing"]
DOCUMENTED = re.search(
    r"\n## Metrics\n(.*?)\n## ", (Path(__file__).parents[2] / "docs" / "running-live.md").read_text(), re.DOTALL
)


def samples(address: str) -> dict[str, float]:
    """Every series by its name and labels."""
    lines = (line for line in get(f"{address}/metrics")[1].splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_queues_answers_and_steps_are_counted(queueing: Kube) -> None:
    address = f"127.0.0.1:{free_port()}"
    queueing.create(node("n0", cpu=16))
    scheduler = queueing.run(f"--health-address={address}")
    scheduler.wait_until_it_says("scheduling for")
    queueing.create(job("one", "3"))
    until(lambda: suspended(queueing) == {"one": False}, 30, scheduler.tail)
    queueing.create(job("two", "3"))

    def pending(status: str) -> float:
        return samples(address).get(f'kueue_pending_workloads{{cluster_queue="team",status="{status}"}}', -1.0)

    until(lambda: (pending("active"), pending("inadmissible")) == (0.0, 1.0), 20, scheduler.tail)
    assert samples(address)['kueue_reserving_active_workloads{cluster_queue="team"}'] == 1.0
    quota = '{cluster_queue="team",cohort="",flavor="default",resource="cpu"}'
    assert samples(address)[f"kueue_cluster_queue_resource_usage{quota}"] == 3.0
    assert samples(address)[f"kueue_cluster_queue_nominal_quota{quota}"] == 4.0
    statuses = {
        status: samples(address)[f'kueue_cluster_queue_status{{cluster_queue="team",status="{status}"}}']
        for status in ("pending", "active", "terminating")
    }
    assert statuses == {"pending": 0.0, "active": 1.0, "terminating": 0.0}
    queueing.create(job("urgent", "4", {"kueue.x-k8s.io/priority-class": "high"}))
    evicted = 'kueue_evicted_workloads_total{cluster_queue="team",reason="Preempted"}'
    until(lambda: samples(address).get(evicted) == 1.0, 30, scheduler.tail)
    queueing.create(pod("p0"))
    queueing.wait_until_bound(["p0"])
    queueing.create(pod("p1"))
    queueing.wait_until_bound(["p1"])
    queueing.create(pod("large", cpu="99"))
    refused = 'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"}'
    until(lambda: samples(address).get(refused) == 1.0, 20, scheduler.tail)
    found = samples(address)
    assert found["scheduler_pod_scheduling_attempts_count"] >= 2.0
    labels = '{profile="default-scheduler",result="unschedulable"}'
    assert found[f"scheduler_scheduling_attempt_duration_seconds_count{labels}"] >= 1.0
    assert sum(value for name, value in found.items() if name.startswith("rest_client_requests_total")) >= 10.0
    points = "scheduler_framework_extension_point_duration_seconds_count"
    assert any(name.startswith(points) and 'extension_point="Filter"' in name for name in found)
    plugins = "scheduler_plugin_execution_duration_seconds_count"
    assert any(name.startswith(plugins) and 'plugin="NodeResourcesFit"' in name for name in found)
    assert found["mooring_answer_cache_hits_total"] >= 0.0
    assert found["mooring_answer_cache_misses_total"] >= 1.0
    steps = {step for name in found for step in re.findall(r'^mooring_cycle_duration_seconds_count{step="(.*)"}', name)}
    placing = {"admit", "follow-up", "keep-whole", "share", "let-in", "place", "consolidate", "reclaim", "preempt"}
    assert steps == {"take-in", "catch-up", *placing, "resize-pods", "partition-gpus", "hand-on"}


def test_every_metric_that_is_documented_is_served(cluster: Kube) -> None:
    install_kinds(cluster)
    address = f"127.0.0.1:{free_port()}"
    cluster.create(node("n0"))
    scheduler: Program = cluster.run(f"--health-address={address}", "--leader-elect-resource-name=metrics", leads=True)
    scheduler.wait_until_it_says("scheduling for")
    assert DOCUMENTED is not None
    documented = set(
        re.findall(r"\b(?:mooring|scheduler|kueue|leader_election|rest_client|version)_\w+", DOCUMENTED[1])
    )
    served = set(re.findall(r"^# TYPE (\w+) ", get(f"{address}/metrics")[1], re.MULTILINE))
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes"} <= served
    served = {name for name in served if not name.endswith("_created") and not name.startswith("process_")}
    assert documented == served
