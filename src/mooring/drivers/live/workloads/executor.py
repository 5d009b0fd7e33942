"""Decisions about workloads that queue, carried out as Kueue's controllers would: Workloads, jobs, gates of pods.

What was admitted is written into the Workload, which is made if nobody has: after a restart it is read from there. So
nobody's admission is written before those who made room for it are known to be stopped: whoever dies in between leaves
no more admitted than there is quota.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from mooring.drivers.driver import NOT_ADMITTED
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.discovery import Resource, Served
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.api.requests import pod_path
from mooring.drivers.live.object_events import ObjectEvents
from mooring.drivers.live.pods.refusals import Refusals, refused_key
from mooring.drivers.live.workloads.conditions import WorkloadConditions
from mooring.drivers.live.workloads.finished import finished_condition, workloads_in
from mooring.drivers.live.workloads.requests import assignment, condition, waited_text
from mooring.drivers.live.workloads.templates import (
    Given,
    is_patched,
    is_set,
    merge_patch,
    restored,
    started,
    template_paths,
    with_value,
)
from mooring.drivers.live.workloads.versions import WorkloadVersions
from mooring.drivers.live.workloads.writer import MOST_TRIES, WORKLOAD, WorkloadWriter
from mooring.model.api.kueue_workload import ADMITTED, EVICTED, FINISHED, QUOTA_ENDS, QUOTA_RESERVED, Workload
from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod, Toleration
from mooring.model.decisions import PREEMPTED, Admit, Decision, Defer, Notice, Suspend, WorkloadDecision
from mooring.model.events import Event
from mooring.model.gangs.dialects.volcano_job import GROUP as VOLCANO_GROUP
from mooring.model.jobs.pod_sets import api_group
from mooring.model.keys import WorkloadKey
from mooring.model.pod_patch import PodPatch
from mooring.model.queued.gathering import QueuedWorkload
from mooring.model.queued.workloads import admission_patch
from mooring.state.tenants import TenantTable

UNKNOWN_UID = "UID: UNKNOWN,"
"""In the message of a preemption: whoever decided did not know the uid of a Workload that was yet to be made."""
_SUSPEND: Mapping[str, tuple[str, ...]] = {
    "Job": ("spec", "suspend"),
    "JobSet": ("spec", "suspend"),
    "TrainJob": ("spec", "suspend"),
    "AppWrapper": ("spec", "suspend"),
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
AT_ONCE = 16
"""How many pods of a workload are changed at the same time."""
_log = logging.getLogger(__name__)

CREATED_WORKLOAD = "CreatedWorkload"
"""Kueue's reason of the event on a job that names its Workload."""


class WorkloadExecutor:
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
        refusals: Refusals,
        not_amended: Callable[[Iterable[str]], None] = lambda pods: None,
    ) -> None:
        """`find_pod` and `find_job` give a pod, or a job by its kind and name, as the world has it; `refusals` says
        which workloads could not be told to stop, and when to try again; `not_amended` hears of pods that could not be
        changed."""
        self._dispatcher = dispatcher
        self.tenants = tenants
        self._failed, self._tell, self._find_pod, self._find_job = failed, tell, find_pod, find_job
        self.may_admit: Callable[[], bool] = lambda: True
        """Whether at this moment nobody else can admit."""
        self._under_way: dict[str, asyncio.Future[bool]] = {}
        """By workload: what is being done to it, and then whether that was done."""
        self._stopping: dict[asyncio.Future[bool], str] = {}
        """Who is being told to stop, each with the tree of queues that shares its quota."""
        self._refusals, self._not_amended = refusals, not_amended
        self._writer = WorkloadWriter(client, dispatcher)
        self._events = ObjectEvents(client, dispatcher)
        self._writer.on_made = lambda made: self._events.record_on_owners(
            made, CREATED_WORKLOAD, f"Created Workload: {made.key}"
        )
        self.versions = WorkloadVersions(self._find, lambda key: key in self._under_way, self._writer.forget)
        self.condition_writer = WorkloadConditions(
            self._writer,
            self._events,
            dispatcher,
            find=self._find,
            alone=self._alone,
            wrote=self.versions.wrote,
            vanished=self.versions.vanished,
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
            self.condition_writer.say(decision)
            return
        if not isinstance(decision, Notice):
            self.condition_writer.take_back(queued.workload.key)
        tree = tree_of(self.tenants, queued.workload)
        first: list[asyncio.Future[bool]] = []
        if isinstance(decision, Admit):
            first = [stopping for stopping, where in self._stopping.items() if where == tree]
        about = refused_key(decision, decision.workload)
        pause = self._refusals.pause(about, time.monotonic()) if isinstance(decision, Suspend) else None
        done = self._begin(
            decision.workload,
            lambda: self._carry_out(decision, queued, first),
            lambda why: self._fail(decision, why),
            pause or 0.0,
        )
        # Nobody is given the quota of one that could not be stopped before the world says that it is: others need not
        # wait for it.
        if isinstance(decision, Suspend) and pause is None:
            self._stopping[done] = tree
            done.add_done_callback(self._stopping.pop)

    def lost(self, key: WorkloadKey) -> None:
        """A workload is about to be gone: if its job is over, its Workload is to say so."""
        queued = self._find(key)
        if queued is not None:
            self._finish(queued.workload)
        self.condition_writer.forget(key)

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
        finished = finished_condition(workload, self._find_job, self._find_pod)
        if finished is not None:
            self.condition_writer.finish(workload, *finished)

    def resume(self, queued: QueuedWorkload) -> None:
        """Let a workload that was admitted before our time go on, should whoever admitted it have died over that."""
        admission = queued.workload.status.admission
        if admission is not None:
            given = {
                each.name: Given(
                    admission_patch(queued.workload, each, self.tenants.flavors.get),
                    each.topology_assignment is not None,
                    _own_tolerations(queued.workload, each.name),
                )
                for each in admission.pod_set_assignments
            }
            self._begin(queued.workload.key, lambda: self._set_suspended(queued, False, given), lambda why: None)

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
            self.condition_writer.arrived(news.workload)

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
            case Notice():
                await self._announce(decision)
        self._refusals.forget(refused_key(decision, decision.workload))

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
            patches = dict(decision.pod_patches)
            given = {
                each.name: Given(
                    patches.get(each.name, PodPatch()),
                    each.topology is not None,
                    _own_tolerations(workload, each.name),
                )
                for each in decision.podsets
            }
            await self._set_suspended(queued, False, given)

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

    async def _set_suspended(
        self, queued: QueuedWorkload, value: bool, given: Mapping[str, Given], tries: float = MOST_TRIES
    ) -> None:
        """Start a job with what its pod sets are given, or suspend it and restore its templates."""
        kind, namespace, name = queued.owner_key
        owners = queued.workload.metadata.owner_references or []
        group = api_group(owners[0].api_version) if owners else None
        found = (each for key, each in self.served.items() if key[1] == kind and group in (None, key[0]))
        fields, resource = _SUSPEND.get(kind), next(found, None)
        # Volcano has a kind Job as well, whose pods are held by gates.
        if fields is None or resource is None or group == VOLCANO_GROUP:
            return
        path = resource.path(namespace, name)
        try:
            job = await self._read(path, tries)
            if value:
                if not is_set(job, fields):
                    await self._writer.insist("PATCH", path, merge_patch(job, with_value(job, fields, True)), tries)
                if is_patched(job):
                    await self._restore_templates(path)
            elif is_set(job, fields):
                await self._forget_start(path, job)
                paths, workload = template_paths(self._find_job(*queued.owner_key)), queued.workload.metadata.name
                await self._change(path, lambda job: started(job, fields, workload, paths, given))
        except ApiError as error:
            if error.code != 404:  # a job that is gone runs no more
                raise

    async def _restore_templates(self, path: str) -> None:
        """Let the templates of a suspended job be what they were; what is refused is done at its next start."""
        try:
            job = await self._read(path)
            if restored(job) != job:
                await self._forget_start(path, job)
                await self._change(path, restored)
        except ApiError as error:
            if error.code == 404:
                raise
            _log.warning("the pod templates of %s could not be restored: %s", path, error.message)

    async def _forget_start(self, path: str, job: dict[str, Any]) -> None:
        """The template of a Job may change only while its status says that it has not started."""
        if job.get("kind") == "Job" and (job.get("status") or {}).get("startTime"):
            await self._writer.insist("PATCH", f"{path}/status", {"status": {"startTime": None}})

    async def _read(self, path: str, tries: float = MOST_TRIES) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(await self._writer.insist("GET", path, None, tries))
        return found

    async def _change(self, path: str, make: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Change a job as it is at this moment: lists are written as a whole, and others may write to it, too."""
        for tries_left in reversed(range(MOST_TRIES)):
            job = await self._read(path)
            change = merge_patch(job, make(job))
            if not change:
                return
            change.setdefault("metadata", {})["resourceVersion"] = job["metadata"]["resourceVersion"]
            try:
                await self._writer.insist("PATCH", path, change, at_version=True)
                return
            except ApiError as error:
                if error.code != 409 or not tries_left:
                    raise

    def amend_pods(self, workload: WorkloadKey, changes: Mapping[str, tuple[Pod, dict[str, Any]]]) -> None:
        """Write to pods of an admitted workload what the scheduler assumes of them: their gates open, on the nodes of
        their flavors and domains. It waits for the admission, and is not done without."""
        before = self._under_way.get(workload)

        async def amend() -> None:
            if before is not None and not before.result():
                raise ApiError(0, "NotAdmitted", NOT_ADMITTED)
            found = list(changes.values())
            for at in range(0, len(found), AT_ONCE):
                await asyncio.gather(*(self._amend(*each) for each in found[at : at + AT_ONCE]))

        def failed(why: str) -> None:
            if why != NOT_ADMITTED:
                _log.warning("pods of workload %s could not be changed: %s", workload, why)
                self._not_amended(changes)

        self._begin(workload, amend, failed)

    async def _amend(self, pod: Pod, change: dict[str, Any]) -> None:
        body = {**change, "metadata": {**change.get("metadata", {}), "uid": pod.metadata.uid}}
        try:
            await self._writer.insist("PATCH", pod_path(pod), body)
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _own_tolerations(workload: Workload, pod_set: str) -> list[Toleration]:
    return [
        toleration
        for each in workload.spec.pod_sets
        if each.name == pod_set
        for toleration in each.template.spec.tolerations or ()
    ]


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


def is_to_resume(queued: QueuedWorkload, job: Any) -> bool:
    """Whether a workload is admitted, and its job is suspended all the same."""
    workload = queued.workload
    if workload.condition(ADMITTED) is None or workload.condition(EVICTED) is not None:
        return False
    spec = getattr(job, "spec", None)
    policy = getattr(spec, "run_policy", None)
    return bool(getattr(spec, "suspend", False) or getattr(policy, "suspend", False))
