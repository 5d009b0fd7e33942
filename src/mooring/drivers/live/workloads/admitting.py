"""Who admits, of several active schedulers: whoever holds a Lease, for the whole cluster, whatever its part of it.

The others know Workloads as the world has them: who is admitted may start, with its flavors and domains; who is not is
shown to the scheduler as inactive, so that its pods are held back and nothing is decided on it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace as replace_fields

from msgspec.structs import replace

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.election import Election, ElectionSettings
from mooring.model.api.kueue_workload import ADMITTED, EVICTED, FINISHED, Workload
from mooring.model.events import Event, WorkloadLost, WorkloadSeen
from mooring.model.keys import WorkloadKey

LEASE = "mooring-admission"
QUEUES = ("kueue.x-k8s.io", "ClusterQueue")
LOOK_SECONDS = 1.0
"""How often it is looked whether the cluster has queues by now."""
DENIED_SECONDS = 60.0
"""How long who may not have the lease waits before it asks again."""
_log = logging.getLogger(__name__)


class Admitting:
    """One candidate for the lease: waits for it beside everything else, and keeps it."""

    def __init__(
        self,
        client: Client,
        settings: ElectionSettings,
        *,
        group: str,
        has_queues: Callable[[], bool],
        begin: Callable[[Callable[[], bool]], Awaitable[None]],
    ) -> None:
        """`group`: the lease by which we lead, empty without one; `begin` is called when it is for us to admit, with
        what says whether it still is."""
        self._client, self._election = client, Election(client, settings, group=group)
        self._has_queues, self._begin = has_queues, begin

    @property
    def is_admitting(self) -> bool:
        return self._election.is_leader

    async def run(self) -> None:
        """Admit as soon as nobody else does; raise LeadershipLost when that is over."""
        while not self._has_queues():
            await asyncio.sleep(LOOK_SECONDS)
        while True:
            try:
                await self._election.acquire()
                break
            except ApiError as error:
                if error.code not in (401, 403):
                    raise
                _log.error("jobs that queue are not admitted by this scheduler: %s", error.message)
                await asyncio.sleep(DENIED_SECONDS)
        self._client.fence(lambda: self._election.is_sure)
        _log.info("admitting jobs that queue")
        await asyncio.gather(self._begin(lambda: self._election.is_sure), self._election.hold())

    async def release(self) -> None:
        await self._election.release()


class WorkloadView:
    """What the scheduler is told of Workloads: all there is to know, or only who may start."""

    def __init__(self) -> None:
        self.is_admitting = False
        self._kept: dict[WorkloadKey, WorkloadSeen] = {}
        """As long as another admits: Workloads as they are."""

    def of(self, event: Event) -> Event:
        """What the scheduler is to hear of something that happened."""
        if self.is_admitting or not isinstance(event, WorkloadSeen | WorkloadLost):
            return event
        if isinstance(event, WorkloadLost):
            self._kept.pop(WorkloadKey(event.key), None)
            return event
        workload = event.workload.workload
        self._kept[workload.key] = event
        if may_start(workload):
            return event
        return WorkloadSeen(replace_fields(event.workload, workload=_asleep(workload)))

    def is_older(self, workload: Workload) -> bool:
        """Whether a Workload has changed since we saw it."""
        known = self._kept.get(workload.key)
        seen = known.workload.workload.metadata.resource_version if known is not None else ""
        return int(seen or 0) < int(workload.metadata.resource_version or 0)

    def take_over(self) -> list[WorkloadSeen]:
        """It is for us to admit: what there is to know."""
        self.is_admitting = True
        kept, self._kept = self._kept, {}
        return list(kept.values())


def may_start(workload: Workload) -> bool:
    """Whether a Workload keeps nobody from starting, whoever admits."""
    if workload.condition(FINISHED) is not None:
        return True  # it is over, and nothing is decided on it
    has_quota = workload.status.admission is not None and workload.condition(ADMITTED) is not None
    return has_quota and workload.condition(EVICTED) is None


def _asleep(workload: Workload) -> Workload:
    spec, status = replace(workload.spec, active=False), replace(workload.status, admission=None)
    return replace(workload, spec=spec, status=status)
