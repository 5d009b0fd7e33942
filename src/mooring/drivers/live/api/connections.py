"""HTTP/1.1 to one server over connections that are kept: what thousands of small requests a second need, and no more.

A request is bytes, its answer a status and a body. A connection has one request at a time; one that breaks takes its
request along, and then it is not known whether that was carried out.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, cast
from urllib.parse import urlsplit

import httptools

from mooring.drivers.live.api.streaming import Stream

_RETRY_AFTER = b"retry-after"
_RETRY_AFTER_LENGTH = len(_RETRY_AFTER)
KEPT_SECONDS = 60.0
"""How long a connection may be idle: servers close theirs after about 90 seconds."""


class Reply(NamedTuple):
    """What a server answered."""

    status: int
    body: bytes
    retry_after: str


Answered = Callable[[Reply | Exception], None]
"""Told what was answered, or why nothing was: an OSError, of which TimeoutError is one."""


MaySend = Callable[[], bool]


class NotSent(Exception):
    """A request did not leave: it may not any more."""


class Connections:
    """The connections to one server: as many as there are requests at once."""

    def __init__(self, server: str, tls: ssl.SSLContext | None, server_name: str | None = None) -> None:
        address = urlsplit(server)
        self._host, self._port = address.hostname or "", address.port or (443 if tls is not None else 80)
        self._tls = tls
        self._server_name = (server_name or self._host) if tls is not None else None
        self._idle: list[_Wire] = []
        self._open: set[_Wire] = set()
        self._streams: set[Stream] = set()

    async def send(self, request: bytes, seconds: float, may_send: MaySend | None = None) -> Reply:
        """Send a request and return its answer; raise OSError if there is none, TimeoutError if not in time.

        `may_send` is asked at the moment at which the request leaves; raise NotSent if it says no.
        """
        wire = self._take()
        if wire is None:
            async with asyncio.timeout(seconds):  # wait_for swallows a cancellation that comes with the connection
                wire = await self._connect()
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        def settle(found: Reply | Exception) -> None:
            if answer.done():
                return
            if isinstance(found, Reply):
                answer.set_result(found)
            else:
                answer.set_exception(found)

        if not wire.ask(request, seconds, settle, may_send):
            raise NotSent
        try:
            return await answer
        except asyncio.CancelledError:
            wire.drop(ConnectionAbortedError("the request was given up"))  # its answer is not to be another one's
            raise

    def send_at_once(self, request: bytes, seconds: float, answered: Answered, may_send: MaySend | None = None) -> bool:
        """Send a request if a connection is idle, without a task that waits for the answer; False if none is, or if it
        may not leave.

        `answered` is told later, never before this returns.
        """
        wire = self._take()
        return wire is not None and wire.ask(request, seconds, answered, may_send)

    @asynccontextmanager
    async def stream(self, request: bytes, seconds: float, silent_seconds: float) -> AsyncIterator[Stream]:
        """Send a request whose answer goes on for long, on a connection of its own; raise as `send` does."""
        loop = asyncio.get_running_loop()
        stream = Stream(silent_seconds, self._streams.discard)
        self._streams.add(stream)
        try:
            async with asyncio.timeout(seconds):
                await loop.create_connection(lambda: stream, self._host, self._port)
                await stream.encrypt(self._tls, self._server_name)
            await stream.begin(request)
            yield stream
        finally:
            stream.drop(ConnectionAbortedError("nobody reads it any more"))
            self._streams.discard(stream)

    def close(self) -> None:
        for wire in list(self._open):
            wire.drop(ConnectionAbortedError("the client was closed"))
        for stream in list(self._streams):
            stream.drop(ConnectionAbortedError("the client was closed"))

    def _take(self) -> "_Wire | None":
        """A connection that is open and idle; those used last first, so that no more are kept than are needed."""
        while self._idle:
            wire = self._idle.pop()
            if wire.idle_since + KEPT_SECONDS > time.monotonic():
                return wire
            wire.drop(ConnectionAbortedError("it was idle for long"))
        return None

    async def _connect(self) -> "_Wire":
        loop = asyncio.get_running_loop()
        raw, wire = await loop.create_connection(lambda: _Wire(self._idle, self._open), self._host, self._port)
        # What is written leaves at once, and not at the end of a round of the loop: in between, a process that is
        # stopped for long may lose the right to send it.
        raw.set_write_buffer_limits(high=0)
        if self._tls is not None:
            wire.use(await loop.start_tls(raw, wire, self._tls, server_hostname=self._server_name))
        return wire


class _Wire(asyncio.Protocol):
    """One connection; also what the parser calls as it finds the parts of an answer."""

    def __init__(self, idle: "list[_Wire]", open_: "set[_Wire]") -> None:
        self._idle, self._all = idle, open_
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()  # once: looking it up asks the system who we are
        self._parser = httptools.HttpResponseParser(self)
        self._answered: Answered | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        """Looks whether the deadline has passed. It outlives its request: most are answered long before, and one timer
        in a while costs less than one for each."""
        self._body: list[bytes] = []
        self._retry_after = ""
        self._reply: Reply | None = None
        self._is_kept = True

    def use(self, transport: asyncio.Transport | None) -> None:
        """Go on over a connection that is encrypted by now."""
        self._transport = transport

    def ask(self, request: bytes, seconds: float, answered: Answered, may_send: MaySend | None = None) -> bool:
        """Send a request; False if it may not leave, which is asked last: this process may be stopped at any time, and
        for longer than it has the right to send."""
        self._answered = answered
        if self._transport is None or self._transport.is_closing():
            self._loop.call_soon(self._fail, ConnectionResetError("the connection was closed"))
            return True
        self._deadline = self._loop.time() + seconds
        if self._timer is None or self._timer.when() > self._deadline:
            self._look_at(self._deadline)
        if may_send is not None and not may_send():
            self._answered = None
            self._idle.append(self)
            return False
        try:
            self._transport.write(request)
        except Exception as error:  # of the transport: nobody knows how much of it was sent
            self._loop.call_soon(self.drop, ConnectionError(f"the request could not be written: {error}"))
        return True

    def drop(self, why: Exception) -> None:
        """Close it at once; who waits for an answer gets none."""
        if self._transport is not None:
            self._transport.abort()
        self._fail(why)

    def _fail(self, why: Exception) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(why)

    def _look_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._answered is None:
            return
        if self._loop.time() < self._deadline:  # of a later request than the one that it was set for
            self._look_at(self._deadline)
        else:
            self.drop(TimeoutError())

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._all.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._is_kept = False
            if self._reply is None:
                self.drop(ConnectionError(f"the answer is no HTTP: {error}"))
        # Told only now: whoever is told may ask for more, and this data has no answer to that.
        if self._reply is not None:
            self._tell(self._reply)

    def _tell(self, reply: Reply) -> None:
        self._reply = None
        answered, self._answered = self._answered, None
        if answered is not None and self._is_kept:
            self.idle_since = time.monotonic()
            self._idle.append(self)
        elif self._transport is not None:
            self._transport.close()
        if answered is not None:
            answered(reply)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._all.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self in self._idle:
            self._idle.remove(self)
        self._fail(error if isinstance(error, OSError) else ConnectionResetError("the server closed the connection"))

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == _RETRY_AFTER_LENGTH and name.lower() == _RETRY_AFTER:
            self._retry_after = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        body, self._body = self._body, []
        retry_after, self._retry_after = self._retry_after, ""
        if self._reply is not None:
            self._is_kept = False  # two answers to one request: nobody knows what comes next
            return
        self._is_kept = self._parser.should_keep_alive()
        self._reply = Reply(self._parser.get_status_code(), b"".join(body), retry_after)
