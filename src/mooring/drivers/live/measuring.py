"""What a run tells Prometheus and the decision log: counted as it happens, or read when somebody asks."""

import time
from collections import Counter
from collections.abc import Callable

from mooring.drivers.live.binder import Answer, Outcome
from mooring.drivers.live.dispatcher import Dispatcher, Lane
from mooring.drivers.live.driver import Live
from mooring.drivers.live.following import Following
from mooring.drivers.live.mirror import Mirror
from mooring.engine.queue.entry import Where
from mooring.model.api.kueue_workload import QUOTA_RESERVED
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.decisions import Admit, Bind, Decision, Evict, Suspend, Wait
from mooring.observe.decision_log import DecisionLog
from mooring.observe.metrics import Metrics

_KUBE_QUEUES = {
    Where.ACTIVE: "active",
    Where.BACKOFF: "backoff",
    Where.PARKED: "unschedulable",
    Where.GATED: "gated",
    Where.SHARED: "active",
    Where.GANG: "gang",
    Where.GATHERING: "gang",
    Where.TAKEN: "active",
}


class Measuring:
    """Everything that is counted about one run."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.metrics = Metrics()
        self._dispatcher = dispatcher
        self._live: Live | None = None
        self.on_code: Callable[[int], None] = lambda code: None
        """Told of every answer of the API server."""

    def watch(self, live: Live, following: Following, mirror: Mirror, log: DecisionLog) -> None:
        """Count what this one does."""
        self._live, self._following, self._mirror, self._log = live, following, mirror, log
        live.on_cycle, live.on_bound = self._cycled, self._bound
        live.on_fault = lambda plugin: self.metrics.faults.labels(plugin).inc()

    def answered(self, verb: str, code: int, seconds: float) -> None:
        """The API server answered a request."""
        self._dispatcher.note(code, seconds)
        self.on_code(code)
        self.metrics.api_seconds.labels(verb, str(code)).observe(seconds)

    def _cycled(self, steps: dict[str, float], decisions: list[Decision]) -> None:
        metrics = self.metrics
        for step, seconds in steps.items():
            metrics.cycle_seconds.labels(step).observe(seconds)
        metrics.algorithm_seconds.observe(steps["decide"])
        if not decisions:
            return
        self._log.decided(time.time(), decisions)
        victims: Counter[str] = Counter()
        for decision in decisions:
            match decision:
                case Wait(pod):
                    result = "error" if decision.message.startswith("error: ") else "unschedulable"
                    metrics.attempts.labels(result, self._profile(pod)).inc()
                case Evict():
                    victims[decision.preemptor] += 1
                case Admit() if not decision.pending_checks:
                    metrics.admitted_workloads.labels(decision.cluster_queue).inc()
                case Suspend():
                    metrics.evicted_workloads.labels(self._queue_of(decision.workload), decision.reason).inc()
        for preemptor, count in victims.items():
            if preemptor:
                metrics.preemption_attempts.inc()
                metrics.preemption_victims.observe(count)

    def _bound(self, decision: Bind, pod: Pod, answer: Answer) -> None:
        metrics, now = self.metrics, time.time()
        metrics.binds.labels(answer.outcome.value).inc()
        if answer.outcome is Outcome.BOUND:
            metrics.attempts.labels("scheduled", pod.spec.scheduler_name).inc()
            created = timestamp_seconds(pod.metadata.creation_timestamp)
            if created is not None:
                metrics.sli_seconds.observe(max(0.0, now - created))
        if self._log.is_on:
            self._log.became(
                now, answer.outcome.value.capitalize(), pod=decision.pod, node=decision.node, message=answer.message
            )

    def _profile(self, key: str) -> str:
        found = self._live.find(key) if self._live is not None else None
        return found.spec.scheduler_name if found is not None else ""

    def _queue_of(self, workload: str) -> str:
        assert self._live is not None
        found = self._live.scheduler.cluster.tenants.workloads.get(workload)  # type: ignore[call-overload]
        admission = found.workload.status.admission if found is not None else None
        return admission.cluster_queue if admission is not None else ""

    def text(self) -> bytes:
        """Everything as it is now, for Prometheus."""
        if self._live is not None:
            self._read(self._live)
        return self.metrics.text()

    def _read(self, live: Live) -> None:
        metrics, cluster, queue = self.metrics, live.scheduler.cluster, live.scheduler.queue
        waiting = Counter(_KUBE_QUEUES[where] for where in queue.places())
        metrics.set_all(metrics.pending_pods, {name: waiting[name] for name in set(_KUBE_QUEUES.values())})
        assumed = sum(1 for record in cluster.pods.records.values() if record.assumed)
        sizes = {"nodes": len(cluster.nodes.row_of), "pods": len(cluster.pods), "assumed_pods": assumed}
        metrics.set_all(metrics.cache_size, sizes)
        metrics.conflict_rate.set(live.conflict_rate)
        metrics.in_flight.set(self._dispatcher.in_flight)
        metrics.limit.set(int(self._dispatcher.limit))
        metrics.set_all(metrics.waiting_requests, {lane.name.lower(): self._dispatcher.backlog(lane) for lane in Lane})
        informers = self._following.informers.values()
        broken = sum(1 for found in informers if found.problem)
        metrics.set_all(metrics.watched, {"followed": len(informers) - broken, "broken": broken})
        metrics.relists.set(sum(found.relists for found in informers))
        metrics.watches.set(sum(found.watches for found in informers))
        metrics.unread.set(self._mirror.unread)
        metrics.events_dropped.set(live.recorder.dropped)
        metrics.shapes.set(cluster.shapes.in_use)
        self._read_workloads(live)

    def _read_workloads(self, live: Live) -> None:
        pending: Counter[str] = Counter()
        holding: Counter[str] = Counter()
        tenants = live.scheduler.cluster.tenants
        for queued in tenants.workloads.values():
            workload = queued.workload
            local = tenants.local_queues.get(f"{workload.metadata.namespace}/{workload.spec.queue_name}")
            queue = local.spec.cluster_queue if local is not None else ""
            (holding if workload.condition(QUOTA_RESERVED) is not None else pending)[queue] += 1
        for name in tenants.cluster_queues:
            self.metrics.pending_workloads.labels(name, "active").set(pending[name])
            self.metrics.reserving_workloads.labels(name).set(holding[name])
