"""The first question to a server: answered, refused with whose credentials those were, or given up in time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kubernetes_asyncio.client import Configuration

from mooring.drivers.live import run
from mooring.drivers.live.api.client import Client
from mooring.drivers.live.api.connection import Connection
from mooring.drivers.live.api.discovery import Served, discover
from mooring.errors import MooringError

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    body = b'{"kind": "Status", "code": 401, "reason": "Unauthorized", "message": "Unauthorized"}'
    writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
    await writer.drain()
    writer.close()


def said(talk: Talk | None) -> tuple[str, str]:
    """What a server that behaves so is called, and what is said of it."""

    async def ask() -> tuple[str, str]:
        server = await asyncio.start_server(talk or hang, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        if talk is None:
            server.close()
            await server.wait_closed()
        configuration: Any = Configuration()
        configuration.host = address
        connection = Connection(configuration, None, "/home/me/.kube/config")
        async with Client(connection, "test") as client:

            def discovered() -> Awaitable[Served]:
                return discover(client)

            with pytest.raises(MooringError) as raised:
                await run.first_answer(discovered, connection)
        await asyncio.sleep(0.01)  # let the server see that the client has gone
        server.close()
        return address, str(raised.value)

    return asyncio.run(ask())


def test_credentials_that_are_not_accepted_are_named_with_their_server() -> None:
    server, message = said(refuse)
    assert message == f"{server}: Unauthorized: the credentials of /home/me/.kube/config are not accepted"


def test_a_server_that_hangs_is_given_up_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "FIRST_ANSWER_SECONDS", 0.5)
    started = time.monotonic()
    server, message = said(hang)
    assert message == f"{server}: no answer within 0.5 s"
    assert 0.5 <= time.monotonic() - started < 5.0


def test_a_server_that_refuses_to_be_asked_is_given_up_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "FIRST_ANSWER_SECONDS", 0.5)
    started = time.monotonic()
    server, message = said(None)
    assert message.startswith(f"{server}: ") and "no answer" not in message
    assert 0.5 <= time.monotonic() - started < 5.0


def test_the_docs_say_how_long_a_server_is_asked() -> None:
    assert run.FIRST_ANSWER_SECONDS == 10.0
