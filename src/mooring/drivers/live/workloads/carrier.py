"""Decisions about workloads that queue, carried out as Kueue's controllers would: Workloads, jobs, gates of pods.

What was admitted is written into the Workload, which is made if nobody has: after a restart it is read from there. So
nobody's admission is written before those who made room for it are known to be stopped: whoever dies in between leaves
no more admitted than there is quota.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.discovery import Resource, Served
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.object_events import ObjectEvents
from mooring.drivers.live.workloads.endings import how_it_ended, workloads_in
from mooring.drivers.live.workloads.requests import assignment, condition, suspension, waited_text
from mooring.drivers.live.workloads.versions import WorkloadVersions
from mooring.drivers.live.workloads.words import WorkloadWords
from mooring.drivers.live.workloads.writer import MOST_TRIES, WORKLOAD, WorkloadWriter
from mooring.model.api.kueue_workload import ADMITTED, EVICTED, FINISHED, QUOTA_ENDS, QUOTA_RESERVED, Workload
from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.decisions import PREEMPTED, Admit, Decision, Defer, Notice, Suspend, WorkloadDecision
from mooring.model.events import Event
from mooring.model.keys import WorkloadKey
from mooring.model.queued.gathering import QueuedWorkload
from mooring.model.queued.labels import QUEUE_GATES
from mooring.model.queued.workloads import flavor_terms
from mooring.state.tenants import TenantTable

UNKNOWN_UID = "UID: UNKNOWN,"
"""In the message of a preemption: whoever decided did not know the uid of a Workload that was yet to be made."""
_SUSPEND: Mapping[str, tuple[str, ...]] = {
    "Job": ("spec", "suspend"),
    "JobSet": ("spec", "suspend"),
    "RayJob": ("spec", "suspend"),
    "RayCluster": ("spec", "suspend"),
    "SparkApplication": ("spec", "suspend"),
    "PyTorchJob": ("spec", "runPolicy", "suspend"),
    "TFJob": ("spec", "runPolicy", "suspend"),
    "MPIJob": ("spec", "runPolicy", "suspend"),
    "XGBoostJob": ("spec", "runPolicy", "suspend"),
    "PaddleJob": ("spec", "runPolicy", "suspend"),
    "JAXJob": ("spec", "runPolicy", "suspend"),
}
"""Where kinds of jobs say that they are suspended; the pods of others are held by gates."""
_log = logging.getLogger(__name__)


class WorkloadCarrier:
    """Sends what was decided about workloads, one after another for each, and tells what failed."""

    def __init__(
        self,
        client: Client,
        dispatcher: Dispatcher,
        tenants: TenantTable,
        *,
        failed: Callable[[Decision, str], None],
        tell: Callable[[Event], None],
        find_pod: Callable[[str], Pod | None],
        find_job: Callable[[str, str, str], Any],
    ) -> None:
        """`find_pod` and `find_job` give a pod, or a job by its kind and name, as the world has it."""
        self._dispatcher = dispatcher
        self.tenants = tenants
        self._failed, self._tell, self._find_pod, self._find_job = failed, tell, find_pod, find_job
        self.may_admit: Callable[[], bool] = lambda: True
        """Whether at this moment nobody else can admit."""
        self._under_way: dict[str, asyncio.Future[bool]] = {}
        """By workload: what is being done to it, and then whether that was done."""
        self._stopping: dict[asyncio.Future[bool], str] = {}
        """Who is being told to stop, each with the tree of queues that shares its quota."""
        self._refused: dict[str, float] = {}
        """Who could not be told to stop, and when to try again."""
        self._writer = WorkloadWriter(client, dispatcher)
        self._events = ObjectEvents(client, dispatcher)
        self.versions = WorkloadVersions(self._find, lambda key: key in self._under_way, self._writer.forget)
        self.words = WorkloadWords(
            self._writer,
            self._events,
            dispatcher,
            find=self._find,
            alone=self._alone,
            wrote=self.versions.wrote,
        )

    @property
    def served(self) -> Served:
        return self._writer.served

    @served.setter
    def served(self, served: Served) -> None:
        self._writer.served = served

    def _find(self, key: WorkloadKey) -> QueuedWorkload | None:
        return self.tenants.workloads.get(key)

    def carry_out(self, decision: WorkloadDecision) -> None:
        queued = self._find(WorkloadKey(decision.workload))
        if queued is None:
            return
        if isinstance(decision, Defer):
            self.words.say(decision)
            return
        if not isinstance(decision, Notice):
            self.words.take_back(queued.workload.key)
        tree = tree_of(self.tenants, queued.workload)
        first: list[asyncio.Future[bool]] = []
        if isinstance(decision, Admit):
            first = [stopping for stopping, where in self._stopping.items() if where == tree]
        is_refused = isinstance(decision, Suspend) and decision.workload in self._refused
        pause = self._refused[decision.workload] - asyncio.get_running_loop().time() if is_refused else 0.0
        done = self._begin(
            decision.workload,
            lambda: self._carry_out(decision, queued, first),
            lambda why: self._fail(decision, why),
            pause,
        )
        # Nobody is given the quota of one that could not be stopped before the world says that it is: others need not
        # wait for it.
        if isinstance(decision, Suspend) and not is_refused:
            self._stopping[done] = tree
            done.add_done_callback(self._stopping.pop)

    def could_not_stop(self, workload: str, seconds: float) -> None:
        """The world refused to stop it: try that again after so many seconds. Who is gone is forgotten."""
        self._refused = {key: at for key, at in self._refused.items() if WorkloadKey(key) in self.tenants.workloads}
        self._refused[workload] = asyncio.get_running_loop().time() + seconds

    def lost(self, key: WorkloadKey) -> None:
        """A workload is about to be gone: if its job is over, its Workload is to say so."""
        queued = self._find(key)
        if queued is not None:
            self._finish(queued.workload)
        self.words.forget(key)

    @property
    def resource(self) -> Resource:
        return self.served[WORKLOAD]

    async def listed(self) -> list[tuple[Workload, msgspec.Raw]]:
        """All Workloads as the world has them at this moment, however often that must be asked."""
        if not self._writer.has_kind:
            return []
        try:
            return workloads_in(await self._writer.insist("GET", self._writer.path(), None, math.inf))
        except ApiError as error:
            _log.warning("Workloads cannot be listed: %s", error.message)
            return []

    def finish(self, workloads: Iterable[Workload]) -> None:
        """Say of those, too, that they are over whose jobs ended while nobody was there to see it."""
        for workload in workloads:
            if workload.condition(FINISHED) is None and workload.key not in self.tenants.workloads:
                self._finish(workload)

    def _finish(self, workload: Workload) -> None:
        ending = how_it_ended(workload, self._find_job, self._find_pod)
        if ending is not None:
            self.words.finish(workload, *ending)

    def resume(self, queued: QueuedWorkload) -> None:
        """Let a workload that was admitted before our time go on, should whoever admitted it have died over that."""
        admission = queued.workload.status.admission
        if admission is not None:
            given = {each.name: each.flavors or {} for each in admission.pod_set_assignments}
            self._begin(queued.workload.key, lambda: self._start(given, queued), lambda why: None)

    def _begin(
        self,
        workload: str,
        work: Callable[[], Awaitable[None]],
        failed: Callable[[str], None],
        pause: float = 0.0,
    ) -> "asyncio.Future[bool]":
        """Do something to a workload after what is being done to it, and after a pause."""
        before = self._under_way.get(workload)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        self._under_way[workload] = done

        def submit() -> None:
            self._dispatcher.submit(Lane.EVICT, lambda: self._run(workload, work, failed, before, done))

        if pause > 0:
            loop.call_later(pause, submit)
        else:
            submit()
        return done

    async def settled(self, workload: str) -> bool:
        """Wait until what was decided about a workload is done; whether it was."""
        found = self._under_way.get(workload)
        return True if found is None else await found

    async def _alone(self, workload: WorkloadKey, work: Callable[[], Awaitable[None]]) -> None:
        """Do something to a workload now, or after what is being done to it: what is decided waits for it no longer."""
        before = self._under_way.get(workload)
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._under_way[workload] = done
        await self._run(workload, work, lambda why: None, before, done)

    async def _run(
        self,
        workload: str,
        work: Callable[[], Awaitable[None]],
        failed: Callable[[str], None],
        before: "asyncio.Future[bool] | None",
        done: "asyncio.Future[bool]",
    ) -> None:
        if before is not None:
            async with self._dispatcher.aside():
                await before
        problem = ""
        try:
            await work()
        except ApiError as error:
            problem = error.message
        except Exception as error:  # of ours: whoever waits for this must hear that it was not done
            _log.exception("workload %s: something was given up", workload)
            problem = f"error: {type(error).__name__}: {error}"
        if self._under_way.get(workload) is done:
            del self._under_way[workload]
        done.set_result(not problem)
        if problem:
            failed(problem)
        news = self.versions.take_news(WorkloadKey(workload)) if workload not in self._under_way else None
        if news is not None:
            self._tell(news)
            self.words.arrived(news.workload)

    def _fail(self, decision: Admit | Suspend | Notice, problem: str) -> None:
        _log.warning("workload %s: %s was refused: %s", decision.workload, type(decision).__name__, problem)
        self._failed(decision, problem)

    async def _carry_out(
        self, decision: Admit | Suspend | Notice, queued: QueuedWorkload, first: "list[asyncio.Future[bool]]"
    ) -> None:
        async with self._dispatcher.aside():
            are_stopped = [await stopping for stopping in first]
        if not all(are_stopped):
            raise ApiError(0, "Waiting", "who was to make room for it could not be told to stop")
        match decision:
            case Admit():
                await self._admit(decision, queued)
            case Suspend():
                await self._suspend(decision, queued)
                self._refused.pop(decision.workload, None)
            case Notice():
                await self._announce(decision)

    # What is decided.

    async def _admit(self, decision: Admit, queued: QueuedWorkload) -> None:
        workload, queue = queued.workload, decision.cluster_queue
        if not self._writer.uid_of(workload):
            await self._writer.create(workload)
        admission = {
            "clusterQueue": queue,
            "podSetAssignments": [assignment(given, workload) for given in decision.podsets],
        }
        conditions = [condition(QUOTA_RESERVED, "True", "QuotaReserved", f"Quota reserved in ClusterQueue {queue}")]
        for type_ in (EVICTED, PREEMPTED):
            before = workload.condition(type_)
            if before is not None:
                conditions.append(condition(type_, "False", "QuotaReserved", f"Previously: {before.message}"))
        if not decision.pending_checks:
            conditions.append(condition(ADMITTED, "True", "Admitted", "The workload is admitted"))
        if not self.may_admit():
            raise ApiError(0, "NotLeading", "another scheduler may admit by now")
        await self._write_status(workload, {"admission": admission}, conditions)
        if workload.condition(QUOTA_RESERVED) is None:
            waited = waited_text(workload, EVICTED)
            self._record(workload, "QuotaReserved", f"Quota reserved in ClusterQueue {queue}, {waited}")
        if not decision.pending_checks:
            if workload.condition(ADMITTED) is None:
                self._record(workload, "Admitted", f"Admitted by ClusterQueue {queue}, {waited_text(workload)}")
            await self._start({given.name: given.flavors for given in decision.podsets}, queued)

    async def _suspend(self, decision: Suspend, queued: QueuedWorkload) -> None:
        workload = queued.workload
        # Whoever has not been told runs on beside those who get its quota: that is asked for until somebody answers.
        await self._set_suspended(queued, True, {}, math.inf)
        message = await self._with_uid(decision)
        conditions = [
            condition(EVICTED, "True", decision.evicted_reason, message),
            condition(QUOTA_RESERVED, "False", "Pending", message),
            condition(ADMITTED, "False", "NoReservation", "The workload has no reservation"),
        ]
        if decision.preemptor:
            conditions.append(condition(PREEMPTED, "True", decision.reason, message))
        try:
            await self._write_status(workload, {"admission": None}, conditions, math.inf)
        except ApiError as error:
            if error.code != 404:  # nobody has made it; one that we made ourselves may not have been seen yet
                raise
            return
        self._record(workload, f"EvictedDueTo{decision.evicted_reason}", message)
        if decision.preemptor:
            self._record(workload, PREEMPTED, message)

    async def _with_uid(self, decision: Suspend) -> str:
        """The message of a preemption, with the uid of the Workload that it is for: that is made if it is not yet."""
        preemptor = self._find(WorkloadKey(decision.preemptor)) if decision.preemptor else None
        if preemptor is None or UNKNOWN_UID not in decision.message:
            return decision.message
        if not self._writer.uid_of(preemptor.workload):
            try:
                await self._writer.create(preemptor.workload)
            except ApiError:  # it is said when it is to be admitted
                return decision.message
        return decision.message.replace(UNKNOWN_UID, f"UID: {self._writer.uid_of(preemptor.workload)},", 1)

    def _record(self, workload: Workload, reason: str, note: str) -> None:
        self._events.record(workload, self._writer.uid_of(workload), reason, note)

    async def _announce(self, decision: Notice) -> None:
        namespace, _, name = decision.workload.partition("/")
        note = {"metadata": {"annotations": {QUOTA_ENDS: timestamp_text(decision.at)}}}
        await self._writer.insist("PATCH", self._writer.path(namespace, name), note)

    async def _write_status(
        self, workload: Workload, status: dict[str, Any], new: list[dict[str, str]], tries: float = MOST_TRIES
    ) -> None:
        self.versions.wrote(workload.key, await self._writer.write_status(workload, status, new, tries=tries))

    # Jobs and pods.

    async def _start(self, flavors: Mapping[str, Mapping[str, str]], queued: QueuedWorkload) -> None:
        """Let the job make its pods, or the pods that are there be scheduled, on the nodes of their flavors."""
        terms = {name: flavor_terms(self.tenants.flavors, given.values()) for name, given in flavors.items()}
        await self._set_suspended(queued, False, next(iter(terms.values()), ({}, []))[0] if len(terms) == 1 else {})
        for name, (selector, _) in terms.items():
            for key in queued.pods.get(name, ()):
                pod = self._find_pod(key)
                if pod is not None and is_gated(pod):
                    await self._open_gate(pod, selector)

    async def _open_gate(self, pod: Pod, node_selector: Mapping[str, str]) -> None:
        left = [{"name": gate.name} for gate in pod.spec.scheduling_gates or () if gate.name not in QUEUE_GATES]
        spec = {"schedulingGates": left or None, "nodeSelector": {**(pod.spec.node_selector or {}), **node_selector}}
        body = {"metadata": {"uid": pod.metadata.uid}, "spec": spec}
        path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
        try:
            await self._writer.insist("PATCH", path, body)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    async def _set_suspended(
        self, queued: QueuedWorkload, value: bool, node_selector: Mapping[str, str], tries: float = MOST_TRIES
    ) -> None:
        kind, namespace, name = queued.owner_key
        fields = _SUSPEND.get(kind)
        resource = next((found for (_, known), found in self.served.items() if known == kind), None)
        if fields is None or resource is None:
            return
        path = resource.path(namespace, name)
        try:
            job = msgspec.json.decode(await self._writer.insist("GET", path, None, tries))
            change = suspension(job, fields, value, node_selector)
            if change:
                await self._writer.insist("PATCH", path, change, tries)
        except ApiError as error:
            if error.code != 404:  # who is gone runs no more
                raise


def tree_of(tenants: TenantTable, workload: Workload) -> str:
    """The cohort at the top of those whose queues share the quota of a workload; without one, its queue."""
    local = tenants.local_queues.get(f"{workload.metadata.namespace}/{workload.spec.queue_name}")
    queue = tenants.cluster_queues.get(local.spec.cluster_queue) if local is not None else None
    if queue is None or not queue.spec.cohort_name:
        return f"queue {queue.metadata.name}" if queue is not None else ""
    name, seen = queue.spec.cohort_name, set[str]()
    while name not in seen and name in tenants.cohorts and tenants.cohorts[name].spec.parent_name:
        seen.add(name)
        name = tenants.cohorts[name].spec.parent_name
    return name


def is_to_resume(queued: QueuedWorkload, job: Any, pods: Iterable[Pod | None]) -> bool:
    """Whether a workload is admitted, and its job is suspended or some pod of its own held back all the same."""
    workload = queued.workload
    if workload.condition(ADMITTED) is None or workload.condition(EVICTED) is not None:
        return False
    spec = getattr(job, "spec", None)
    policy = getattr(spec, "run_policy", None)
    is_suspended = bool(getattr(spec, "suspend", False) or getattr(policy, "suspend", False))
    return is_suspended or any(pod is not None and is_gated(pod) for pod in pods)


def is_gated(pod: Pod) -> bool:
    return any(gate.name in QUEUE_GATES for gate in pod.spec.scheduling_gates or ())
