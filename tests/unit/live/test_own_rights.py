"""What we may do, as the API server says: who cannot bind is not ready, and who cannot be told goes on."""

import asyncio
import json
import logging
from typing import Any

import pytest

from mooring.drivers.live import rights
from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.checks import Check
from mooring.drivers.live.rights import Rights


class Reviewer:
    """An API server that allows what it is told to, or cannot say."""

    def __init__(self, denied: set[str] | None, namespaces: set[str] | None = None) -> None:
        self.denied, self._namespaces = denied, namespaces
        self.asked = 0

    async def post(self, path: str, body: bytes) -> bytes:
        self.asked += 1
        if self.denied is None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        asked = json.loads(body)["spec"]["resourceAttributes"]
        name = f"{asked['verb']} {asked['resource']}/{asked.get('subresource', '')}".rstrip("/")
        is_denied = name in self.denied and (not self._namespaces or asked["namespace"] in self._namespaces)
        return json.dumps({"status": {"allowed": not is_denied}}).encode()


def checked(server: Any, *namespaces: str) -> list[Check]:
    found = Rights(server, namespaces)
    asyncio.run(found.ask())
    return found.checks()


def test_who_may_do_everything_has_nothing_to_say() -> None:
    assert checked(Reviewer(set())) == []


def test_who_may_not_bind_is_not_ready_and_says_what_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    found = checked(Reviewer({"create pods/binding", "delete pods"}))
    assert found == [
        Check("right-to-create-pods/binding", "not given in all namespaces: no pod can be bound", True),
        Check("right-to-delete-pods", "not given in all namespaces: nobody can be evicted", False),
    ]
    assert [(record.levelno, record.message) for record in caplog.records] == [
        (logging.ERROR, "this user may not create pods/binding in all namespaces: no pod can be bound"),
        (logging.WARNING, "this user may not delete pods in all namespaces: nobody can be evicted"),
    ]


def test_rights_are_asked_for_in_the_namespaces_that_are_ours() -> None:
    found = checked(Reviewer({"create pods/binding"}, {"b"}), "b", "a")
    assert [each.problem for each in found] == ["not given in namespace b: no pod can be bound"]


def test_a_server_that_cannot_say_changes_nothing() -> None:
    assert checked(Reviewer(None)) == []


def test_nobody_is_ready_before_the_server_was_asked() -> None:
    assert [each.is_needed for each in Rights(Reviewer(set())).checks()] == [True]  # type: ignore[arg-type]


def test_after_a_refusal_rights_are_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(rights, "SOONEST_SECONDS", 0.0)
    server: Any = Reviewer({"create pods/binding"})
    found = Rights(server)

    async def play() -> None:
        running = asyncio.ensure_future(found.run())
        while server.asked < 4:
            await asyncio.sleep(0)
        server.denied = set()
        found.note(200)
        await asyncio.sleep(0.01)
        assert server.asked == 4
        found.note(403)
        while server.asked < 8:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        running.cancel()

    asyncio.run(asyncio.wait_for(play(), 5))
    assert found.checks() == []
    assert caplog.messages[-1] == "this user may create pods/binding now"
