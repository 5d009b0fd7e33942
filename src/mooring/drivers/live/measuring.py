"""What a run tells Prometheus and the decision log: counted as it happens, or read when somebody asks."""

import logging
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from mooring.actions.admit.section import AdmissionSection
from mooring.actions.place.section import PlacingSection
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.driver import Live
from mooring.drivers.live.plugin_clock import PluginClock, Timed
from mooring.drivers.live.pods.binder import Answer, Outcome
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.watching.following import Informers
from mooring.engine.answers.kept import KeptAnswers
from mooring.engine.cycle import CATCH_UP
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.pods import Pod
from mooring.model.decisions import Admit, Bind, Decision, Evict, Suspend, Wait
from mooring.observe.decision_log import DecisionLog
from mooring.observe.metrics import Metrics
from mooring.report.amounts import in_units
from mooring.report.queues.standing import standings
from mooring.state.plans import Reason
from mooring.state.waiting import Where
from mooring.state.workloads import HOLDING, Stage

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

_QUEUE_STATUSES = ("pending", "active", "terminating")
"""Kueue's; one of them is 1."""
TAKE_IN, HAND_ON = "take-in", "hand-on"
"""The steps around the scheduler's own: what happened is told to it, what it decided is sent on its way."""
_log = logging.getLogger(__name__)


class Tried(NamedTuple):
    """A pod that was tried in vain."""

    attempts: int
    plugins: tuple[str, ...]
    """That found no node for it when it was last tried."""
    profile: str


class Measuring:
    """Everything that is counted about one run."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.metrics = Metrics()
        self._dispatcher = dispatcher
        self._live: Live | None = None
        self._steps = StepClock()
        self._plugins = PluginClock()
        self._answers: tuple[KeptAnswers | None, int, int] = (None, 0, 0)
        """Of which scheduler the answers were counted last, and the counts."""
        # Looked up once: each bind is counted in all of these.
        self._api_seconds = cache(lambda verb, code: self.metrics.api_seconds.labels(verb, str(code)))
        self.host = ""
        """The API server, as metrics name it."""
        self._rest_requests = cache(
            lambda verb, code: self.metrics.rest_requests.labels(str(code) if code else "<error>", verb, self.host)
        )
        self._rest_seconds = cache(lambda verb: self.metrics.rest_seconds.labels(verb, self.host))
        self._attempt_seconds = cache(self.metrics.attempt_seconds.labels)
        self._share = 0.0
        """What each pod of the last cycle took of it, in seconds."""
        self._tried: dict[str, Tried] = {}
        """Pods that were tried in vain."""
        self._binds = cache(lambda outcome: self.metrics.binds.labels(outcome.value))
        self._scheduled = cache(lambda profile: self.metrics.attempts.labels("scheduled", profile))
        self.on_code: Callable[[int], None] = lambda code: None
        """Told of every answer of the API server."""
        self.read_loads: Callable[[Metrics], None] = lambda metrics: None
        """Shows how the sources of load do."""

    def step(self, name: str) -> None:
        """A step of a cycle begins."""
        if name == CATCH_UP and self._live is not None:
            self._plugins.begin(self._live.scheduler.profiles.values())
        self._steps.begin(name)

    def watch(self, live: Live, following: Informers, cache: ObjectCache, log: DecisionLog) -> None:
        """Count what this one does."""
        self._live, self._following, self._cache, self._log = live, following, cache, log
        live.on_cycle, live.on_bound = self._cycled, self._bound
        live.on_fault = lambda plugin: self.metrics.faults.labels(plugin).inc()

    def answered(self, verb: str, code: int, seconds: float) -> None:
        """The API server answered a request."""
        if verb != "GET" or code == 0 or code >= 500:  # how long a page of pods takes says nothing of how long binds do
            self._dispatcher.note(code, seconds)
        self.on_code(code)
        self._api_seconds(verb, code).observe(seconds)
        self._rest_requests(verb, code).inc()
        self._rest_seconds(verb).observe(seconds)

    def _cycled(self, steps: dict[str, float], decisions: list[Decision]) -> None:
        metrics = self.metrics
        within = self._steps.take()
        rest = max(0.0, steps["decide"] - sum(within.values()))
        for step, seconds in {TAKE_IN: steps["take-in"], **within, HAND_ON: rest}.items():
            metrics.cycle_seconds.labels(step).observe(seconds)
        metrics.algorithm_seconds.observe(steps["decide"])
        self._count_plugins(self._plugins.end())
        if not decisions:
            return
        self._log.decided(time.time(), decisions)
        if _log.isEnabledFor(logging.DEBUG):
            for decision in decisions:
                _log.debug("decided: %s", decision)
        victims: Counter[str] = Counter()
        tried = sum(isinstance(decision, Bind | Wait) for decision in decisions)
        self._share = steps["decide"] / tried if tried else 0.0
        for decision in decisions:
            match decision:
                case Wait(pod):
                    result = "error" if decision.message.startswith("error: ") else "unschedulable"
                    self._waits(decision, result, self._profile(pod))
                case Evict():
                    victims[decision.preemptor] += 1
                case Admit() if not decision.pending_checks:
                    metrics.admitted_workloads.labels(decision.cluster_queue).inc()
                case Suspend():
                    queue = self._queue_of(decision.workload)
                    metrics.evicted_workloads.labels(queue, decision.evicted_reason).inc()
        for preemptor, count in victims.items():
            if preemptor:
                metrics.preemption_attempts.inc()
                metrics.preemption_victims.observe(count)

    def _count_plugins(self, seconds: dict[Timed, float]) -> None:
        """Count what the plugins of a cycle took, if they were timed."""
        points: defaultdict[tuple[str, str, str], float] = defaultdict(float)
        for timed, taken in seconds.items():
            self.metrics.plugin_seconds.labels(timed.plugin, timed.point, timed.status).observe(taken)
            points[timed.point, timed.status, timed.profile] += taken
        for labels, taken in points.items():
            self.metrics.point_seconds.labels(*labels).observe(taken)

    def _waits(self, decision: Wait, result: str, profile: str) -> None:
        self.metrics.attempts.labels(result, profile).inc()
        self._attempt_seconds(result, profile).observe(self._share)
        before = self._tried.get(decision.pod)
        if before is None:
            self.metrics.incoming_pods.labels("active", "PodAdd").inc()
        self.metrics.incoming_pods.labels("unschedulable", "ScheduleAttemptFailure").inc()
        self._tried[decision.pod] = Tried(1 if before is None else before.attempts + 1, decision.plugins, profile)

    def _bound(self, decision: Bind, pod: Pod, answer: Answer) -> None:
        metrics, now = self.metrics, time.time()
        self._binds(answer.outcome).inc()
        if answer.outcome is Outcome.BOUND:
            self._scheduled(pod.spec.scheduler_name).inc()
            self._attempt_seconds("scheduled", pod.spec.scheduler_name).observe(self._share)
            before = self._tried.pop(decision.pod, None) if self._tried else None
            metrics.pod_attempts.observe(1 if before is None else before.attempts + 1)
            if before is None:
                metrics.incoming_pods.labels("active", "PodAdd").inc()
            created = timestamp_seconds(pod.metadata.creation_timestamp)
            if created is not None:
                metrics.sli_seconds.observe(max(0.0, now - created))
        elif answer.outcome is not Outcome.GONE:
            metrics.attempts.labels("error", pod.spec.scheduler_name).inc()
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
            self.read_loads(self.metrics)
        return self.metrics.text()

    def _read(self, live: Live) -> None:
        metrics, cluster, queue = self.metrics, live.scheduler.cluster, live.scheduler.queue
        waiting = Counter(_KUBE_QUEUES[where] for where in queue.places())
        metrics.set_all(metrics.pending_pods, {name: waiting[name] for name in set(_KUBE_QUEUES.values())})
        assumed = sum(1 for record in cluster.pods.records.values() if record.assumed)
        sizes = {"nodes": len(cluster.nodes.row_of), "pods": len(cluster.pods), "assumed_pods": assumed}
        metrics.set_all(metrics.cache_size, sizes)
        metrics.conflict_rate.set(live.pacing.conflict_rate)
        metrics.in_flight.set(self._dispatcher.in_flight)
        metrics.limit.set(int(self._dispatcher.limit))
        metrics.set_all(metrics.waiting_requests, {lane.name.lower(): self._dispatcher.backlog(lane) for lane in Lane})
        informers = self._following.informers.values()
        broken = sum(1 for found in informers if found.problem)
        metrics.set_all(metrics.watched, {"followed": len(informers) - broken, "broken": broken})
        metrics.relists.set(sum(found.relists for found in informers))
        metrics.watches.set(sum(found.watches for found in informers))
        metrics.unread.set(self._cache.unread)
        metrics.events_dropped.set(live.recorder.dropped)
        metrics.shapes.set(cluster.shapes.in_use)
        planned = Counter(plan.reason for _, plan in cluster.plans())
        metrics.set_all(metrics.plans, {reason.value: planned[reason] for reason in Reason})
        measured = {"node": len(cluster.nodes.load.of_node), "gpus": len(cluster.nodes.load.gpus_of_node)}
        metrics.set_all(metrics.measured_nodes, measured)
        self._read_answers(live)
        self._read_workloads(live)
        self._read_quotas(live)
        self._tried = {key: tried for key, tried in self._tried.items() if key in cluster.pods.records}
        unschedulable = Counter((plugin, tried.profile) for tried in self._tried.values() for plugin in tried.plugins)
        metrics.unschedulable_pods.clear()
        for (plugin, profile), count in unschedulable.items():
            metrics.unschedulable_pods.labels(plugin, profile).set(count)

    def _read_quotas(self, live: Live) -> None:
        """What each queue has, may have and uses, in the units of Kueue's metrics: cores, bytes and counts."""
        metrics, tenants = self.metrics, live.scheduler.cluster.tenants
        gauges = (
            metrics.resource_reservation,
            metrics.resource_usage,
            metrics.nominal_quota,
            metrics.borrowing_limit,
            metrics.lending_limit,
            metrics.borrowed,
        )
        for gauge in (*gauges, metrics.queue_status, metrics.admitted_active_workloads):
            gauge.clear()
        for name, standing in standings(live.scheduler, time.time()).cluster_queues.items():
            metrics.admitted_active_workloads.labels(name).set(standing.admitted)
            status = "pending" if standing.inactive_reason else "active"
            if tenants.cluster_queues[name].metadata.deletion_timestamp is not None:
                status = "terminating"
            for each in _QUEUE_STATUSES:
                metrics.queue_status.labels(name, each).set(each == status)
            cohort = tenants.cluster_queues[name].spec.cohort_name or ""
            for column, given in standing.quotas.items():
                values = (
                    standing.reserved[column],
                    standing.used[column],
                    given.nominal,
                    given.borrowing_limit,
                    given.lending_limit,
                    standing.borrowed(standing.reserved, column),
                )
                for gauge, value in zip(gauges, values, strict=True):
                    if value is not None:
                        shown = in_units(column.resource, value)
                        gauge.labels(cohort, name, column.flavor, column.resource).set(shown)

    def _read_answers(self, live: Live) -> None:
        kept = next((found.gangs.batches.kept for found in live.scheduler.sections(PlacingSection)), None)
        if kept is None:
            return
        known, hits, misses = self._answers
        if kept is not known:  # a new configuration has a scheduler of its own
            hits = misses = 0
        self.metrics.answer_hits.inc(kept.hits - hits)
        self.metrics.answer_misses.inc(kept.misses - misses)
        self._answers = (kept, kept.hits, kept.misses)

    def _read_workloads(self, live: Live) -> None:
        """How many workloads have quota in each queue; of those that wait, who may be tried, and who is parked."""
        metrics, tenants = self.metrics, live.scheduler.cluster.tenants
        section = next(iter(live.scheduler.sections(AdmissionSection)), None)
        admission = section.current if section is not None else None
        holding: Counter[str] = Counter()
        backing_off: Counter[str] = Counter()
        for record in section.workloads.values() if section is not None else ():
            local = tenants.local_queues.get(record.local_queue)
            queue = local.spec.cluster_queue if local is not None else ""
            holding[queue] += record.stage in HOLDING
            backing_off[queue] += record.stage is Stage.BACKOFF
        lines = admission.pending.pending_queues if admission is not None else {}
        metrics.pending_workloads.clear()
        metrics.reserving_workloads.clear()
        for name in tenants.cluster_queues:
            line = lines.get(name)
            active = waiting = 0
            if line is not None:
                waiting = sum(1 for _ in line.waiting())
                active = sum(1 for _ in line.waiting(with_parked=False)) if line.queue.is_active else 0
            metrics.pending_workloads.labels(name, "active").set(active)
            metrics.pending_workloads.labels(name, "inadmissible").set(waiting - active + backing_off[name])
            metrics.reserving_workloads.labels(name).set(holding[name])


class StepClock:
    """How long each step of a cycle takes; actions of one kind count as one."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._name, self._since = "", 0.0
        self._seconds: dict[str, float] = {}

    def begin(self, name: str) -> None:
        """A step begins, and the one before is over; none begins without a name."""
        now = self._now()
        if self._name:
            self._seconds[self._name] = self._seconds.get(self._name, 0.0) + now - self._since
        self._name, self._since = name, now

    def take(self) -> dict[str, float]:
        """What the steps took since this was last asked, by their names as metrics have them."""
        seconds, self._seconds = self._seconds, {}
        return {_step_name(name): found for name, found in seconds.items()}


@cache
def _step_name(name: str) -> str:
    """KeepWhole is keep-whole."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
