"""The dashboard of `mooring run`: a process of its own, so that no page ever delays a cycle.

It follows the cluster itself. All that it is told by the scheduler are the plans, which nobody else knows, as lines of
JSON, and only where they have changed. It begins when a page is first asked for or, so that the page of times knows
what was, soon after the scheduler.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path

import msgspec

from mooring.errors import InputError
from mooring.report.plans import plan_rows
from mooring.state.cluster import Cluster
from mooring.state.plans import PlanId

BEGIN_SECONDS = 10.0
"""How long after the scheduler it begins, unless a page is asked for before."""
LOOK_SECONDS = 0.5
"""How often we look whether plans have changed."""
AGAIN_SECONDS = 5.0
"""How long after its end it is started again."""
STOP_SECONDS = 3.0
NICE = 5
"""It gives way to the scheduler where there are not enough cores for both."""
MOST_PLANS = 1000
INHERITED = "fd:"
"""Before the number of an open socket, in place of an address."""
_PR_SET_PDEATHSIG = 1
_log = logging.getLogger(__name__)


def parse_address(text: str, option: str) -> tuple[str, int]:
    """`127.0.0.1:8080`, `[::1]:8080`, or `:8080` for every address of this machine."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"{option}: expected HOST:PORT, found {text!r}")
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)


def listen(address: str, option: str) -> socket.socket:
    """Take a port, or the open socket that another process has handed to us; who connects at once has to wait."""
    if address.startswith(INHERITED):
        try:
            return socket.socket(fileno=int(address.removeprefix(INHERITED)))
        except (ValueError, OSError) as error:
            raise InputError(f"{option}: expected the number of an open socket, found {address!r}") from error
    host, port = parse_address(address, option)
    try:
        found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen()
    except OSError as error:
        found.close()
        raise InputError(f"{option}: cannot listen at {address}: {error.strerror or error}") from error
    return found


def is_local(listening: socket.socket) -> bool:
    """Whether only this machine reaches a socket."""
    return ip_address(listening.getsockname()[0]).is_loopback


def dashboard_command(
    listening: socket.socket,
    kubeconfig: Path | None,
    *,
    context: str | None = None,
    config: Path | None = None,
    plugins: Sequence[Path] = (),
    decision_log: str = "",
    has_plans: bool = False,
) -> list[str]:
    """`mooring dashboard` for a cluster, on a socket that it inherits."""
    command = [sys.executable, "-m", "mooring", "dashboard", "--quiet", "--address", f"{INHERITED}{listening.fileno()}"]
    command += ["--in-cluster"] if kubeconfig is None else ["--kubeconfig", str(kubeconfig)]
    command += [] if context is None else ["--context", context]
    command += [] if config is None else ["--config", str(config)]
    command += [part for plugin in plugins for part in ("--plugin", str(plugin))]
    command += ["--decision-log", decision_log] if decision_log not in ("", "-") else []
    command += ["--plans-from-stdin"] if has_plans else []
    return command if is_local(listening) else [*command, "--access", "cluster"]


class DashboardProcess:
    """Keeps the process running, and tells it the plans."""

    def __init__(self, command: list[str], listening: socket.socket, cluster: Callable[[], Cluster]) -> None:
        self._command, self._listening, self._cluster = command, listening, cluster

    async def run(self) -> None:
        """Serve for as long as nobody stops it."""
        await self._first_asked()
        while True:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                pass_fds=[self._listening.fileno()],
                start_new_session=True,
                preexec_fn=_prepare(os.getpid()),
            )
            try:
                await self._tell_plans(process)
                _log.warning("the dashboard ended with %s; it is started again", await process.wait())
            finally:
                await _end(process)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _first_asked(self) -> None:
        asked, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(self._listening.fileno(), asked.set)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asked.wait(), BEGIN_SECONDS)
        finally:
            loop.remove_reader(self._listening.fileno())

    async def _tell_plans(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        told: list[tuple[PlanId, int]] | None = None
        kept: object = None
        while process.returncode is None:
            plans = list(self._cluster().plans())[:MOST_PLANS]
            now = [(number, id(plan)) for number, plan in plans]
            if now != told and not process.stdin.is_closing():
                told, kept = now, plans  # while they are kept, no other plan has their id
                process.stdin.write(msgspec.json.encode(plan_rows(self._cluster())[:MOST_PLANS]) + b"\n")
                with contextlib.suppress(ConnectionError):
                    await process.stdin.drain()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), LOOK_SECONDS)
        del kept


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()


def _prepare(parent: int) -> Callable[[], None]:
    """What the new process does first: it gives way to others and, on Linux, ends with its parent."""
    import ctypes

    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        os.nice(NICE)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    return prepare
