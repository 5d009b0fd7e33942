"""Decisions about pods, carried out: bind, evict, and say why somebody waits. Nothing here decides."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

from mooring.drivers.driver import NOT_ADMITTED
from mooring.drivers.live.api.backoff import Backoff
from mooring.drivers.live.api.client import JSON, MERGE_PATCH, STRATEGIC_PATCH, ApiError, Client
from mooring.drivers.live.api.connection import UNAUTHORIZED
from mooring.drivers.live.api.discovery import Served
from mooring.drivers.live.api.dispatcher import Dispatcher, Lane
from mooring.drivers.live.api.requests import (
    binding,
    cut_gpu,
    deletion,
    eviction,
    pod_path,
    preempted_status,
    resizing,
    waiting_status,
)
from mooring.drivers.live.pods.binder import BOUND, Answer, Outcome, Tried, bind, decode_pod, find_out
from mooring.drivers.live.pods.cutting import wait_for_instances
from mooring.drivers.live.pods.device_claims import deallocate, release_claims, reserve_claims
from mooring.drivers.live.pods.event_recorder import EventRecorder, reference
from mooring.drivers.live.pods.extenders import ExtenderClient
from mooring.drivers.live.pods.volumes import bind_volumes
from mooring.drivers.live.sharing.node_use import NodeUse
from mooring.drivers.live.watching.informer import decode_head
from mooring.engine.profile import Profile
from mooring.model.api.pods import Pod
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.decisions import Bind, Decision, Evict, Partition, Resize, Wait
from mooring.plugins.volume_binding import VolumeBinding, VolumeBindingArgs

MOST_TRIES = 8
LOOK_SECONDS = 0.05
"""How often it is looked whether the bind of a pod that is to be evicted is done."""
CUT_SECONDS = 120.0
"""How long the agent of a node may take to cut its GPUs."""
UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
_log = logging.getLogger(__name__)

Failed = Callable[[Decision, str], None]
Bound = Callable[[Bind, Pod, Answer], None]


class Waiting(NamedTuple):
    """What the PodScheduled condition of a pod is to say."""

    reason: str
    message: str
    nominated_node: str = ""


class PodExecutor:
    """Sends what was decided about pods, and tells what became of it."""

    def __init__(
        self,
        client: Client,
        dispatcher: Dispatcher,
        recorder: EventRecorder,
        *,
        failed: Failed,
        bound: Bound,
        find: Callable[[str], Pod | None],
        admitted: Callable[[str], Awaitable[bool]],
        profiles: Callable[[], Mapping[str, Profile]] = dict,
    ) -> None:
        """`failed` is told of every decision that the world refused, `bound` what became of every bind; `find` gives
        a pod as it was last seen; `admitted` waits until what was decided about a workload is done; `profiles` are
        those that decide now, by schedulerName."""
        self._client, self._dispatcher, self._recorder = client, dispatcher, recorder
        self._failed, self._bound, self._find, self._admitted = failed, bound, find, admitted
        self.served: Served = {}
        self._profiles = profiles
        self.extenders: ExtenderClient | None = None
        self.node_use = NodeUse()
        """Says when a bind may be sent."""
        self._preparing: set[asyncio.Task[None]] = set()
        self._deallocating: set[str] = set()
        """The claims whose devices are being freed."""
        self._binding: set[str] = set()
        """The pods whose binds are under way."""
        self._to_say: OrderedDict[str, Waiting] = OrderedDict()
        """The last word on each pod that waits, until it is written."""

    # Binding.

    def bind(self, decision: Bind, pod: Pod, claims: list[PersistentVolumeClaim], workload: str) -> None:
        """Bind a pod, after the volumes of these claims of its, and after its workload was admitted."""
        self._to_say.pop(decision.pod, None)
        self._binding.add(decision.pod)
        if not claims and not workload and not decision.claims and not decision.instances:
            self._dispatcher.submit(Lane.BIND, partial(self._begin_to_bind, decision, pod))
            return
        preparing = self._prepare(decision, pod, claims, workload)
        task = asyncio.ensure_future(self._answered_for(decision, preparing))
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)

    async def _answered_for(self, decision: Bind | Evict | Resize, work: Awaitable[None]) -> None:
        """A fault of ours must not leave the scheduler to wait for something that nobody does."""
        try:
            await work
        except Exception as error:
            _log.exception("%s of pod %s was given up", type(decision).__name__, decision.pod)
            if isinstance(decision, Bind):
                self._binding.discard(decision.pod)
            self._failed(decision, f"error: {type(error).__name__}: {error}")

    async def _prepare(self, decision: Bind, pod: Pod, claims: list[PersistentVolumeClaim], workload: str) -> None:
        """This may take minutes, so that it takes no place among the requests in flight."""
        if workload and not await self._admitted(workload):
            self._binding.discard(decision.pod)
            self._failed(decision, NOT_ADMITTED)
            return
        plugin, problem = "VolumeBinding", ""
        if claims:
            problem = await bind_volumes(self._client, claims, decision.node, self._volume_seconds(pod))
        if decision.claims and not problem:
            plugin, problem = "DynamicResources", await self._reserve_devices(decision, pod)
        if decision.instances and not problem:
            plugin, problem = "GpuSharing", await wait_for_instances(self._client, decision, CUT_SECONDS)
        if not problem:
            self._dispatcher.submit(Lane.BIND, partial(self._begin_to_bind, decision, pod))
            return
        await self._release_devices(decision, pod)
        self._binding.discard(decision.pod)
        note = f'running PreBind plugin "{plugin}": {problem}'
        self._recorder.record(
            pod, "FailedScheduling", "Scheduling", note, scheduler=pod.spec.scheduler_name, warning=True
        )
        self._write_condition(decision.pod, Waiting(SCHEDULER_ERROR, note))
        self._failed(decision, problem)

    def _volume_seconds(self, pod: Pod) -> float:
        """How long the volumes of a pod may take, as VolumeBinding has it in its profile."""
        profile = self._profiles().get(pod.spec.scheduler_name)
        plugins = profile.plugins if profile is not None else ()
        args = next((plugin.args for plugin in plugins if isinstance(plugin, VolumeBinding)), VolumeBindingArgs())
        return float(args.bind_timeout_seconds)

    async def _reserve_devices(self, decision: Bind, pod: Pod) -> str:
        resource = self.served.get(("resource.k8s.io", "ResourceClaim"))
        if resource is None:
            return "this cluster has no ResourceClaims"
        return await reserve_claims(self._client, resource, pod, decision.claims)

    async def _release_devices(self, decision: Bind, pod: Pod) -> None:
        """A pod is not bound after all: let others have the devices that were written down for it."""
        resource = self.served.get(("resource.k8s.io", "ResourceClaim"))
        if decision.claims and resource is not None:
            problem = await release_claims(self._client, resource, pod, decision.claims)
            if problem:
                _log.warning("devices of pod %s, which was not bound, could not be released: %s", decision.pod, problem)

    def deallocate(self, pod: Pod, claim: str) -> None:
        """Free the devices of a claim (namespace/name) that keep a pod from nodes that it fits."""
        if claim not in self._deallocating:
            self._deallocating.add(claim)
            self._dispatcher.submit(Lane.EVICT, lambda: self._deallocate(pod, claim))

    async def _deallocate(self, pod: Pod, claim: str) -> None:
        try:
            resource = self.served.get(("resource.k8s.io", "ResourceClaim"))
            problem = "" if resource is None else await deallocate(self._client, resource, pod, claim)
            if problem:
                _log.warning("claim %s of pod %s could not be freed: %s", claim, pod.key, problem)
        finally:
            self._deallocating.discard(claim)

    def _begin_to_bind(self, decision: Bind, pod: Pod) -> Awaitable[None] | None:
        """Send a bind at once if nobody has to be asked before; only one that does not simply succeed takes a task."""
        if self.extenders is None and self.node_use.may_bind(decision, pod):
            answered = partial(self._answered_at_once, decision, pod, asyncio.get_running_loop().time())
            try:
                if self._client.post_at_once(pod_path(pod, "binding"), binding(pod, decision), answered):
                    return None
            except Exception:  # of ours: the other way meets it, too, and tells
                _log.debug("pod %s cannot be bound at once", decision.pod, exc_info=True)
        return self._bind(decision, pod)

    def _answered_at_once(self, decision: Bind, pod: Pod, sent: float, error: ApiError | None) -> None:
        if error is not None:
            tried = Tried(error, sent) if error.code != UNAUTHORIZED else None  # who tries again renews credentials
            self._dispatcher.go_on(Lane.BIND, self._bind(decision, pod, tried))
            return
        try:
            self._became(decision, pod, BOUND)
        except Exception:
            _log.exception("pod %s was bound, but not everybody was told", decision.pod)
        finally:
            self._dispatcher.done(Lane.BIND)

    async def _bind(self, decision: Bind, pod: Pod, tried: Tried | None = None) -> None:
        try:
            answer = await self._ask_to_bind(decision, pod, tried)
        except Exception as error:  # of ours: the pod may be bound all the same
            _log.exception("binding pod %s was given up", decision.pod)
            answer = Answer(Outcome.REFUSED, f"error: {type(error).__name__}: {error}")
            answer = await find_out(self._client, pod, decision.node) or answer
        if answer.outcome is Outcome.REFUSED:
            await self._release_devices(decision, pod)
        self._became(decision, pod, answer)

    def _became(self, decision: Bind, pod: Pod, answer: Answer) -> None:
        """Tell everybody what became of a bind."""
        self._binding.discard(decision.pod)
        scheduler = pod.spec.scheduler_name
        if answer.outcome is Outcome.BOUND:
            note = f"Successfully assigned {decision.pod} to {decision.node}"
            self._recorder.record(pod, "Scheduled", "Binding", note, scheduler=scheduler)
        elif answer.outcome is not Outcome.GONE:
            note = f"binding rejected: {answer.message}"
            self._recorder.record(pod, "FailedScheduling", "Scheduling", note, scheduler=scheduler, warning=True)
            if answer.outcome is Outcome.REFUSED:
                self._write_condition(decision.pod, Waiting(SCHEDULER_ERROR, note))
        self._bound(decision, pod, answer)
        if answer.outcome is not Outcome.BOUND:
            self._failed(decision, answer.message)

    async def _ask_to_bind(self, decision: Bind, pod: Pod, tried: Tried | None) -> Answer:
        async def may_send() -> bool:
            return await self.node_use.wait_to_bind(decision, pod)

        answer = None
        if tried is None and self.extenders is not None and await may_send():
            await self._client.until_may_write()
            answer = await self.extenders.bind(pod, decision.node)
        if answer is None:
            return await bind(self._client, self._dispatcher, pod, decision, may_send, tried)
        if answer.outcome is Outcome.REFUSED:  # or it has bound the pod, and we have not heard of it
            return await find_out(self._client, pod, decision.node) or answer
        return answer

    # Evicting.

    def evict(self, decision: Evict, pod: Pod, preemptor: Pod | None, workload: str) -> None:
        """Evict a pod, after its workload was suspended if that is why: else its controller would make another."""
        self._dispatcher.submit(
            Lane.EVICT, lambda: self._answered_for(decision, self._evict(decision, pod, preemptor, workload))
        )

    async def _evict(self, decision: Evict, pod: Pod, preemptor: Pod | None, workload: str) -> None:
        if workload:
            async with self._dispatcher.aside():
                is_suspended = await self._admitted(workload)
            if not is_suspended:
                self._failed(decision, "its workload was not suspended")
                return
        if not await self._has_node(decision, pod):
            self._failed(decision, "it has no node")
            return
        scheduler = preemptor.spec.scheduler_name if preemptor is not None else pod.spec.scheduler_name
        requests = [("DELETE", pod_path(pod), deletion(pod), JSON)]
        if decision.via == "eviction":
            requests = [("POST", pod_path(pod, "eviction"), eviction(pod), JSON)]
        elif decision.preemptor:
            status = preempted_status(pod, scheduler, time.time())
            requests.insert(0, ("PATCH", pod_path(pod, "status"), status, STRATEGIC_PATCH))
        for request in requests:
            problem = await self._insist(*request, while_there=pod)
            if problem is not None and problem.code not in (404, 409):  # else it is out of the way
                if decision.via == "eviction":
                    _log.warning("pod %s was not evicted: %s", decision.pod, problem.message)
                    self._recorder.record(
                        pod, "EvictionRefused", "Moving", problem.message, scheduler=scheduler, warning=True
                    )
                self._failed(decision, problem.message)
                return
        if decision.preemptor:
            related = reference(preemptor) if preemptor is not None else None
            self._recorder.record(pod, "Preempted", "Preempting", decision.reason, scheduler=scheduler, related=related)
        elif decision.via == "eviction":
            self._recorder.record(pod, "Evicted", "Moving", decision.reason, scheduler=scheduler)

    async def _has_node(self, decision: Evict, pod: Pod) -> bool:
        """Whether a pod that is to be evicted is bound: what was decided on it may not have been carried out, and a pod
        that never ran is not deleted."""
        if decision.pod in self._binding:
            async with self._dispatcher.aside():
                while decision.pod in self._binding:
                    await asyncio.sleep(LOOK_SECONDS)
        if pod.spec.node_name:
            return True
        backoff = Backoff()
        for _ in range(MOST_TRIES):
            try:
                found = decode_pod(await self._client.get(pod_path(pod)))
                return found.metadata.uid != pod.metadata.uid or bool(found.spec.node_name)
            except ApiError as error:
                if error.code == 404:
                    return True  # it is out of the way
                async with self._dispatcher.aside():
                    await asyncio.sleep(backoff.next(error.retry_after))
        return False

    async def _insist(
        self, method: str, path: str, body: bytes, content_type: str = JSON, while_there: Pod | None = None
    ) -> ApiError | None:
        """Send what may be sent twice without harm, until somebody answers; what was refused comes back.

        A conflict means that there is another pod of its name; where one is given, it is looked at whether that is so.
        """
        backoff = Backoff()
        error: ApiError | None = None
        for _ in range(MOST_TRIES):
            try:
                await self._client.request(method, path, body, content_type)
                return None
            except ApiError as refused:
                error = refused
                if error.is_budget:
                    return error
                if not error.is_passing and not (error.code == 409 and await self._is_there(while_there)):
                    return error
                if error.code == 429:
                    self._dispatcher.pause(error)
                await asyncio.sleep(backoff.next(error.retry_after))
        return ApiError(0, error.reason, error.message) if error is not None else None

    async def _is_there(self, pod: Pod | None) -> bool:
        """Whether a pod is there as far as anybody knows, and nobody has deleted it."""
        if pod is None:
            return False
        try:
            found = decode_head(await self._client.get(pod_path(pod))).metadata
        except ApiError as error:
            return error.code != 404
        return found.uid == pod.metadata.uid and found.deletion_timestamp is None

    # Cutting.

    def cut(self, decision: Partition) -> None:
        """Tell the agent on a node how one of its GPUs is to be cut."""
        self._dispatcher.submit(Lane.BIND, lambda: self._cut(decision))

    async def _cut(self, decision: Partition) -> None:
        problem = await self._insist("PATCH", f"/api/v1/nodes/{decision.node}", cut_gpu(decision), MERGE_PATCH)
        if problem is not None:
            _log.warning(
                "GPU %d of node %s could not be told to be cut: %s", decision.gpu, decision.node, problem.message
            )
            self._failed(decision, problem.message)

    # Resizing.

    def resize(self, decision: Resize, pod: Pod) -> None:
        """Give the containers of a running pod other amounts; its kubelet says what becomes of that."""
        self._dispatcher.submit(Lane.EVICT, lambda: self._answered_for(decision, self._resize(decision, pod)))

    async def _resize(self, decision: Resize, pod: Pod) -> None:
        problem = await self._insist("PATCH", pod_path(pod, "resize"), resizing(pod, decision), STRATEGIC_PATCH)
        scheduler = pod.spec.scheduler_name
        if problem is None:
            note = f"Resized in place on {pod.spec.node_name}"
            self._recorder.record(pod, "Resized", "Resizing", note, scheduler=scheduler)
            return
        _log.warning("pod %s was not resized: %s", decision.pod, problem.message)
        if problem.code != 404:
            note = f"resize rejected: {problem.message}"
            self._recorder.record(pod, "ResizeRefused", "Resizing", note, scheduler=scheduler, warning=True)
        self._failed(decision, problem.message)

    # Waiting.

    def say(self, decision: Wait, pod: Pod, *, in_status: bool = True) -> None:
        """Write why a pod waits as an event, and into its status; only the last word counts."""
        self._recorder.record(
            pod,
            "FailedScheduling",
            "Scheduling",
            decision.message,
            scheduler=pod.spec.scheduler_name,
            warning=True,
        )
        if in_status:
            reason = SCHEDULER_ERROR if decision.message.startswith("error: ") else UNSCHEDULABLE
            self._write_condition(decision.pod, Waiting(reason, decision.message, decision.nominated_node))

    def _write_condition(self, key: str, waiting: Waiting) -> None:
        if key not in self._to_say:
            self._dispatcher.submit(Lane.STATUS, self._say_next)
        self._to_say[key] = waiting

    async def _say_next(self) -> None:
        if not self._to_say:
            return
        key, waiting = self._to_say.popitem(last=False)
        pod = self._find(key)
        if pod is None or pod.spec.node_name:
            return
        body = waiting_status(pod, waiting.reason, waiting.message, waiting.nominated_node, time.time())
        if body is not None:
            problem = await self._insist("PATCH", pod_path(pod, "status"), body, STRATEGIC_PATCH)
            if problem is not None and problem.is_passing and key not in self._to_say:
                self._to_say[key] = waiting  # who waits is not decided on again for no reason: nobody else says it
                self._dispatcher.submit(Lane.STATUS, self._say_next)
            elif problem is not None and problem.code not in (404, 409):
                _log.warning("the status of pod %s could not be written: %s", key, problem.message)
