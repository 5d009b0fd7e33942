"""A cluster to try: the control plane in this process, Mooring scheduling it from a process of its own."""

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mooring.errors import ConfigError, MooringError
from mooring.kubeapi.auth.kubeconfig import write_kubeconfig
from mooring.kubeapi.cluster import Cluster, Place
from mooring.kubeapi.manifests import apply_manifests, make_nodes, read_manifests
from mooring.kubeapi.nodes.registration import register
from mooring.kubeapi.readiness import Readiness
from mooring.kubeapi.status import Object
from mooring.model.loading.documents import Document

log = logging.getLogger(__name__)
USUAL_NODES = 5
STOP_SECONDS = 5.0
LOOK_SECONDS = 0.1
"""How often we look whether a scheduler that is starting has ended."""
PATIENCE_SECONDS = 60
"""How long it may take to start before the cluster is called up without it."""
_PR_SET_PDEATHSIG = 1


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


def run(settings: UpSettings, tell: Callable[[Cluster], None]) -> int:
    """Serve until interrupted; `tell` is called when everything is up. Returns an exit code."""
    manifests = read_manifests(settings.files)
    _check_config(settings)
    _open_many_files()
    with asyncio.Runner(loop_factory=_make_loop) as runner:
        cluster = Cluster(settings.place)
        nodes = settings.nodes
        if nodes is None:
            nodes = 0 if any(document.kind == "Node" for document, _ in manifests) else USUAL_NODES
        return runner.run(_serve(settings, cluster, nodes, manifests, tell))


def _check_config(settings: UpSettings) -> None:
    """The scheduler reads its configuration in a process of its own: what is wrong with it is said before that."""
    if settings.config is None:
        return
    if not settings.schedules:
        raise ConfigError("--config", "", expected="a scheduler to configure", found="--no-scheduler")
    from mooring.assembly import assemble

    assemble(settings.config)


def _open_many_files() -> None:
    """Take as many connections as the system lets us: each watch is one, and the usual limit is 1,024."""
    try:
        import resource
    except ImportError:  # there is none for Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


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
    scheduler: subprocess.Popen[bytes] | None = None
    is_up = True
    try:
        _fill(cluster, nodes, manifests)
        write_kubeconfig(settings.kubeconfig, cluster.kubeconfig())
        await cluster.store.committed(cluster.store.revision)
        if settings.schedules:
            with Readiness() as readiness:
                scheduler = _start_scheduler(settings, readiness)
                is_up = await _is_scheduling(scheduler, readiness, stopped)
        gc.collect()
        gc.freeze()  # what a cluster starts with stays, and may be a million objects
        if is_up:
            tell(cluster)
        while not stopped.is_set():
            if scheduler is not None and scheduler.poll() is not None:
                log.error("the scheduler ended with %s", scheduler.returncode)
                return 1
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), 1.0)
    finally:
        if scheduler is not None:
            _end(scheduler)
        await cluster.stop()
    return 0


async def _is_scheduling(scheduler: subprocess.Popen[bytes], readiness: Readiness, stopped: asyncio.Event) -> bool:
    """Wait until the scheduler follows the cluster; False if it ended instead, or we are to stop."""
    waited = 0.0
    while not stopped.is_set() and scheduler.poll() is None:
        try:
            await asyncio.wait_for(readiness.wait(), LOOK_SECONDS)
        except TimeoutError:
            waited += LOOK_SECONDS
            if waited < PATIENCE_SECONDS:
                continue
            log.warning("the scheduler has not said in %d s that it follows the cluster", PATIENCE_SECONDS)
        return True
    return False


def _fill(cluster: Cluster, nodes: int, manifests: list[tuple[Document, Object]]) -> None:
    """What the cluster starts with; nothing of it is kept if any of it cannot be used."""
    try:
        register(cluster.api, make_nodes(nodes))
        apply_manifests(cluster.api, manifests, cluster.settle)
    except MooringError:
        cluster.store.abandon()
        raise


def _start_scheduler(settings: UpSettings, readiness: Readiness) -> subprocess.Popen[bytes]:
    """Mooring itself, as it runs against any cluster."""
    command = [sys.executable, "-m", "mooring", "run", "--kubeconfig", str(settings.kubeconfig), "--v", "0"]
    command += ["--leader-elect=false"]
    if settings.config is not None:
        command += ["--config", str(settings.config)]
    ends_with_us = _end_with_parent if sys.platform == "linux" else None
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **readiness.environment},
        start_new_session=True,
        preexec_fn=ends_with_us,
    )


def _end_with_parent() -> None:
    """Ask Linux to end this process when the one that started it is killed."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
