"""Thousands of watches that nothing happens to: the server answers everybody else, and them when something does."""

import asyncio
import http.client
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import start_server, tls_context

PATH = "/api/v1/namespaces/default/configmaps"
WATCHES = 3_000
AT_ONCE = 50
"""Connections that are opened at a time."""
PROMPT_SECONDS = 5.0
"""For an answer that takes a millisecond, on a machine that is busy with other tests."""

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(scope="module", autouse=True)
def open_files() -> Iterator[None]:
    """Let this process have so many connections."""
    resource = pytest.importorskip("resource")
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < WATCHES + 500:
        pytest.skip(f"a process may only have {most} files open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


@pytest.fixture
def address(tmp_path: Path) -> Iterator[tuple[int, ssl.SSLContext]]:
    server, config = start_server(tmp_path, in_memory=True)
    yield int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2]), tls_context(config)
    server.terminate()
    assert server.wait(30) == 0


def ask(port: int, context: ssl.SSLContext, method: str, path: str, body: Any = None) -> tuple[int, bytes, float]:
    """Code, answer and seconds of a request on a connection of its own."""
    began = time.monotonic()
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    return answer.status, said, time.monotonic() - began


async def open_all(count: int, port: int, context: ssl.SSLContext, request: str) -> list[Stream]:
    """Connections that have each sent a request; `{number}` in it counts them."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def open_one(number: int) -> Stream:
        async with gate:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=2**14)
            writer.write(request.format(number=number).encode())
            await writer.drain()
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            return reader, writer

    return await asyncio.gather(*(open_one(number) for number in range(count)))


def close_all(streams: list[Stream]) -> None:
    for _, writer in streams:
        writer.transport.abort()


async def until(reader: asyncio.StreamReader, words: bytes) -> bytes:
    found = b""
    while words not in found:
        found += await asyncio.wait_for(reader.readline(), 60)
    return found


def test_thousands_of_idle_watches_leave_the_server_answering(address: tuple[int, ssl.SSLContext]) -> None:
    port, context = address

    async def run() -> None:
        watch = f"GET {PATH}?watch=1&fieldSelector=metadata.name%3Didle-{{number}} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        streams = await open_all(WATCHES, port, context, watch)
        ready = await asyncio.to_thread(ask, port, context, "GET", "/readyz")
        body = {"metadata": {"name": f"idle-{WATCHES - 7}"}}
        created = await asyncio.to_thread(ask, port, context, "POST", PATH, body)
        heard = await until(streams[WATCHES - 7][0], b"ADDED")
        close_all(streams[::2])
        body = {"metadata": {"name": f"idle-{WATCHES - 5}"}}
        later = await asyncio.to_thread(ask, port, context, "POST", PATH, body)
        heard_later = await until(streams[WATCHES - 5][0], b"ADDED")
        close_all(streams[1::2])

        assert (ready[0], ready[1], created[0], later[0]) == (200, b"ok", 201, 201)
        assert max(ready[2], created[2], later[2]) < PROMPT_SECONDS
        assert f'"name":"idle-{WATCHES - 7}"'.encode() in heard
        assert f'"name":"idle-{WATCHES - 5}"'.encode() in heard_later

    asyncio.run(run())
