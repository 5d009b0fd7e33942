"""Metrics that dashboards and alerts of kube-scheduler, client-go and Kueue read have their names, types and labels."""

import pytest

from mooring.observe.metrics import Metrics

QUOTA = {"cohort", "cluster_queue", "flavor", "resource"}
EXPECTED: dict[str, tuple[str, set[str]]] = {
    "scheduler_schedule_attempts_total": ("counter", {"result", "profile"}),
    "scheduler_scheduling_attempt_duration_seconds": ("histogram", {"result", "profile"}),
    "scheduler_pod_scheduling_attempts": ("histogram", set()),
    "scheduler_pod_scheduling_sli_duration_seconds": ("histogram", set()),
    "scheduler_scheduling_algorithm_duration_seconds": ("histogram", set()),
    "scheduler_unschedulable_pods": ("gauge", {"plugin", "profile"}),
    "scheduler_queue_incoming_pods_total": ("counter", {"queue", "event"}),
    "scheduler_framework_extension_point_duration_seconds": ("histogram", {"extension_point", "status", "profile"}),
    "scheduler_plugin_execution_duration_seconds": ("histogram", {"plugin", "extension_point", "status"}),
    "scheduler_pending_pods": ("gauge", {"queue"}),
    "scheduler_cache_size": ("gauge", {"type"}),
    "scheduler_preemption_attempts_total": ("counter", set()),
    "scheduler_preemption_victims": ("histogram", set()),
    "leader_election_master_status": ("gauge", {"name"}),
    "rest_client_requests_total": ("counter", {"code", "method", "host"}),
    "rest_client_request_duration_seconds": ("histogram", {"verb", "host"}),
    "process_cpu_seconds_total": ("counter", set()),
    "process_resident_memory_bytes": ("gauge", set()),
    "process_open_fds": ("gauge", set()),
    "process_start_time_seconds": ("gauge", set()),
    "version_info": ("gauge", {"version"}),
    "kueue_pending_workloads": ("gauge", {"cluster_queue", "status"}),
    "kueue_reserving_active_workloads": ("gauge", {"cluster_queue"}),
    "kueue_admitted_active_workloads": ("gauge", {"cluster_queue"}),
    "kueue_admitted_workloads_total": ("counter", {"cluster_queue"}),
    "kueue_evicted_workloads_total": ("counter", {"cluster_queue", "reason"}),
    "kueue_cluster_queue_status": ("gauge", {"cluster_queue", "status"}),
    "kueue_cluster_queue_resource_usage": ("gauge", QUOTA),
    "kueue_cluster_queue_resource_reservation": ("gauge", QUOTA),
    "kueue_cluster_queue_nominal_quota": ("gauge", QUOTA),
    "kueue_cluster_queue_borrowing_limit": ("gauge", QUOTA),
    "kueue_cluster_queue_lending_limit": ("gauge", QUOTA),
}


@pytest.fixture(scope="module")
def served() -> dict[str, tuple[str, set[str]]]:
    """The type and the labels of each metric, as they are served once every one has a series."""
    metrics = Metrics()
    metrics.version.info({"version": "1"})
    for found in vars(metrics).values():
        labels = getattr(found, "_labelnames", ())
        if labels:
            found.labels(*["x"] * len(labels))
    types: dict[str, str] = {}
    labels_of: dict[str, set[str]] = {}
    for line in metrics.text().decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            types[name] = kind
        elif not line.startswith("#"):
            name, _, labels_text = line.rpartition(" ")[0].partition("{")
            names = {each.partition("=")[0] for each in labels_text.rstrip("}").split(",") if each}
            for suffix in ("_bucket", "_sum", "_count"):
                if types.get(name.removesuffix(suffix)) == "histogram":
                    name = name.removesuffix(suffix)
            labels_of.setdefault(name, set()).update(names - {"le"})
    return {name: (kind, labels_of.get(name, set())) for name, kind in types.items()}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_metric_has_the_type_and_the_labels_that_others_read(
    served: dict[str, tuple[str, set[str]]], name: str
) -> None:
    assert served[name] == EXPECTED[name]
