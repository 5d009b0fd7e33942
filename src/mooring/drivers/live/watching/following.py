"""All kinds of a cluster that scheduling reads, followed: one informer each, for those that the cluster has."""

import asyncio
import logging
from collections.abc import Callable

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.discovery import REQUIRED, Resource, Served, discover, missing
from mooring.drivers.live.checks import Check
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.watching.informer import Informer
from mooring.errors import MooringError

SYNC_SECONDS = 120.0
"""How long lists may take at the start before we go on without those that failed."""
REDISCOVER_SECONDS = 30.0
"""How often the cluster is asked whether it has kinds that it did not have before."""
WORTH_SAYING = frozenset({"PodGroup.scheduling.k8s.io", "ClusterQueue.kueue.x-k8s.io", "Workload.kueue.x-k8s.io"})
"""Kinds without which whole parts of the service are missing."""
_log = logging.getLogger(__name__)


class Informers:
    """The informers of one run: one for each kind that the cluster has."""

    def __init__(self, client: Client, cache: ObjectCache, on_change: Callable[[], None]) -> None:
        self._client, self._cache, self._on_change = client, cache, on_change
        self.informers: dict[tuple[str, str], Informer] = {}
        self.missing: list[str] = []
        self.is_synced = False
        self.served: Served = {}
        self._tasks: list[asyncio.Task[None]] = []

    def follow(self, served: Served) -> None:
        """Follow these kinds too; what a cluster once had, it is taken to have."""
        self.served.update(served)
        for key, resource in served.items():
            if key not in self.informers:
                self._start(key, resource)
        self.missing = missing(served)

    def _start(self, key: tuple[str, str], resource: Resource) -> None:
        informer = Informer(self._client, resource, self._cache, self._on_change)
        self.informers[key] = informer
        self._tasks.append(asyncio.ensure_future(informer.run()))

    def checks(self) -> list[Check]:
        """How each kind is followed; the cluster need not have those that only some people use."""
        found = [
            Check(f"informer-{each.resource.name}", each.problem, key in REQUIRED)
            for key, each in self.informers.items()
            if each.problem
        ]
        found.append(Check("informer-sync", "" if self.is_synced else "not every kind has been listed yet"))
        absent = [name for name in self.missing if name in WORTH_SAYING]
        if absent:
            found.append(Check("kinds", f"this cluster does not have {', '.join(absent)}", is_needed=False))
        return found

    def pods_version(self) -> int:
        """Up to which version pods have been followed."""
        return self.informers["", "Pod"].version

    async def synced(self) -> None:
        """Wait until every kind was listed once. One that we may not list, or that cannot be listed in time, is done
        without, but none that is needed: who does not see the pods there are would place others over them."""
        started = asyncio.get_running_loop().time()
        while True:
            open_ = [found for found in self.informers.values() if not found.synced.is_set()]
            needed = [found for found in open_ if (found.resource.kind.group, found.resource.kind.name) in REQUIRED]
            denied = [found for found in open_ if found.problem.startswith(("401", "403"))]
            for found in needed:
                if found in denied:
                    raise MooringError(f"{found.resource.name} cannot be listed: {found.problem}")
            if len(open_) == len(denied):
                break
            if not needed and asyncio.get_running_loop().time() - started > SYNC_SECONDS:
                _log.warning("starting without: %s", ", ".join(found.resource.name for found in open_))
                break
            await asyncio.sleep(0.02)
        self.is_synced = True

    async def look_again(self) -> None:
        """Find kinds that come later."""
        while True:
            await asyncio.sleep(REDISCOVER_SECONDS)
            try:
                self.follow(await discover(self._client))
                self._on_change()
            except ApiError:  # it is asked again
                pass
            except Exception:
                _log.exception("the kinds of this cluster could not be read")

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
