"""What a running scheduler tells Prometheus: kube-scheduler's and Kueue's names where they have one, our own else."""

from collections.abc import Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest
from prometheus_client.metrics import MetricWrapperBase

_SECONDS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384)
_WAITS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68)
_POINTS = tuple(0.0001 * 2.0**i for i in range(12))
_PLUGINS = tuple(0.00001 * 1.5**i for i in range(20))
_VICTIMS = (1, 2, 4, 8, 16, 32, 64)
_ATTEMPTS = (1, 2, 4, 8, 16)
_QUOTA = ("cohort", "cluster_queue", "flavor", "resource")
M = TypeVar("M", bound=MetricWrapperBase)


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # kube-scheduler's.
        self.attempts = self._new(
            Counter, "scheduler_schedule_attempts_total", "Attempts to schedule pods, by result.", "result", "profile"
        )
        self.attempt_seconds = self._histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long an attempt took: pods that are decided in one cycle share its time.",
            _SECONDS,
            "result",
            "profile",
        )
        self.pod_attempts = self._histogram(
            "scheduler_pod_scheduling_attempts", "How many attempts a pod took until it was bound.", _ATTEMPTS
        )
        self.unschedulable_pods = self._new(
            Gauge,
            "scheduler_unschedulable_pods",
            "Pods that a plugin found no node for when they were last tried; a pod counts for each of its plugins.",
            "plugin",
            "profile",
        )
        self.incoming_pods = self._new(
            Counter,
            "scheduler_queue_incoming_pods_total",
            "Pods that came to a queue, by what brought them.",
            "queue",
            "event",
        )
        self.algorithm_seconds = self._histogram(
            "scheduler_scheduling_algorithm_duration_seconds", "How long deciding took, cycle by cycle.", _SECONDS
        )
        self.point_seconds = self._histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "How long all plugins of an extension point took, for all pods of one cycle in ten.",
            _POINTS,
            *("extension_point", "status", "profile"),
        )
        self.plugin_seconds = self._histogram(
            "scheduler_plugin_execution_duration_seconds",
            "How long a plugin took at an extension point, for all pods of one cycle in ten.",
            _PLUGINS,
            *("plugin", "extension_point", "status"),
        )
        self.sli_seconds = self._histogram(
            "scheduler_pod_scheduling_sli_duration_seconds", "From a pod's creation until it is bound.", _WAITS
        )
        self.pending_pods = self._new(Gauge, "scheduler_pending_pods", "Pods that wait, by where.", "queue")
        self.cache_size = self._new(Gauge, "scheduler_cache_size", "Nodes and pods in the state.", "type")
        self.preemption_attempts = self._new(
            Counter, "scheduler_preemption_attempts_total", "Pods for which others were evicted."
        )
        self.preemption_victims = self._histogram(
            "scheduler_preemption_victims", "Pods evicted for one preemptor.", _VICTIMS
        )
        # Kueue's.
        self.pending_workloads = self._new(
            Gauge,
            "kueue_pending_workloads",
            "Workloads that wait for quota: active, or inadmissible until something changes.",
            "cluster_queue",
            "status",
        )
        self.reserving_workloads = self._new(
            Gauge, "kueue_reserving_active_workloads", "Workloads that have quota.", "cluster_queue"
        )
        self.admitted_workloads = self._new(
            Counter, "kueue_admitted_workloads_total", "Workloads that were admitted.", "cluster_queue"
        )
        self.evicted_workloads = self._new(
            Counter, "kueue_evicted_workloads_total", "Workloads that lost their quota.", "cluster_queue", "reason"
        )
        self.admitted_active_workloads = self._new(
            Gauge, "kueue_admitted_active_workloads", "Workloads that are admitted and not finished.", "cluster_queue"
        )
        self.queue_status = self._new(
            Gauge, "kueue_cluster_queue_status", "1 for how a queue stands.", "cluster_queue", "status"
        )
        self.resource_reservation = self._new(
            Gauge, "kueue_cluster_queue_resource_reservation", "What workloads with quota hold.", *_QUOTA
        )
        self.resource_usage = self._new(
            Gauge, "kueue_cluster_queue_resource_usage", "What admitted workloads use.", *_QUOTA
        )
        self.nominal_quota = self._new(Gauge, "kueue_cluster_queue_nominal_quota", "The queue's own quota.", *_QUOTA)
        self.borrowing_limit = self._new(
            Gauge, "kueue_cluster_queue_borrowing_limit", "How much it may borrow; none if nothing limits it.", *_QUOTA
        )
        self.lending_limit = self._new(
            Gauge, "kueue_cluster_queue_lending_limit", "How much it may lend; none if nothing limits it.", *_QUOTA
        )
        # client-go's, and the process'.
        self.rest_requests = self._new(
            Counter, "rest_client_requests_total", "Requests to the API server.", "code", "method", "host"
        )
        self.rest_seconds = self._histogram(
            "rest_client_request_duration_seconds", "How long they took.", _SECONDS, "verb", "host"
        )
        ProcessCollector(registry=self.registry)
        self.version = Info("version", "Of this program.", registry=self.registry)
        # Our own.
        self.borrowed = self._new(
            Gauge, "mooring_cluster_queue_borrowed", "What a queue uses beyond its own quota.", *_QUOTA
        )
        self.cycle_seconds = self._histogram(
            "mooring_cycle_duration_seconds", "How long the steps of a cycle took.", _SECONDS, "step"
        )
        self.binds = self._new(Counter, "mooring_binds_total", "Binds, by what became of them.", "outcome")
        self.conflict_rate = self._new(Gauge, "mooring_bind_conflict_ratio", "Conflicts among the latest binds.")
        self.api_seconds = self._histogram(
            "mooring_api_request_duration_seconds", "Answers of the API server.", _SECONDS, "verb", "code"
        )
        self.in_flight = self._new(Gauge, "mooring_api_requests_in_flight", "Requests without an answer yet.")
        self.limit = self._new(Gauge, "mooring_api_requests_limit", "How many requests may be in flight.")
        self.waiting_requests = self._new(
            Gauge, "mooring_api_requests_waiting", "Requests that wait to be sent, by lane.", "lane"
        )
        self.watched = self._new(Gauge, "mooring_watched_resources", "Kinds that are followed.", "state")
        self.relists = self._new(Gauge, "mooring_relists", "Lists of whole kinds since the start.")
        self.watches = self._new(Gauge, "mooring_watches", "Watches opened since the start.")
        self.load_age = self._new(
            Gauge, "mooring_load_age_seconds", "Seconds since the newest report of a source of load.", "source"
        )
        self.load_nodes = self._new(
            Gauge,
            "mooring_load_reports",
            "Reports of load that are known, by whether they are stale.",
            "source",
            "state",
        )
        self.load_failures = self._new(
            Gauge, "mooring_load_source_failures", "How often a source of load failed since the start.", "source"
        )
        self.unread = self._new(Gauge, "mooring_unread_objects", "Objects that could not be read.")
        self.events_dropped = self._new(Gauge, "mooring_events_dropped", "Events that were not written.")
        self.plans = self._new(Gauge, "mooring_plans", "Plans that are not carried out yet, by reason.", "reason")
        self.measured_nodes = self._new(Gauge, "mooring_measured_nodes", "Nodes whose load was reported.", "source")
        self.shapes = self._new(Gauge, "mooring_shapes", "Kinds of pods that share their answers.")
        self.answer_hits = self._new(
            Counter, "mooring_answer_cache_hits_total", "How often answers kept for a shape would do."
        )
        self.answer_misses = self._new(
            Counter, "mooring_answer_cache_misses_total", "How often all nodes were asked anew about a shape."
        )
        self.faults = self._new(Counter, "mooring_faults_total", "What raised in a cycle, by plugin.", "plugin")
        self.leading = self._new(Gauge, "leader_election_master_status", "1 while this process leads.", "name")

    def _new(self, type_: type[M], name: str, text: str, *labels: str) -> M:
        return type_(name.removesuffix("_total"), text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

    def set_all(self, gauge: Gauge, values: Mapping[str, float]) -> None:
        """Set a gauge with one label to these values."""
        for label, value in values.items():
            gauge.labels(label).set(value)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self.registry)
