"""`mooring up` waits for its scheduler: what it hears, and what it does if it hears nothing."""

import asyncio
import subprocess
import sys
import time

import pytest

from mooring.drivers.live.notify import notify_ready
from mooring.kubeapi import scheduler_process
from mooring.kubeapi.readiness import Readiness
from mooring.kubeapi.scheduler_process import SchedulerProcess


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
        ("from mooring.drivers.live.notify import notify_ready; notify_ready(); import time; time.sleep(60)", True),
        ("raise SystemExit(1)", False),
    ],
)
def test_up_waits_for_a_scheduler_that_follows_or_ends(program: str, expected: bool) -> None:
    assert started(program) is expected


def test_a_scheduler_that_says_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_process, "PATIENCE_SECONDS", 0.2)

    assert started("import time; time.sleep(60)") is True


def started(program: str) -> bool:
    scheduler = SchedulerProcess([sys.executable, "-c", program])

    async def wait() -> bool:
        try:
            return await scheduler.start(asyncio.Event())
        finally:
            scheduler.end()

    return asyncio.run(wait())


def test_the_next_scheduler_comes_after_a_pause_that_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    scheduler = SchedulerProcess([sys.executable, "-c", ""])
    starts = []

    def start(*_command: object, **_options: object) -> Ended:
        starts.append(now[0])
        return Ended()

    monkeypatch.setattr(subprocess, "Popen", start)

    while now[0] < 200:
        scheduler.revive()
        now[0] += 0.5

    assert starts == [0.0, 1.5, 4.0, 8.5, 17.0, 33.5, 64.0, 94.5, 125.0, 155.5, 186.0]


class Ended:
    """A process that has ended as soon as it was started."""

    def poll(self) -> int:
        return 1
