"""A cluster that is followed by watches: its state at any time, and pictures of it whenever something changed.

The state is kept up change by change, so that the map and the history follow at once however large the cluster is. What
waits and why needs decisions on all of it: these are made in another thread, on a picture, and less often where they
take long.
"""

import asyncio
import contextlib
import copy
import logging
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Self

import msgspec

from mooring.assembly import Assembly, assemble
from mooring.dashboard.picture import IN_CLUSTER, Picture, take_picture
from mooring.dashboard.watching import Watching
from mooring.drivers.live.api.client import Client
from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.api.discovery import REQUIRED, discover
from mooring.drivers.live.run import first_answer
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.watching.following import Informers
from mooring.drivers.live.watching.published import published_settings
from mooring.drivers.offline.reading import Inputs, take_in
from mooring.errors import MooringError
from mooring.model.events import Event
from mooring.report.nodes import NodeMap, node_map
from mooring.report.plans import PlanRow
from mooring.report.pools import configured_pools, pool_names

log = logging.getLogger(__name__)

GATHER_SECONDS = 0.1
"""How long changes are gathered before they are shown: pods of one job are bound within such a time."""
REST = 4
"""The pause after a picture is at least so many times as long as taking it: in large clusters they are rarer."""
MOST_STEPS = 256
"""Changes of the map that are kept: a page that missed more is sent all of it."""


class Following(Watching):
    """The latest picture of a cluster, and its state, which may be later. Begun by `follow`."""

    is_renewed = True

    def __init__(self, inputs: Inputs, assembly: Assembly, client: Client, every_seconds: float) -> None:
        """Nothing is drawn before `begin` has read the cluster."""
        self.client = client
        self._inputs, self._assembly, self._every = inputs, assembly, every_seconds
        self._cache = ObjectCache()
        self._changed, self._outdated = asyncio.Event(), asyncio.Event()
        self.informers = Informers(client, self._cache, self._changed.set)
        self._scheduler = assembly.new_scheduler(seed=inputs.seed)
        """Decides nothing: its cluster is what the pages show between two pictures."""
        self._map = NodeMap([], [], [], [], [], [], {})
        self.map_number = 0
        self._steps: list[tuple[int, frozenset[int] | None]] = []
        self._plans: list[PlanRow] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._taken = 0

    async def begin(self) -> Self:
        """Read the whole cluster, and follow it from there on."""
        await self.informers.synced()
        events = self._cache.everything()
        self._scheduler.cluster.observe(*events)
        self._map = self._draw_map()
        super().__init__(await self._take())
        self.history.note(time.time(), self._map, events)
        self.history.note_queues(time.time(), self.latest.queues)
        for work in (self._follow(), self._renew(), self.informers.look_again()):
            self._tasks.append(asyncio.ensure_future(work))
        return self

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.informers.stop()

    # The map and the history: with every change.

    @property
    def nodes(self) -> NodeMap:
        return self._map

    @property
    def plans(self) -> list[PlanRow]:
        return self.latest.plans if self._plans is None else self._plans

    @property
    def namespaces(self) -> set[str]:
        """Those that have pods or workloads, or exist without."""
        picture = self.latest.moment.picture
        there = {each.metadata.name for each in picture.namespaces}
        return there | {key.partition("/")[0] for key in self._scheduler.cluster.pods.records}

    def take_plans(self, plans: list[PlanRow]) -> None:
        """Take in what the scheduler of the cluster intends: it knows, and the picture only guesses."""
        self._plans = plans
        self.tell("picture", self.latest.number)

    def changed_since(self, number: int) -> list[int] | None:
        """The positions of nodes on the map that changed after a map of this number; None: take all of it."""
        if not self._steps or number < self._steps[0][0] - 1 or number > self.map_number:
            return [] if number == self.map_number else None
        found: set[int] = set()
        for later, rows in self._steps:
            if later > number:
                if rows is None:
                    return None
                found |= rows
        return sorted(found)

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._changed.clear()
            if self._cache.has_changes:
                try:
                    self._see(self._cache.changes())
                except MooringError as error:
                    log.warning("a change cannot be shown: %s", error)

    def _see(self, events: list[Event]) -> None:
        if not events:
            return
        self._scheduler.cluster.observe(*events)
        before, self._map = self._map, self._draw_map()
        changed = _changed_rows(before, self._map)
        if changed is None or changed:
            self.map_number += 1
            self._steps = [*self._steps[1 - MOST_STEPS :], (self.map_number, changed)]
        self.history.note(time.time(), self._map, events)
        self.tell("map", self.map_number)
        self._outdated.set()

    def _draw_map(self) -> NodeMap:
        cluster = self._scheduler.cluster
        return node_map(cluster, pool_names(cluster, None, configured_pools(self._scheduler)))

    # Pictures: as often as they can be taken.

    async def _renew(self) -> None:
        while True:
            await self._outdated.wait()
            self._outdated.clear()
            start = time.monotonic()
            try:
                self.latest = await self._take()
                self.fault = ""
                self.history.note_queues(time.time(), self.latest.queues)
                self.allocation.note(time.time(), self.latest.result.pools)
            except MooringError as error:
                if str(error) != self.fault:
                    log.warning("the cluster cannot be shown: %s", error)
                self.fault = str(error)
            self.tell("picture", self.latest.number)
            pause = time.monotonic() - start
            await asyncio.sleep(pause * REST if pause > self._every / REST else self._every)

    async def _take(self) -> Picture:
        """Decide on the cluster as it is now, beside what goes on."""
        manifests = self._cache.picture()
        if self._assembly.colocation is not None:  # what nodes lend is written into them
            manifests.nodes = [copy.copy(node) for node in manifests.nodes]
        self._taken += 1
        inputs = replace(self._inputs, now=time.time())

        def take() -> Picture:
            loaded = take_in(inputs, self._assembly, [manifests], [])
            return take_picture(self._taken, "the cluster", loaded)

        return await asyncio.to_thread(take)


def _changed_rows(before: NodeMap, after: NodeMap) -> frozenset[int] | None:
    """The positions of nodes that are different; None where other nodes are on the map."""
    if before.names != after.names or list(before.allocated) != list(after.allocated):
        return None
    columns: list[tuple[Sequence[object], Sequence[object]]] = [
        (before.pools, after.pools),
        (before.zones, after.zones),
        (before.racks, after.racks),
        (before.states, after.states),
        (before.pods, after.pods),
        *zip(before.allocated.values(), after.allocated.values(), strict=True),
    ]
    different = (pair for pair in columns if pair[0] != pair[1])
    return frozenset(at for old, new in different for at in range(len(new)) if old[at] != new[at])


@asynccontextmanager
async def follow(inputs: Inputs, every_seconds: float) -> AsyncIterator[Following]:
    """Connect to a cluster, read it, and follow it until the block ends."""
    kubeconfig = None if inputs.kubeconfig == IN_CLUSTER else inputs.kubeconfig
    published = None
    if inputs.config is None:
        published = await asyncio.to_thread(published_settings, kubeconfig, inputs.context)
    assembly = assemble(published or inputs.config, plugin_files=inputs.plugins).taking_on(inputs.schedulers)
    connection = await connect(kubeconfig, inputs.context)
    async with Client(connection, "mooring-dashboard") as client:
        served = await first_answer(lambda: discover(client), connection)
        for group, name in REQUIRED:
            if (group, name) not in served:
                raise MooringError(f"{client.server}: expected a Kubernetes API, found one without {name}s")
        following = Following(inputs, assembly, client, every_seconds)
        following.informers.follow(served)
        try:
            yield await following.begin()
        finally:
            await following.stop()


_decode_plans = msgspec.json.Decoder(list[PlanRow]).decode


async def read_plans(following: Following) -> None:
    """Take in plans as the scheduler that started us writes them to standard input: a line of JSON each time."""
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        with contextlib.suppress(msgspec.MsgspecError):
            following.take_plans(_decode_plans(line))
