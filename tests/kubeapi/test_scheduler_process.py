"""The scheduler of `mooring up` is started again when it ends, and never outlives the cluster."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def up(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "mooring", "up", "--in-memory", "--nodes", "1", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--kubeconfig", str(tmp_path / "kubeconfig")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("Ctrl-C"):
            break
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(what: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def is_there(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_scheduler_that_is_killed_is_started_again(up: "subprocess.Popen[str]") -> None:
    (scheduler,) = children(up.pid)

    os.kill(scheduler, signal.SIGKILL)

    wait_for(lambda: bool(children(up.pid)) and scheduler not in children(up.pid))
    assert up.poll() is None
    os.kill(up.pid, signal.SIGTERM)
    assert up.wait(30) == 0


def test_a_scheduler_that_is_busy_ends_with_its_killed_parent(up: "subprocess.Popen[str]") -> None:
    (scheduler,) = children(up.pid)
    os.kill(scheduler, signal.SIGSTOP)  # as deaf as one that computes for ever

    up.kill()

    wait_for(lambda: not is_there(scheduler))
