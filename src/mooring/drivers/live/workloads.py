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

from mooring.drivers.live.backoff import Backoff
from mooring.drivers.live.client import JSON, MERGE_PATCH, ApiError, Client
from mooring.drivers.live.discovery import Served
from mooring.drivers.live.dispatcher import Dispatcher, Lane
from mooring.drivers.live.informer import decode_head
from mooring.drivers.live.requests import encode
from mooring.drivers.live.workload_requests import assignment, condition, suspension
from mooring.drivers.live.workload_versions import WorkloadVersions
from mooring.model.api.kueue_workload import ADMITTED, EVICTED, QUOTA_ENDS, QUOTA_RESERVED, Workload
from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.decisions import Admit, Decision, Notice, Suspend
from mooring.model.events import Event
from mooring.model.keys import WorkloadKey
from mooring.model.queued.building import MADE_UID
from mooring.model.queued.gathering import QueuedWorkload
from mooring.model.queued.labels import QUEUE_GATES
from mooring.model.queued.workloads import flavor_terms
from mooring.state.tenants import TenantTable

PREEMPTED = "Preempted"
MOST_TRIES = 5
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
    ) -> None:
        """`find_pod` gives a pod as the world has it."""
        self._client, self._dispatcher = client, dispatcher
        self.tenants = tenants
        self._failed, self._tell, self._find_pod = failed, tell, find_pod
        self.served: Served = {}
        self._under_way: dict[str, asyncio.Future[bool]] = {}
        """By workload: what is being done to it, and then whether that was done."""
        self._stopping: dict[asyncio.Future[bool], str] = {}
        """Who is being told to stop, each with the tree of queues that shares its quota."""
        self._refused: dict[str, float] = {}
        """Who could not be told to stop, and when to try again."""
        self.versions = WorkloadVersions(
            lambda key: self.tenants.workloads.get(key), lambda key: key in self._under_way
        )

    def carry_out(self, decision: Admit | Suspend | Notice) -> None:
        queued = self.tenants.workloads.get(WorkloadKey(decision.workload))
        if queued is None:
            return
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
        workload = queued.workload
        if workload.metadata.uid.startswith(MADE_UID):
            await self._create(workload)
        admission = {
            "clusterQueue": decision.cluster_queue,
            "podSetAssignments": [assignment(given, workload) for given in decision.podsets],
        }
        conditions = [condition(QUOTA_RESERVED, "True", "QuotaReserved", decision.message)]
        conditions.append(condition(EVICTED, "False", "QuotaReserved", "Previously: evicted"))
        if not decision.pending_checks:
            conditions.append(condition(ADMITTED, "True", "Admitted", "The workload is admitted"))
        await self._write_status(workload, {"admission": admission}, conditions)
        if not decision.pending_checks:
            await self._start({given.name: given.flavors for given in decision.podsets}, queued)

    async def _suspend(self, decision: Suspend, queued: QueuedWorkload) -> None:
        workload = queued.workload
        conditions = [
            condition(EVICTED, "True", decision.reason, decision.message),
            condition(QUOTA_RESERVED, "False", "Pending", decision.message),
            condition(ADMITTED, "False", "NoReservation", "The workload has no reservation"),
        ]
        if decision.preemptor:
            conditions.append(condition(PREEMPTED, "True", decision.reason, decision.message))
        # Whoever has not been told runs on beside those who get its quota: that is asked for until somebody answers.
        await self._set_suspended(queued, True, {}, math.inf)
        try:
            await self._write_status(workload, {"admission": None}, conditions, math.inf)
        except ApiError as error:
            if error.code != 404:  # nobody has made it; one that we made ourselves may not have been seen yet
                raise

    async def _announce(self, decision: Notice) -> None:
        namespace, _, name = decision.workload.partition("/")
        note = {"metadata": {"annotations": {QUOTA_ENDS: timestamp_text(decision.at)}}}
        await self._insist("PATCH", self._path(namespace, name), note)

    # Workloads.

    async def _create(self, workload: Workload) -> None:
        metadata = workload.metadata
        body = {
            "apiVersion": self._version,
            "kind": "Workload",
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "annotations": metadata.annotations or {},
                "ownerReferences": msgspec.to_builtins(metadata.owner_references or []),
            },
            "spec": msgspec.to_builtins(workload.spec),
        }
        try:
            await self._insist("POST", self._path(metadata.namespace), body)
        except ApiError as error:
            if error.code != 409:  # it is there already: we have not seen it yet
                raise

    async def _write_status(
        self, workload: Workload, status: dict[str, Any], new: list[dict[str, str]], tries: float = MOST_TRIES
    ) -> None:
        said = {found["type"] for found in new}
        kept = [found for found in workload.status.conditions or () if found.type not in said]
        known = {found.type: found for found in workload.status.conditions or ()}
        new = [found for found in new if found["status"] == "True" or found["type"] in known]
        status["conditions"] = [*msgspec.to_builtins(kept), *new]
        path = f"{self._path(workload.metadata.namespace, workload.metadata.name)}/status"
        answer = decode_head(await self._insist("PATCH", path, {"status": status}, tries))
        self.versions.wrote(workload.key, int(answer.metadata.resource_version or 0))

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
            await self._insist("PATCH", path, body)
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
            job = msgspec.json.decode(await self._insist("GET", path, None, tries))
            change = suspension(job, fields, value, node_selector)
            if change:
                await self._insist("PATCH", path, change, tries)
        except ApiError as error:
            if error.code != 404:  # who is gone runs no more
                raise

    # Requests.

    @property
    def _version(self) -> str:
        found = self.served.get(("kueue.x-k8s.io", "Workload"))
        return found.api_version if found is not None else ""

    def _path(self, namespace: str, name: str = "") -> str:
        found = self.served.get(("kueue.x-k8s.io", "Workload"))
        if found is None:
            raise ApiError(404, "NotFound", "this cluster has no Workloads of kueue.x-k8s.io")
        return found.path(namespace, name)

    async def _insist(self, method: str, path: str, body: Any, tries: float = MOST_TRIES) -> bytes:
        """Send what may be sent twice without harm, at most so often; the answer."""
        backoff, content = Backoff(), None if body is None else encode(body)
        while True:
            tries -= 1
            try:
                return await self._client.request(method, path, content, MERGE_PATCH if method == "PATCH" else JSON)
            except ApiError as error:
                # Patches name no version: a conflict is only that somebody else was at it.
                is_passing = error.is_passing or (error.code == 409 and method == "PATCH")
                if not is_passing or tries <= 0:
                    raise
                async with self._dispatcher.aside():
                    await asyncio.sleep(backoff.next(error.retry_after))


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
