"""`mooring run`: a scheduler on a cluster, from its first request to its last."""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import time
import uuid
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from mooring.assembly import Assembly, assemble
from mooring.config.scheduler import LeaderElection
from mooring.drivers.live.access import AccessReviews
from mooring.drivers.live.api.backoff import Backoff
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.connection import Connection, connect
from mooring.drivers.live.api.discovery import REQUIRED, Served, discover
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.checks import Check
from mooring.drivers.live.dashboard_process import DashboardProcess, dashboard_command, listen
from mooring.drivers.live.driver import LONGEST_WAIT, Live
from mooring.drivers.live.election import Election, ElectionSettings, election_settings, lease_timings
from mooring.drivers.live.load.feed import LoadFeed
from mooring.drivers.live.measuring import Measuring
from mooring.drivers.live.memory import KeptMemory
from mooring.drivers.live.notify import notify_ready
from mooring.drivers.live.rights import Rights
from mooring.drivers.live.sharing.node_claims import NodeClaims
from mooring.drivers.live.sharing.sharing import Sharing, bound_at
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.watching.following import Informers
from mooring.drivers.live.watching.shard import NodesOfShard, Shard
from mooring.drivers.live.workloads.admitting import LEASE, QUEUES, Admitting
from mooring.drivers.live.workloads.queue_status import QueueStatusWriter
from mooring.engine.cycle import Scheduler
from mooring.errors import InputError, MooringError
from mooring.observe.decision_log import DecisionLog
from mooring.plugins.resources_compiled import load_if_worthwhile

if TYPE_CHECKING:
    from mooring.drivers.live.health import HealthServer

DRAIN_SECONDS = 20.0
"""How long requests in flight are waited for when we are told to stop."""
YOUNG_OBJECTS = (20_000, 20, 20)
"""How many new objects there are before cycles among them are looked for: few of ours ever are in one."""
LATE_SECONDS = 20.0
"""How much longer than it ever waits the loop may take before it counts as hung; and than its lease lasts an election,
as kube-scheduler's watchdog has it."""
FIRST_ANSWER_SECONDS = 10.0
"""How long a server may be unreachable at the start before we give up."""
LOOK_AT_CONFIG_SECONDS = 5.0
"""How often the configuration file is looked at: one that is mounted from a ConfigMap changes without a signal."""
DASHBOARD = "--dashboard-address"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunSettings:
    """What the user gave."""

    kubeconfig: Path | None = None
    context: str | None = None
    server: str | None = None
    config: Path | None = None
    plugins: tuple[Path, ...] = ()
    catalogue: Path | None = None
    """What nodes can be bought, where the configuration does not say so."""
    scheduler_names: tuple[str, ...] = ()
    election: Mapping[str, str | bool] = field(default_factory=dict)
    """Fields of the configuration's `leaderElection` that the user gave on the command line."""
    shard: Shard = field(default_factory=Shard)
    """The pods and nodes to take on, of several schedulers'."""
    shares_nodes: bool = False
    """Whether other active schedulers use the same nodes."""
    remember_as: str = ""
    """The name under which what must outlive us is kept, if the user gave one."""
    health_address: str = ""
    """Where health and metrics are served by plain HTTP, to anybody."""
    secure_address: str = ""
    """Where they are served by TLS, metrics to those whom the API server lets read them."""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    decision_log: str = ""
    dashboard_address: str = ""
    """Where the pages are served: on a loopback address to everybody there, elsewhere to users of the cluster."""
    seed: int = 0


def _keep_for_good() -> None:
    """Leave out of garbage collection what is there now: a cluster is a million objects that stay."""
    gc.freeze()
    gc.set_threshold(*YOUNG_OBJECTS)
    gc.enable()


def run(settings: RunSettings) -> None:
    """Schedule a cluster until a signal says to stop."""
    assembly = read_assembly(settings)
    try:
        import uvloop
    except ImportError:  # there is none for some systems
        asyncio.run(Run(settings, assembly).run())
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Run(settings, assembly).run())


def leader_election(settings: RunSettings, assembly: Assembly) -> LeaderElection:
    """What the configuration says, and the command line before it."""
    found = structs.replace(assembly.config.leader_election or LeaderElection(), **settings.election)
    for name, expected, wrong in found.validate():
        raise InputError(f"leaderElection.{name}: expected {expected}, found {wrong}")
    return found


def read_assembly(settings: RunSettings) -> Assembly:
    assembly = assemble(settings.config, plugin_files=settings.plugins, catalogue=settings.catalogue)
    if settings.scheduler_names:
        if len(assembly.profiles) > 1:
            raise InputError("--scheduler-name: expected a configuration with one profile, found several")
        assembly = assembly.under(settings.scheduler_names)
    return assembly


class Run:
    """One process: everything that it is made of, and the order in which it starts and stops."""

    def __init__(self, settings: RunSettings, assembly: Assembly) -> None:
        self._settings, self._assembly = settings, assembly
        elects = leader_election(settings, assembly)
        self._namespace = elects.resource_namespace
        """Where what we keep for ourselves is."""
        self._wanted = election_settings(elects, assembly.profiles)
        self._admission_lease = ElectionSettings(LEASE, self._namespace, *lease_timings(elects))
        self._stopping, self._reloading = asyncio.Event(), asyncio.Event()
        self._election: Election | None = None
        self._identity = f"mooring-{uuid.uuid4()}"
        self._published = self._read_published()
        self._pages = listen(settings.dashboard_address, DASHBOARD) if settings.dashboard_address else None

    async def run(self) -> None:
        settings = self._settings
        connection = await connect(settings.kubeconfig, settings.context, settings.server)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._reloading.set)
        self._dispatcher = Dispatcher()
        self._measuring = Measuring(self._dispatcher)
        self._measuring.host = urlsplit(connection.server).netloc
        self._measuring.metrics.version.info({"version": _version()})
        self._log = DecisionLog(settings.decision_log)
        try:
            async with Client(connection, f"mooring/{_version()}", self._measuring.answered) as client:
                served = await first_answer(lambda: discover(client), connection)
                for group, name in REQUIRED:
                    if (group, name) not in served:
                        raise MooringError(f"{client.server}: expected a Kubernetes API, found one without {name}s")
                await self._follow(client, served, connection)
        finally:
            self._log.close()

    def _new_scheduler(self) -> Scheduler:
        seed = self._settings.seed
        if self._settings.shares_nodes:  # of equally good nodes, others should not take the same ones
            seed ^= zlib.crc32(self._identity.encode())
        scheduler = self._assembly.new_scheduler(seed=seed)
        scheduler.cluster.claims.leave_making_to_controllers()
        scheduler.on_step = self._measuring.step
        return scheduler

    async def _follow(self, client: Client, served: Served, connection: Connection) -> None:
        """Follow the cluster, and schedule as long as we lead."""
        cache = ObjectCache(self._settings.shard)
        live = Live(self._new_scheduler(), cache, client, self._dispatcher)
        live.ask_extenders(self._assembly.config.extenders or ())
        self._dispatcher.on_room = live.wake
        following = Informers(client, cache, live.look)
        self._measuring.watch(live, following, cache, self._log)
        loads = LoadFeed(lambda: Client(connection, f"mooring/{_version()}"), live.measured, live.node_called)
        live.loads, self._measuring.read_loads = loads.everything, loads.measure
        rights = Rights(client, self._settings.shard.namespaces)
        self._measuring.on_code = rights.note
        nodes = NodesOfShard(self._settings.shard, lambda: len(live.scheduler.cluster.nodes.row_of))
        checks = (following.checks, rights.checks, nodes.checks, loads.checks)
        servers = self._health(client, live, lambda: [found for each in checks for found in each()])
        watching = (following.look_again(), self._watch_config(), rights.run())
        background = [asyncio.ensure_future(each) for each in watching]
        try:
            for server in servers:
                await server.start()
            gc.disable()  # to walk a growing cluster again and again takes as long as reading it
            following.follow(served)
            live.served = following.served
            is_synced = await self._unless_stopped(following.synced())
            _keep_for_good()
            if is_synced and self._pages is not None:
                background.append(asyncio.ensure_future(self._dashboard(live, self._pages)))
            if is_synced and await self._elected(client):
                background.append(asyncio.ensure_future(nodes.run()))
                await loads.use(self._assembly.load_sources)
                await self._schedule(live, cache, following, client, loads)
        finally:
            for task in background:
                task.cancel()
            await asyncio.wait(background, timeout=DRAIN_SECONDS)  # the dashboard is a process that has to end
            await loads.stop()
            await following.stop()
            if live.extenders is not None:
                await live.extenders.close()
            for server in servers:
                await server.stop()

    async def _dashboard(self, live: Live, listening: socket.socket) -> None:
        """Serve the pages from a process of their own."""
        settings = self._settings
        command = dashboard_command(
            listening,
            settings.kubeconfig,
            context=settings.context,
            config=settings.config,
            plugins=settings.plugins,
            decision_log=settings.decision_log,
            has_plans=True,
        )
        await DashboardProcess(command, listening, lambda: live.scheduler.cluster).run()

    async def _schedule(
        self, live: Live, cache: ObjectCache, following: Informers, client: Client, loads: LoadFeed
    ) -> None:
        sharing = await self._share_nodes(live, cache, following, client)
        memory = self._memory(client)
        if memory is not None:
            live.scheduler.recall(await memory.read())
        gc.disable()
        live.begin()
        load_if_worthwhile(live.scheduler.cluster)
        _keep_for_good()
        notify_ready()
        _log.info("scheduling for %s on %s", ", ".join(self._assembly.profiles), client.server)
        if following.missing:
            _log.info("this cluster does not have: %s", ", ".join(following.missing))
        admitting = self._admitting(live, client)
        await self._lead(live, sharing, memory, admitting, self._reload(live, loads))
        if not await self._dispatcher.drain(DRAIN_SECONDS):
            _log.warning("stopping with %d requests under way", len(self._dispatcher))
        if memory is not None:
            await memory.write(live.scheduler.remembered())
        if sharing is not None:
            await sharing.claims.leave()
        await admitting.release()
        if self._election is not None:
            await self._election.release()

    def _admitting(self, live: Live, client: Client) -> Admitting:
        """Whoever leads by the same lease ended before we began; of all others, the lease of who admits tells."""
        group = f"{self._wanted.namespace}/{self._wanted.name}" if self._wanted is not None else ""

        async def begin(is_sure: Callable[[], bool]) -> None:
            await live.admit(is_sure)
            self._measuring.metrics.leading.labels(LEASE).set(1)
            await QueueStatusWriter(client, lambda: live.scheduler, lambda: live.served).run()

        def has_queues() -> bool:
            return QUEUES in live.served

        return Admitting(client, self._admission_lease, group=group, has_queues=has_queues, begin=begin)

    async def _share_nodes(
        self, live: Live, cache: ObjectCache, following: Informers, client: Client
    ) -> Sharing | None:
        """Before the first decision, read what other active schedulers are about to bind."""
        if not self._settings.shares_nodes:
            return None
        version = following.pods_version
        claims = NodeClaims(
            client,
            self._identity,
            self._namespace,
            bound_at=lambda claim: bound_at(cache.pod(claim.pod), claim),
            pods_version=version,
        )
        await claims.read()
        sharing = Sharing(claims, lambda: live.scheduler, version, cache.pod)
        live.use_nodes(sharing)
        claims.on_vanished = live.wake
        waits_its_turn = self._dispatcher.expects_binds
        self._dispatcher.expects_binds = lambda: sharing.expects_binds or waits_its_turn()
        return sharing

    def _memory(self, client: Client) -> KeptMemory | None:
        """Where what must outlive us is kept: by the name that the user gave, by our lease, or by our own name if no
        other active one can have it."""
        settings, lease = self._settings, self._wanted.name if self._wanted is not None else ""
        name = settings.remember_as or lease
        if not name and (settings.shares_nodes or settings.shard != Shard()):
            _log.info(
                "what is remembered ends with this process: of several schedulers, only those keep it that have a "
                "lease, or a name of their own by --remember-as"
            )
            return None
        scheduler = name or next(iter(self._assembly.profiles))
        return KeptMemory(client, self._namespace, scheduler, lambda: self._published)

    def _read_published(self) -> str:
        """The configuration for commands that ask about this scheduler: without plugins of files, which they do not
        have, and without extenders, whose keys are nobody else's."""
        settings = self._settings
        if settings.config is None or settings.plugins or self._assembly.config.extenders:
            return ""
        try:
            return settings.config.read_text()
        except (OSError, UnicodeDecodeError):  # it may have gone since it was read
            return ""

    # Leading.

    async def _elected(self, client: Client) -> bool:
        """Wait until we lead; False if we are told to stop before."""
        if self._wanted is None:
            return True
        notify_ready()  # who stands by is ready to
        self._election = Election(client, self._wanted)
        leading = self._measuring.metrics.leading.labels(self._wanted.name)
        leading.set(0)
        is_leading = await self._unless_stopped(self._election.acquire())
        leading.set(int(is_leading))
        client.fence(lambda: self._election is not None and self._election.is_sure)
        return is_leading

    async def _lead(
        self,
        live: Live,
        sharing: Sharing | None,
        memory: KeptMemory | None,
        admitting: Admitting,
        reloading: Coroutine[Any, Any, object],
    ) -> None:
        """Decide until we are told to stop, or do not lead any more: then nothing that was decided may be sent."""
        running = asyncio.ensure_future(live.run())
        beside: list[Coroutine[Any, Any, object]] = [self._stopping.wait(), reloading, admitting.run()]
        if self._election is not None:
            beside.append(self._election.hold())
        if memory is not None:
            beside.append(memory.keep(lambda: live.scheduler.remembered()))
        if sharing is not None:
            beside += [sharing.claims.watch(), sharing.run()]
        tasks = {asyncio.ensure_future(each) for each in beside}
        done, _ = await asyncio.wait({running, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        live.stop()
        for task in tasks - done:
            task.cancel()
        for ended in done:
            ended.result()
        await running

    async def _unless_stopped(self, awaited: Awaitable[None]) -> bool:
        """Wait for something, unless we are told to stop."""
        stop, task = asyncio.ensure_future(self._stopping.wait()), asyncio.ensure_future(awaited)
        done, _ = await asyncio.wait((stop, task), return_when=asyncio.FIRST_COMPLETED)
        for each in (stop, task):
            if each not in done:
                each.cancel()
        if task in done:
            task.result()
        return task in done

    # Configuration.

    async def _watch_config(self) -> None:
        """A file that changed is read again, as by SIGHUP."""
        path = self._settings.config
        if path is None:
            return
        known = _stamp(path)
        while True:
            await asyncio.sleep(LOOK_AT_CONFIG_SECONDS)
            if _stamp(path) not in (known, None):
                known = _stamp(path)
                self._reloading.set()

    async def _reload(self, live: Live, loads: LoadFeed) -> None:
        """Take on a new configuration whenever one is there; one that cannot be used changes nothing."""
        while True:
            await self._reloading.wait()
            self._reloading.clear()
            try:
                assembly = read_assembly(self._settings)
                await loads.use(assembly.load_sources)
            except MooringError as error:
                _log.error("the configuration stays as it was: %s", error)
                continue
            self._assembly = assembly
            self._published = self._read_published()
            await live.replace(self._new_scheduler, self._assembly.config.extenders or ())
            _log.info("the configuration was read again; scheduling for %s", ", ".join(self._assembly.profiles))

    # Health.

    def _health(self, client: Client, live: Live, looked_at: Callable[[], list[Check]]) -> "list[HealthServer]":
        settings = self._settings
        if not settings.health_address and not settings.secure_address:
            return []
        # Imported where they are used: they take longer to import than a small cluster to read.
        from mooring.drivers.live.certificate import serving_context
        from mooring.drivers.live.health import HealthServer
        from mooring.drivers.live.health import Served as ServedHealth

        def ready() -> list[Check]:
            found = looked_at()
            if self._election is not None:
                standby = "" if self._election.is_leader else "another scheduler leads"
                found.append(Check("leader-election", standby, is_needed=False))
            return found

        served = ServedHealth(lambda: self._alive(live), ready, self._measuring.text, self._configuration)
        servers = []
        if settings.health_address:
            servers.append(HealthServer("--health-address", settings.health_address, served))
        if settings.secure_address:
            tls, reviews = serving_context(settings.tls_certificate, settings.tls_key), AccessReviews(client)
            address = settings.secure_address
            servers.append(HealthServer("--secure-address", address, served, tls=tls, may_read=reviews.of))
        return servers

    def _alive(self, live: Live) -> list[Check]:
        """What is wrong with a process that does not decide any more, or should not believe that it leads."""
        now, last = time.monotonic(), live.last_turn
        stuck = f"no cycle for {now - last:.0f} s" if last and now > last + LONGEST_WAIT + LATE_SECONDS else ""
        found = [Check("scheduling-loop", stuck)]
        if self._election is not None:
            late = self._election.overdue_seconds()
            problem = f"the lease ended {late:.0f} s ago" if late > LATE_SECONDS else ""
            found.append(Check("leader-election", problem))
        return found

    def _configuration(self) -> bytes:
        """The configuration in use, without keys, as kube-scheduler shows its own."""
        document = msgspec.to_builtins(self._assembly.config)
        for extender in document.get("extenders") or ():
            (extender.get("tlsConfig") or {}).pop("keyData", None)
        return msgspec.json.encode({document["apiVersion"].partition("/")[0]: document})


async def first_answer(ask: Callable[[], Awaitable[Served]], connection: Connection) -> Served:
    """Ask until somebody answers, but not for ever: a wrong address should not look like a scheduler at work."""
    backoff = Backoff(longest=5.0)
    problem = f"{connection.server}: no answer within {FIRST_ANSWER_SECONDS:g} s"
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(FIRST_ANSWER_SECONDS):
            while True:
                try:
                    return await ask()
                except ApiError as error:
                    problem = connection.refusal(error.code, error.message)
                    if not error.is_passing:
                        break
                    await asyncio.sleep(backoff.next(error.retry_after))
    raise MooringError(problem)


def _stamp(path: Path) -> tuple[float, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_mtime, found.st_ino
    return None


def _version() -> str:
    try:
        return installed("mooring")
    except PackageNotFoundError:
        return "0"
