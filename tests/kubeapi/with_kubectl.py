"""A `mooring up` in a process of its own, and a real kubectl to speak to it."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

KUBECTL = os.environ.get("MOORING_KUBECTL") or shutil.which("kubectl")
PATIENCE = 180.0
"""Seconds: on a machine that is busy with other tests everything takes long."""

Kubectl = Callable[..., str]
"""Runs `kubectl` with arguments in one string, perhaps with something on its input; returns what it says."""


class Refused(Exception):
    """kubectl ended with an error; its words."""


@contextlib.contextmanager
def cluster_up(folder: Path, *options: str) -> Iterator[Kubectl]:
    """A control plane kept in memory, at a free port, until the end of the block."""
    kubeconfig, said = folder / "kubeconfig", folder / "said"
    command = [sys.executable, "-m", "mooring", "up", "--in-memory", "--port", "0", "--kubeconfig", str(kubeconfig)]
    with said.open("w") as file:
        server = subprocess.Popen([*command, *options], stdout=file)
    until = time.monotonic() + PATIENCE
    while "Ctrl-C" not in said.read_text():
        assert server.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)

    def run(arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [str(KUBECTL), *arguments.split()],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(folder)},
        )
        if done.returncode:
            raise Refused(done.stdout + done.stderr)
        return done.stdout

    try:
        yield run
    finally:
        server.terminate()
        assert server.wait(30) == 0


def eventually(look: Callable[[], bool], what: Callable[[], object] = lambda: "it does not come about") -> None:
    """Wait for something; `what` tells what is there instead if it never comes."""
    until = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < until, what()
        time.sleep(0.1)
