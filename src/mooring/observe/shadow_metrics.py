"""The metrics of a shadow, as Prometheus reads them."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest

_DECIDING = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_WAITS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_DIFFERENCES = (1, 3, 10, 30, 100, 300, 1000)


class ShadowMetrics:
    """Everything that a shadow counts, in one registry."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.pods = Counter(
            "mooring_shadow_pods",
            "Pods that were compared with what the present scheduler did, by outcome.",
            ("outcome",),
            registry=registry,
        )
        self.hindsight = Counter(
            "mooring_shadow_hindsight_pods",
            "Pods that were bound before a decision of ours, by how the node compares with the one we would choose.",
            ("outcome",),
            registry=registry,
        )
        self.difference = Histogram(
            "mooring_shadow_score_difference",
            "By how much our node's score exceeds that of the node which the present scheduler chose.",
            buckets=_DIFFERENCES,
            registry=registry,
        )
        self.plugins = Counter(
            "mooring_shadow_differing_plugins",
            "Pods on another node, by the plugins whose scores or filters prefer ours.",
            ("plugin",),
            registry=registry,
        )
        self.preemptions = Counter(
            "mooring_shadow_preemptions",
            "Pods that were evicted for others, or would have been, by which scheduler.",
            ("side",),
            registry=registry,
        )
        self.admissions = Counter(
            "mooring_shadow_admissions",
            "Workloads that were admitted, or would have been, by which scheduler.",
            ("side",),
            registry=registry,
        )
        self.decisions = Counter(
            "mooring_shadow_decisions", "What was decided and not carried out, by kind.", ("kind",), registry=registry
        )
        self.deciding_seconds = Histogram(
            "mooring_shadow_deciding_seconds", "How long each cycle took.", buckets=_DECIDING, registry=registry
        )
        self.ours_seconds = Histogram(
            "mooring_shadow_decided_after_seconds",
            "From the moment at which the watch showed a pod until it was decided on.",
            buckets=_WAITS,
            registry=registry,
        )
        self.theirs_seconds = Histogram(
            "mooring_shadow_bound_after_seconds",
            "From the moment at which the watch showed a pod until it showed the pod bound.",
            buckets=_WAITS,
            registry=registry,
        )
        self.unconfirmed = Gauge(
            "mooring_shadow_unconfirmed_decisions",
            "Decisions that are assumed and that nothing has confirmed yet.",
            registry=registry,
        )
        ProcessCollector(registry=registry)
        self.version = Info("version", "Of this program.", registry=registry)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self.registry)
