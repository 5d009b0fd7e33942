"""A cluster to try: the control plane in this process, Mooring scheduling it from a process of its own."""

import asyncio
import ctypes
import gc
import logging
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mooring.errors import MooringError
from mooring.kubeapi.auth.kubeconfig import write_kubeconfig
from mooring.kubeapi.cluster import Cluster, Place
from mooring.kubeapi.manifests import apply_manifests, make_nodes, read_manifests
from mooring.kubeapi.nodes.registration import register
from mooring.kubeapi.scheduler_process import SchedulerProcess, scheduler_command
from mooring.kubeapi.status import Object
from mooring.model.capacity.provider import Catalogue
from mooring.model.loading.documents import Document

log = logging.getLogger(__name__)
USUAL_NODES = 5
TRIM_SECONDS, RARELY = 30.0, 300
"""Between two times that memory is given back: at least so long, and so many times as long as it takes."""


@dataclass(frozen=True)
class UpSettings:
    """What `mooring up` was asked for."""

    place: Place
    kubeconfig: Path
    nodes: int | None = None
    """How many simulated nodes to make up; None makes five where no manifest has any."""
    files: tuple[str, ...] = ()
    config: Path | None = None
    """A KubeSchedulerConfiguration for Mooring."""
    schedules: bool = True
    """Whether Mooring schedules; without it something else may."""
    catalogue: Catalogue | None = None
    """What the provider of nodes sells; None: there is no provider."""
    catalogue_file: Path | None = None
    """The file that it is from, for the scheduler."""
    users: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Others that the kubeconfig has contexts for, with their groups."""
    decision_log: Path | None = None
    """Where the scheduler writes what it decides, which the dashboard shows."""
    pages: socket.socket | None = None
    """Where the dashboard is served."""
    dashboard: Sequence[str] = ()
    """The command of the dashboard, where no scheduler serves it."""


def run(settings: UpSettings, tell: Callable[[Cluster], None]) -> int:
    """Serve until interrupted; `tell` is called when everything is up. Returns an exit code."""
    manifests = read_manifests(settings.files)
    _open_many_files()
    with asyncio.Runner(loop_factory=_make_loop) as runner:
        cluster = Cluster(settings.place, catalogue=settings.catalogue)
        nodes = settings.nodes
        if nodes is None:
            nodes = 0 if any(document.kind == "Node" for document, _ in manifests) else USUAL_NODES
        return runner.run(_serve(settings, cluster, nodes, manifests, tell))


def _open_many_files() -> None:
    """Take as many connections as the system lets us: each watch is one, and the usual limit is 1,024."""
    try:
        import resource
    except ImportError:  # there is none for Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _give_memory_back() -> None:
    """Collect what closed connections left, and hand it to the system.

    They are cycles of objects, tens of KiB each. Python collects such only once there are a quarter as many as objects
    that stay.
    """
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library may have no such function
        ctypes.CDLL(None).malloc_trim(0)


def _make_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(
    settings: UpSettings,
    cluster: Cluster,
    nodes: int,
    manifests: list[tuple[Document, Object]],
    tell: Callable[[Cluster], None],
) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await cluster.start()
    command = scheduler_command(
        settings.kubeconfig,
        settings.config,
        catalogue=settings.catalogue_file,
        decision_log=settings.decision_log,
        pages=settings.pages,
    )
    scheduler = SchedulerProcess(command, settings.pages) if settings.schedules else None
    dashboard = SchedulerProcess(list(settings.dashboard), settings.pages) if settings.dashboard else None
    try:
        _fill(cluster, nodes, manifests)
        write_kubeconfig(settings.kubeconfig, cluster.kubeconfig(settings.users))
        await cluster.store.committed(cluster.store.revision)
        if scheduler is not None and not await scheduler.start(stopped) and not stopped.is_set():
            log.error("the scheduler ended before it followed the cluster")
            return 1
        gc.collect()
        gc.freeze()  # what a cluster starts with stays, and may be a million objects
        if not stopped.is_set():
            tell(cluster)
        asked = _first_asked(loop, settings.pages) if dashboard is not None else None
        trims_at = loop.time() + TRIM_SECONDS
        while not stopped.is_set():
            if scheduler is not None:
                scheduler.revive()
            if dashboard is not None and asked is not None and asked.is_set():
                dashboard.revive()
            if (start := loop.time()) > trims_at:
                _give_memory_back()
                trims_at = loop.time() + max(TRIM_SECONDS, RARELY * (loop.time() - start))
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), 1.0)
    finally:
        for process in filter(None, (dashboard, scheduler)):
            process.end()
        await cluster.stop()
    return 0


def _first_asked(loop: asyncio.AbstractEventLoop, pages: socket.socket | None) -> asyncio.Event:
    """Set when a page is first asked for: until then there is no dashboard, only its port."""
    asked = asyncio.Event()
    if pages is not None:
        number = pages.fileno()

        def begin() -> None:
            loop.remove_reader(number)
            asked.set()

        loop.add_reader(number, begin)
    return asked


def _fill(cluster: Cluster, nodes: int, manifests: list[tuple[Document, Object]]) -> None:
    """What the cluster starts with; nothing of it is kept if any of it cannot be used."""
    try:
        register(cluster.api, make_nodes(nodes))
        apply_manifests(cluster.api, manifests, cluster.settle)
    except MooringError:
        cluster.store.abandon()
        raise
