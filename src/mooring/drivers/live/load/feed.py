"""All sources of load of a run: each is read in a task of its own, and what it reports becomes events.

No decision waits for a source. A report stays until the next one of its node, and has an age. What becomes of reports
that are old is said by the configuration; a source that fails is shown by readiness, the log and metrics.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack

from mooring.config.load_sources import LoadSources
from mooring.drivers.live.api.client import Client
from mooring.drivers.live.checks import Check
from mooring.drivers.live.load.exporters import DcgmSource
from mooring.drivers.live.load.metrics_server import MetricsServerSource
from mooring.drivers.live.load.node_metrics import NodeMetricSource
from mooring.drivers.live.load.prometheus import FindNode, PrometheusSource
from mooring.drivers.live.load.source import PolledSource, ReportKey, SourceFailed
from mooring.drivers.live.load.standing import Standing
from mooring.errors import MooringError
from mooring.model.events import Event, NodeLoadLost, NodeLoadSeen
from mooring.model.load.reports import LoadReport
from mooring.observe.metrics import Metrics

SLICE = 100
"""How many reports are told at a time: between two slices, pods are bound."""
PAUSE_SECONDS = 0.005
LOOK_SECONDS = 1.0
"""How often it is looked for reports that have become old, and for NodeMetrics that came."""
FIRST_LIST_SECONDS = 10.0
"""How long the first list of NodeMetrics is waited for."""
_log = logging.getLogger(__name__)


class LoadFeed:
    """The sources of one configuration at a time, and what they last reported."""

    def __init__(
        self, new_client: Callable[[], Client], tell: Callable[[list[Event]], None], find_node: FindNode
    ) -> None:
        """`new_client` makes a client whose answers are not counted: a metrics API that fails must not slow binds."""
        self._new_client, self._tell, self._find_node = new_client, tell, find_node
        self._settings: LoadSources | None = None
        self._standings: list[Standing] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._open = AsyncExitStack()

    # Starting and stopping.

    async def use(self, settings: LoadSources | None) -> None:
        """Read from these sources from now on, and from no others; wait for what each says first, or fails to say.

        Raise MooringError, and change nothing, if one does not answer that is required.
        """
        if settings == self._settings:
            return
        standings: list[Standing] = []
        tasks: list[asyncio.Task[None]] = []
        stack = AsyncExitStack()
        if settings is not None:
            try:
                standings, tasks = await self._start(settings, stack)
            except BaseException:
                await stack.aclose()
                raise
        await self.stop()
        self._settings, self._standings, self._tasks, self._open = settings, standings, tasks, stack

    async def _start(
        self, settings: LoadSources, stack: AsyncExitStack
    ) -> tuple[list[Standing], list[asyncio.Task[None]]]:
        polled: list[PolledSource] = []
        watched: list[NodeMetricSource] = []
        if settings.metrics_server is not None or settings.node_metric:
            client = await stack.enter_async_context(self._new_client())
            if settings.metrics_server is not None:
                polled.append(MetricsServerSource(client, settings.metrics_server))
            if settings.node_metric:
                watched.append(NodeMetricSource(client, lambda: None))
        if settings.prometheus is not None:
            polled.append(PrometheusSource(settings.prometheus, self._find_node))
        if settings.dcgm is not None:
            polled.append(DcgmSource(settings.dcgm))
        for source in polled:
            stack.push_async_callback(source.close)
        sources: list[PolledSource | NodeMetricSource] = [*polled, *watched]
        standings = [Standing(source.name, source.address, settings) for source in sources]
        by_name = {standing.name: standing for standing in standings}
        tasks = [asyncio.ensure_future(each.informer.run()) for each in watched]
        stack.push_async_callback(_cancel, tasks)
        await asyncio.gather(
            *(self._poll(source, by_name[source.name]) for source in polled),
            *(_listed(source, by_name[source.name]) for source in watched),
        )
        for standing in standings:
            if settings.required and standing.problem:
                raise MooringError(f"{standing.where}: {standing.problem}")
        tasks += [asyncio.ensure_future(self._keep_polling(each, by_name[each.name])) for each in polled]
        tasks += [asyncio.ensure_future(self._keep_looking(each, by_name[each.name])) for each in watched]
        tasks += [asyncio.ensure_future(self._keep_forgetting(standing)) for standing in standings]
        return standings, tasks

    async def stop(self) -> None:
        await _cancel(self._tasks)
        await self._open.aclose()
        self._settings, self._standings, self._tasks, self._open = None, [], [], AsyncExitStack()

    # What it tells.

    def everything(self) -> list[Event]:
        """All that was last reported, for a scheduler that begins."""
        return [NodeLoadSeen(report) for standing in self._standings for report in standing.reports.values()]

    def checks(self) -> list[Check]:
        """How each source does."""
        return [
            Check(f"load-{standing.name}", standing.complaint(time.time()), standing.settings.required)
            for standing in self._standings
        ]

    def measure(self, metrics: Metrics) -> None:
        """Show how old the reports of each source are, and how often it failed."""
        now = time.time()
        for gauge in (metrics.load_age, metrics.load_nodes, metrics.load_failures):
            gauge.clear()
        for standing in self._standings:
            metrics.load_failures.labels(standing.name).set(standing.failures)
            fresh, stale = standing.count(now)
            metrics.load_nodes.labels(standing.name, "fresh").set(fresh)
            metrics.load_nodes.labels(standing.name, "stale").set(stale)
            age = standing.age(now)
            if age is not None:
                metrics.load_age.labels(standing.name).set(age)

    # The tasks.

    async def _keep_polling(self, source: PolledSource, standing: Standing) -> None:
        while True:
            await asyncio.sleep(source.interval_seconds)
            await self._poll(source, standing)

    async def _poll(self, source: PolledSource, standing: Standing) -> None:
        """Ask a source once; whatever goes wrong is its own affair, and it is asked again."""
        try:
            reports = await source.answer()
        except TimeoutError:
            standing.fail(f"no answer within {source.timeout_seconds:g} s")
        except (SourceFailed, OSError) as error:
            standing.fail(" ".join(str(error).split()) or type(error).__name__)
        except Exception as error:  # a source that is never read again would leave the scheduler with old figures
            _log.exception("%s could not be read", standing.where)
            standing.fail(f"{type(error).__name__}: {error}")
        else:
            failures = source.failures if isinstance(source, DcgmSource) else {}
            if failures:
                standing.fail("; ".join(f"{address}: {why}" for address, why in failures.items()))
            else:
                standing.recover()
            await self._take_in(standing, reports)

    async def _keep_looking(self, source: NodeMetricSource, standing: Standing) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await _look(source, standing, self)

    async def take_watched(self, standing: Standing, reports: Iterable[LoadReport], lost: Iterable[str]) -> None:
        """Take in what a watch showed."""
        self._forget(standing, [ReportKey(name, False) for name in lost])
        await self._take_in(standing, reports)

    async def _take_in(self, standing: Standing, reports: Iterable[LoadReport]) -> None:
        fresh = standing.take(reports, time.time())
        is_running = standing in self._standings
        for part in _slices(fresh):
            if is_running:  # what comes before is told when the scheduler begins
                self._tell([NodeLoadSeen(report) for report in part])
            await asyncio.sleep(PAUSE_SECONDS)

    async def _keep_forgetting(self, standing: Standing) -> None:
        """Let old reports go, where the configuration wants that, and always those of nodes that are gone."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._forget(standing, standing.stale(time.time()))

    def _forget(self, standing: Standing, keys: Iterable[ReportKey]) -> None:
        known = [key for key in keys if standing.reports.pop(key, None) is not None]
        if known:
            self._tell([NodeLoadLost(key.node, of_node=not key.is_gpus, of_gpus=key.is_gpus) for key in known])


async def _look(source: NodeMetricSource, standing: Standing, feed: LoadFeed) -> None:
    if source.problem:
        standing.fail(source.problem, is_said=bool(source.informer.problem))
    else:
        standing.recover()
    reports, lost = source.take()
    await feed.take_watched(standing, reports, lost)


async def _listed(source: NodeMetricSource, standing: Standing) -> None:
    """Wait until NodeMetrics were listed once, or cannot be."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(FIRST_LIST_SECONDS):
            while not source.informer.synced.is_set() and not source.informer.problem:
                await asyncio.sleep(0.02)
    if not source.informer.synced.is_set():
        problem = source.problem or f"no answer within {FIRST_LIST_SECONDS:g} s"
        standing.fail(problem, is_said=bool(source.informer.problem))
    reports, _ = source.take()
    standing.take(reports, time.time())


async def _cancel(tasks: list["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _slices(reports: list[LoadReport]) -> Iterator[list[LoadReport]]:
    return (reports[start : start + SLICE] for start in range(0, len(reports), SLICE))
