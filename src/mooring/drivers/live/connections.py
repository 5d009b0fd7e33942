"""HTTP/1.1 to one server over connections that are kept: what thousands of small requests a second need, and no more.

A request is bytes, its answer a status and a body. A connection has one request at a time; one that breaks takes its
request along, and then it is not known whether that was carried out.
"""

import asyncio
import ssl
import time
from typing import NamedTuple, cast
from urllib.parse import urlsplit

import httptools

KEPT_SECONDS = 60.0
"""How long a connection may be idle: servers close theirs after about 90 seconds."""


class Reply(NamedTuple):
    """What a server answered."""

    status: int
    body: bytes
    retry_after: str


class Connections:
    """The connections to one server: as many as there are requests at once."""

    def __init__(self, server: str, tls: ssl.SSLContext | None, server_name: str | None = None) -> None:
        address = urlsplit(server)
        self._host, self._port = address.hostname or "", address.port or (443 if tls is not None else 80)
        self._tls = tls
        self._server_name = (server_name or self._host) if tls is not None else None
        self._idle: list[_Wire] = []
        self._open: set[_Wire] = set()

    async def send(self, request: bytes, seconds: float) -> Reply:
        """Send a request and return its answer; raise OSError if there is none, TimeoutError if not in time."""
        wire = self._take()
        if wire is None:
            async with asyncio.timeout(seconds):  # wait_for swallows a cancellation that comes with the connection
                wire = await self._connect()
        try:
            return await wire.ask(request, seconds)
        except asyncio.CancelledError:
            wire.drop(ConnectionAbortedError("the request was given up"))  # its answer is not to be another one's
            raise

    def close(self) -> None:
        for wire in list(self._open):
            wire.drop(ConnectionAbortedError("the client was closed"))

    def _take(self) -> "_Wire | None":
        """A connection that is open and idle; those used last first, so that no more are kept than are needed."""
        while self._idle:
            wire = self._idle.pop()
            if wire.idle_since + KEPT_SECONDS > time.monotonic():
                return wire
            wire.drop(ConnectionAbortedError("it was idle for long"))
        return None

    async def _connect(self) -> "_Wire":
        _, wire = await asyncio.get_running_loop().create_connection(
            lambda: _Wire(self._idle, self._open),
            self._host,
            self._port,
            ssl=self._tls,
            server_hostname=self._server_name,
        )
        return wire


class _Wire(asyncio.Protocol):
    """One connection; also what the parser calls as it finds the parts of an answer."""

    def __init__(self, idle: "list[_Wire]", open_: "set[_Wire]") -> None:
        self._idle, self._all = idle, open_
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()  # once: looking it up asks the system who we are
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Reply] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._body: list[bytes] = []
        self._retry_after = ""

    def ask(self, request: bytes, seconds: float) -> "asyncio.Future[Reply]":
        answer = self._answer = self._loop.create_future()
        if self._transport is None or self._transport.is_closing():
            self._fail(ConnectionResetError("the connection was closed"))
        else:
            self._timer = self._loop.call_later(seconds, self.drop, TimeoutError())
            self._transport.write(request)
        return answer

    def drop(self, why: Exception) -> None:
        """Close it at once; who waits for an answer gets none."""
        self._fail(why)
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, why: Exception) -> None:
        answer, self._answer = self._answer, None
        if self._timer is not None:
            self._timer.cancel()
        if answer is not None and not answer.done():
            answer.set_exception(why)

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._all.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.drop(ConnectionError(f"the answer is no HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._all.discard(self)
        if self in self._idle:
            self._idle.remove(self)
        self._fail(error if isinstance(error, OSError) else ConnectionResetError("the server closed the connection"))

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        reply = Reply(self._parser.get_status_code(), b"".join(self._body), self._retry_after)
        self._body, self._retry_after = [], ""
        answer, self._answer = self._answer, None
        if self._timer is not None:
            self._timer.cancel()
        if answer is not None and self._parser.should_keep_alive():
            self.idle_since = time.monotonic()
            self._idle.append(self)
        elif self._transport is not None:
            self._transport.close()
        if answer is not None and not answer.done():
            answer.set_result(reply)
