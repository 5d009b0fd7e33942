"""`mooring up` waits for its scheduler: what it hears, and what it does if it hears nothing."""

import asyncio
import subprocess
import sys

import pytest

from mooring.drivers.live.notify import notify_ready
from mooring.kubeapi import up
from mooring.kubeapi.readiness import Readiness


def test_a_process_says_that_it_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hear() -> None:
        with Readiness() as readiness:
            for name, value in readiness.environment.items():
                monkeypatch.setenv(name, value)
            notify_ready()
            await asyncio.wait_for(readiness.wait(), 30)

    asyncio.run(hear())
    notify_ready()  # nobody listens any more, which does no harm


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("from mooring.drivers.live.notify import notify_ready; notify_ready(); input()", True),
        ("raise SystemExit(1)", False),
    ],
)
def test_up_waits_for_a_scheduler_that_follows_or_ends(program: str, expected: bool) -> None:
    async def wait() -> bool:
        with Readiness() as readiness:
            command = [sys.executable, "-c", program]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, env=readiness.environment)
            try:
                return await up._is_scheduling(process, readiness, asyncio.Event())
            finally:
                process.kill()
                process.communicate()

    assert asyncio.run(wait()) is expected


def test_a_scheduler_that_says_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "PATIENCE_SECONDS", 0.2)

    async def wait() -> bool:
        with Readiness() as readiness:
            process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
            try:
                return await up._is_scheduling(process, readiness, asyncio.Event())
            finally:
                process.kill()
                process.communicate()

    assert asyncio.run(wait()) is True
