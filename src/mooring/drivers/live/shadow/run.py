"""`mooring run --shadow`: from the first request to the last, of which none changes anything."""

import asyncio
import contextlib
import gc
import logging
import signal
import time
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.assembly import Assembly, assemble
from mooring.config.scheduler import DEFAULT_SCHEDULER
from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.api.discovery import REQUIRED, Served, discover
from mooring.drivers.live.checks import Check
from mooring.drivers.live.run import LATE_SECONDS, RunSettings, first_answer, read_assembly
from mooring.drivers.live.shadow.client import ReadOnlyClient
from mooring.drivers.live.shadow.driver import LONGEST_WAIT, TIMEOUT_SECONDS, Shadow
from mooring.drivers.live.shadow.telling import Telling
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.watching.following import Informers
from mooring.errors import InputError, MooringError
from mooring.model.decisions import Decision
from mooring.observe.decision_log import DecisionLog
from mooring.observe.shadow_log import ShadowLog, Started

if TYPE_CHECKING:
    from mooring.drivers.live.health import HealthServer

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShadowSettings:
    """What the user gave for a shadow."""

    log: str = ""
    """The file of comparisons."""
    timeout_seconds: float = TIMEOUT_SECONDS


def run_shadow(settings: RunSettings, shadow: ShadowSettings) -> None:
    """Follow a cluster and decide, without changing anything, until a signal says to stop."""
    _check(settings, shadow)
    asyncio.run(_Run(_assembly(settings), settings, shadow).run())


def _check(settings: RunSettings, shadow: ShadowSettings) -> None:
    """Refuse options that make no sense without writing, or whose effect is a write."""
    refused = {
        "--share-nodes": settings.shares_nodes,
        "--remember-as": settings.remember_as,
        "--leader-elect": settings.election.get("leader_elect") is True,
        "--secure-address": settings.secure_address,
    }
    for option, is_given in refused.items():
        if is_given:
            raise InputError(f"{option}: expected to be left out with --shadow, which sends no write request")
    if shadow.timeout_seconds <= 0:
        raise InputError(f"--shadow-timeout: expected more than 0 seconds, found {shadow.timeout_seconds:g}")
    if shadow.log == settings.decision_log != "":
        raise InputError(f"--shadow-log: expected another file than --decision-log, found {shadow.log}")


def _assembly(settings: RunSettings) -> Assembly:
    """The configuration's profile, for pods of the default scheduler unless the user names others."""
    if not settings.scheduler_names and len(assemble(settings.config, plugin_files=settings.plugins).profiles) == 1:
        settings = replace(settings, scheduler_names=(DEFAULT_SCHEDULER,))
    return read_assembly(settings)


class _Run:
    """One process that follows a cluster as a shadow."""

    def __init__(self, assembly: Assembly, settings: RunSettings, shadow: ShadowSettings) -> None:
        self._assembly, self._settings, self._shadow = assembly, settings, shadow
        self._stopping = asyncio.Event()
        self._version = "0"
        with contextlib.suppress(PackageNotFoundError):
            self._version = installed("mooring")

    async def run(self) -> None:
        settings = self._settings
        connection = await connect(settings.kubeconfig, settings.context, settings.server)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._stopping.set)
        with (
            contextlib.closing(ShadowLog(self._shadow.log)) as log,
            contextlib.closing(DecisionLog(settings.decision_log)) as decision_log,
        ):
            self._log, self._decision_log, self._telling = log, decision_log, Telling(log)
            self._telling.metrics.version.info({"version": self._version})
            client = ReadOnlyClient(connection, f"mooring-shadow/{self._version}")
            async with client:
                served = await first_answer(lambda: discover(client), connection)
                for group, name in REQUIRED:
                    if (group, name) not in served:
                        raise MooringError(f"{client.server}: expected a Kubernetes API, found one without {name}s")
                await self._follow(client, served)

    async def _follow(self, client: ReadOnlyClient, served: Served) -> None:
        cache = ObjectCache(self._settings.shard)
        scheduler = self._assembly.new_scheduler(seed=self._settings.seed)
        scheduler.cluster.claims.leave_making_to_controllers()
        shadow = Shadow(scheduler, cache, self._telling.note, timeout_seconds=self._shadow.timeout_seconds)
        shadow.on_cycle = self._cycled
        self._telling.metrics.unconfirmed.set_function(lambda: shadow.unconfirmed)
        following = Informers(client, cache, shadow.look)
        server = self._health(shadow, following)
        beside = [asyncio.ensure_future(following.look_again())]
        try:
            if server is not None:
                await server.start()
            following.follow(served)
            if await self._unless_stopped(following.synced()):
                gc.freeze()
                gc.enable()
                self._say_begun(client.server)
                shadow.begin()
                await self._until_stopped(shadow)
        finally:
            for task in beside:
                task.cancel()
            await following.stop()
            if server is not None:
                await server.stop()

    def _say_begun(self, server: str) -> None:
        names = list(self._assembly.profiles)
        self._log.note(Started(time=time.time(), server=server, schedulers=names, version=self._version))
        _log.info("shadowing %s on %s: nothing is changed", ", ".join(names), server)
        if self._assembly.config.extenders:
            _log.warning("extenders are not asked by a shadow: decisions are made without them")

    async def _until_stopped(self, shadow: Shadow) -> None:
        running, stop = asyncio.ensure_future(shadow.run()), asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait((running, stop), return_when=asyncio.FIRST_COMPLETED)
        shadow.stop()
        stop.cancel()
        await running

    async def _unless_stopped(self, awaited: Coroutine[Any, Any, None]) -> bool:
        stop, task = asyncio.ensure_future(self._stopping.wait()), asyncio.ensure_future(awaited)
        done, pending = await asyncio.wait((stop, task), return_when=asyncio.FIRST_COMPLETED)
        for each in pending:
            each.cancel()
        if task in done:
            task.result()
        return task in done

    def _cycled(self, seconds: float, decisions: list[Decision]) -> None:
        self._telling.cycled(seconds, decisions)
        self._decision_log.decided(time.time(), decisions)
        if _log.isEnabledFor(logging.DEBUG):
            for decision in decisions:
                _log.debug("decided, and not carried out: %s", decision)

    def _health(self, shadow: Shadow, following: Informers) -> "HealthServer | None":
        if not self._settings.health_address:
            return None
        # Imported where they are used: they take longer to import than a small cluster to read.
        from mooring.drivers.live.health import HealthServer
        from mooring.drivers.live.health import Served as ServedHealth

        def alive() -> list[Check]:
            late = time.monotonic() - shadow.last_turn if shadow.last_turn else 0.0
            return [Check("shadow-loop", f"no turn for {late:.0f} s" if late > LONGEST_WAIT + LATE_SECONDS else "")]

        served = ServedHealth(alive, following.checks, self._telling.metrics.text, self._configuration)
        return HealthServer("--health-address", self._settings.health_address, served)

    def _configuration(self) -> bytes:
        """The configuration in use, without keys."""
        document = msgspec.to_builtins(self._assembly.config)
        for extender in document.get("extenders") or ():
            (extender.get("tlsConfig") or {}).pop("keyData", None)
        return msgspec.json.encode({document["apiVersion"].partition("/")[0]: document})
