"""The scheduler of `mooring up`: a process of its own that is started again when it ends, and ends with its parent."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from mooring.kubeapi.readiness import Readiness

log = logging.getLogger(__name__)
STOP_SECONDS = 5.0
LOOK_SECONDS = 0.1
"""How often we look whether a scheduler that is starting has ended."""
PATIENCE_SECONDS = 60
"""How long it may take to start before the cluster is called up without it."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
"""Between the end of a scheduler and the start of the next, which doubles from one to the next."""
STEADY_SECONDS = 60.0
"""A scheduler that ran for so long is started again after the first pause."""
_PR_SET_PDEATHSIG = 1


def scheduler_command(
    kubeconfig: Path,
    config: Path | None,
    *,
    catalogue: Path | None = None,
    decision_log: Path | None = None,
    pages: socket.socket | None = None,
) -> list[str]:
    """Mooring itself, as it runs against any cluster; with the socket on which it serves the dashboard."""
    command = [sys.executable, "-m", "mooring", "run", "--kubeconfig", str(kubeconfig), "--v", "0"]
    command += ["--leader-elect=false"]
    command += [] if catalogue is None else ["--catalogue", str(catalogue)]
    command += [] if decision_log is None else ["--decision-log", str(decision_log)]
    command += [] if pages is None else ["--dashboard-address", f"fd:{pages.fileno()}"]
    return command if config is None else [*command, "--config", str(config)]


class SchedulerProcess:
    """A command that is kept running."""

    def __init__(self, command: list[str], pages: socket.socket | None = None) -> None:
        """The command inherits the socket of the dashboard."""
        self._command = command
        self._inherited = [] if pages is None else [pages.fileno()]
        self._process: subprocess.Popen[bytes] | None = None
        self._pause, self._started, self._start_at = FIRST_PAUSE_SECONDS, 0.0, 0.0

    async def start(self, stopped: asyncio.Event) -> bool:
        """Start it, and wait until it follows the cluster; False if it ended instead, or we are to stop."""
        with Readiness() as readiness:
            process = self._spawn(readiness.environment)
            waited = 0.0
            while not stopped.is_set() and process.poll() is None:
                try:
                    await asyncio.wait_for(readiness.wait(), LOOK_SECONDS)
                except TimeoutError:
                    waited += LOOK_SECONDS
                    if waited < PATIENCE_SECONDS:
                        continue
                    log.warning("the scheduler has not said in %d s that it follows the cluster", PATIENCE_SECONDS)
                return True
        return False

    def revive(self) -> None:
        """Start another one where it has ended, after a pause; to be called now and then."""
        now = time.monotonic()
        if self._process is not None and (code := self._process.poll()) is not None:
            self._process = None
            if now - self._started > STEADY_SECONDS:
                self._pause = FIRST_PAUSE_SECONDS
            log.error("the scheduler ended with %s; another one is started in %d s", code, self._pause)
            self._start_at = now + self._pause
            self._pause = min(LONGEST_PAUSE_SECONDS, 2 * self._pause)
        if self._process is None and now >= self._start_at:
            self._spawn({})

    def _spawn(self, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **environment},
            pass_fds=self._inherited,
            start_new_session=True,
            preexec_fn=_ends_with(os.getpid()) if sys.platform == "linux" else None,
        )
        return self._process

    def end(self) -> None:
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ends_with(parent: int) -> Callable[[], None]:
    """What a new process does so that Linux kills it when its parent ends, however busy it is then."""
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before that
            os._exit(1)

    return prepare
