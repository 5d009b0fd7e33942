"""Decisions about workloads that queue, carried out as Kueue's controllers would: Workloads, jobs, gates of pods.

What was admitted is written into the Workload, which is made if nobody has: after a restart it is read from there.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mooring.drivers.live.backoff import Backoff
from mooring.drivers.live.client import MERGE_PATCH, ApiError, Client
from mooring.drivers.live.discovery import Served
from mooring.drivers.live.dispatcher import Dispatcher, Lane
from mooring.drivers.live.requests import encode
from mooring.model.api.kueue_workload import ADMITTED, EVICTED, QUOTA_ENDS, QUOTA_RESERVED, Workload
from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.decisions import Admit, Decision, Notice, PodSetFlavors, Suspend
from mooring.model.queued.building import MADE_UID
from mooring.model.queued.gathering import QueuedWorkload
from mooring.model.queued.labels import QUEUE_GATES
from mooring.model.queued.workloads import flavor_terms
from mooring.model.values.requests import pod_requests
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
_MILLI = 10**6
"""Requests are counted in billionths."""
PODS = "pods"
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
        find_pod: Callable[[str], Pod | None],
    ) -> None:
        """`find_pod` gives a pod as the world has it."""
        self._client, self._dispatcher = client, dispatcher
        self.tenants = tenants
        self._failed, self._find_pod = failed, find_pod
        self.served: Served = {}
        self._under_way: dict[str, asyncio.Future[bool]] = {}
        """By workload: what is being done to it, and then whether that was done."""

    def carry_out(self, decision: Admit | Suspend | Notice) -> None:
        queued = self.tenants.workloads.get(decision.workload)  # type: ignore[call-overload]
        if queued is None:
            return
        before = self._under_way.get(decision.workload)
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._under_way[decision.workload] = done
        self._dispatcher.submit(Lane.EVICT, lambda: self._run(decision, queued, before, done))

    async def settled(self, workload: str) -> bool:
        """Wait until what was decided about a workload is done; whether it was."""
        found = self._under_way.get(workload)
        return True if found is None else await found

    async def _run(
        self,
        decision: Admit | Suspend | Notice,
        queued: QueuedWorkload,
        before: "asyncio.Future[bool] | None",
        done: "asyncio.Future[bool]",
    ) -> None:
        if before is not None:
            await before
        problem = ""
        try:
            match decision:
                case Admit():
                    await self._admit(decision, queued)
                case Suspend():
                    await self._suspend(decision, queued)
                case Notice():
                    await self._announce(decision)
        except ApiError as error:
            problem = error.message
        except Exception as error:  # of ours: whoever waits for this must hear that it was not done
            _log.exception("workload %s: %s was given up", decision.workload, type(decision).__name__)
            problem = f"error: {type(error).__name__}: {error}"
        if self._under_way.get(decision.workload) is done:
            del self._under_way[decision.workload]
        done.set_result(not problem)
        if problem:
            _log.warning("workload %s: %s was refused: %s", decision.workload, type(decision).__name__, problem)
            self._failed(decision, problem)

    # What is decided.

    async def _admit(self, decision: Admit, queued: QueuedWorkload) -> None:
        workload = queued.workload
        if workload.metadata.uid.startswith(MADE_UID):
            await self._create(workload)
        admission = {
            "clusterQueue": decision.cluster_queue,
            "podSetAssignments": [_assignment(given, workload) for given in decision.podsets],
        }
        conditions = [_condition(QUOTA_RESERVED, "True", "QuotaReserved", decision.message)]
        conditions.append(_condition(EVICTED, "False", "QuotaReserved", "Previously: evicted"))
        if not decision.pending_checks:
            conditions.append(_condition(ADMITTED, "True", "Admitted", "The workload is admitted"))
        await self._write_status(workload, {"admission": admission}, conditions)
        if not decision.pending_checks:
            await self._start(decision, queued)

    async def _suspend(self, decision: Suspend, queued: QueuedWorkload) -> None:
        workload = queued.workload
        conditions = [
            _condition(EVICTED, "True", decision.reason, decision.message),
            _condition(QUOTA_RESERVED, "False", "Pending", decision.message),
            _condition(ADMITTED, "False", "NoReservation", "The workload has no reservation"),
        ]
        if decision.preemptor:
            conditions.append(_condition(PREEMPTED, "True", decision.reason, decision.message))
        await self._set_suspended(queued, True, {})
        if not workload.metadata.uid.startswith(MADE_UID):
            await self._write_status(workload, {"admission": None}, conditions)

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

    async def _write_status(self, workload: Workload, status: dict[str, Any], new: list[dict[str, str]]) -> None:
        said = {found["type"] for found in new}
        kept = [found for found in workload.status.conditions or () if found.type not in said]
        known = {found.type: found for found in workload.status.conditions or ()}
        new = [found for found in new if found["status"] == "True" or found["type"] in known]
        status["conditions"] = [*msgspec.to_builtins(kept), *new]
        path = f"{self._path(workload.metadata.namespace, workload.metadata.name)}/status"
        await self._insist("PATCH", path, {"status": status})

    # Jobs and pods.

    async def _start(self, decision: Admit, queued: QueuedWorkload) -> None:
        """Let the job make its pods, or the pods that are there be scheduled, on the nodes of their flavors."""
        terms = {given.name: flavor_terms(self.tenants.flavors, given.flavors.values()) for given in decision.podsets}
        await self._set_suspended(queued, False, next(iter(terms.values()), ({}, []))[0] if len(terms) == 1 else {})
        for given in decision.podsets:
            for key in queued.pods.get(given.name, ()):
                pod = self._find_pod(key)
                if pod is not None and any(gate.name in QUEUE_GATES for gate in pod.spec.scheduling_gates or ()):
                    await self._open_gate(pod, terms[given.name][0])

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

    async def _set_suspended(self, queued: QueuedWorkload, value: bool, node_selector: Mapping[str, str]) -> None:
        kind, namespace, name = queued.owner_key
        fields = _SUSPEND.get(kind)
        resource = next((found for (_, known), found in self.served.items() if known == kind), None)
        if fields is None or resource is None:
            return
        path = resource.path(namespace, name)
        try:
            job = msgspec.json.decode(await self._client.get(path))
        except ApiError as error:
            if error.code == 404:
                return
            raise
        inside: Any = job
        for field in fields[:-1]:
            inside = inside.get(field) or {}
        if bool(inside.get(fields[-1])) == value:
            return
        change: dict[str, Any] = {}
        here = change
        for field in fields[:-1]:
            here = here.setdefault(field, {})
        here[fields[-1]] = value
        if kind == "Job" and not value and node_selector and not (job.get("status") or {}).get("startTime"):
            change["spec"]["template"] = {"spec": {"nodeSelector": dict(node_selector)}}
        await self._insist("PATCH", path, change)

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

    async def _insist(self, method: str, path: str, body: Any) -> None:
        """Send what may be sent twice without harm."""
        backoff = Backoff()
        for last in range(MOST_TRIES):
            try:
                await self._client.request(
                    method, path, encode(body), MERGE_PATCH if method == "PATCH" else "application/json"
                )
                return
            except ApiError as error:
                if not error.is_passing or last == MOST_TRIES - 1:
                    raise
                await asyncio.sleep(backoff.next(error.retry_after))


def _assignment(given: PodSetFlavors, workload: Workload) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": given.name,
        "count": given.count,
        "flavors": dict(given.flavors),
        "resourceUsage": _usage(given, workload),
    }
    topology = given.topology
    if topology is not None:
        if workload.api_version.endswith("v1beta1"):
            domains = [{"values": list(each.values), "count": each.count} for each in topology.domains]
            found["topologyAssignment"] = {"levels": list(topology.levels), "domains": domains}
        else:
            columns = [
                {"individual": {"roots": [each.values[level] for each in topology.domains]}}
                for level in range(len(topology.levels))
            ]
            counts = {"individual": [each.count for each in topology.domains]}
            part = {"domainCount": len(topology.domains), "valuesPerLevel": columns, "podCounts": counts}
            found["topologyAssignment"] = {"levels": list(topology.levels), "slices": [part]}
    return found


def _usage(given: PodSetFlavors, workload: Workload) -> dict[str, str]:
    """What the pods of a set take of their quota: after a restart, this is what they are known to have."""
    pod_set = next((found for found in workload.spec.pod_sets if found.name == given.name), None)
    if pod_set is None:
        return {}
    needs = pod_requests(Pod(spec=pod_set.template.spec))
    millis = {name: -(-needs.get(name, 0) * given.count // _MILLI) for name in given.flavors}
    return {
        name: str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
        for name, amount in millis.items()
        if name != PODS
    } | ({PODS: str(given.count)} if PODS in given.flavors else {})


def _condition(type_: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp_text(time.time()),
    }
