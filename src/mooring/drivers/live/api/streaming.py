"""An answer that goes on for minutes, as that to a watch: read when somebody asks for more, all of it that is there.

Between two questions the socket is not read at all. What a server sends meanwhile, one event after another, gathers in
the system's buffers and is read at once: what wakes us costs more than what we are woken for.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

import httptools


class Stream(asyncio.Protocol):
    """The answer to one request, on a connection of its own; also what the parser calls as it finds its parts.

    Iterate over it for its body, in pieces as they come. It ends as the answer does; an OSError tells that the
    connection broke before, TimeoutError that the server said nothing for too long.
    """

    def __init__(self, silent_seconds: float, on_lost: "Callable[[Stream], None]") -> None:
        self.status, self.retry_after = 0, ""
        self._silent_seconds, self._on_lost = silent_seconds, on_lost
        self._socket: asyncio.Transport | None = None
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._has_ended = False
        self._ends_with_connection = True
        self._broken: Exception | None = None
        self._news: asyncio.Future[None] | None = None
        """Somebody waits for more."""

    async def encrypt(self, tls: ssl.SSLContext | None, server_name: str | None) -> None:
        """Shake hands on a connection that is open: if the loop did, nobody could tell the socket to wait."""
        if self._socket is None:
            raise self._broken or ConnectionResetError("the server closed the connection")
        self._transport = self._socket
        if tls is not None:
            loop = asyncio.get_running_loop()
            self._transport = await loop.start_tls(self._socket, self, tls, server_hostname=server_name)

    async def begin(self, request: bytes) -> None:
        """Send the request, and wait until the answer begins."""
        if self._transport is not None:
            self._transport.write(request)
        while not self.status:
            await self._more()

    def drop(self, why: Exception) -> None:
        """Close it at once; who waits for more gets an error."""
        self._break(why)
        for transport in (self._transport, self._socket):
            if transport is not None:
                transport.abort()

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self._has_ended:
                raise StopAsyncIteration
            await self._more()
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    async def _more(self) -> None:
        """Read what is there, or wait until something is."""
        if self._broken is not None:
            raise self._broken
        loop = asyncio.get_running_loop()
        news = self._news = loop.create_future()
        silence = loop.call_later(self._silent_seconds, self.drop, TimeoutError())
        if self._socket is not None and not self._socket.is_closing():
            self._socket.resume_reading()
        try:
            await news
        finally:
            silence.cancel()

    def _break(self, why: Exception) -> None:
        self._broken = self._broken or why
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, None
        if news is not None and not news.done():
            news.set_result(None)

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.drop(ConnectionError(f"the answer is no HTTP: {error}"))
            return
        if (self._pieces or self._has_ended) and self._socket is not None and not self._socket.is_closing():
            self._socket.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._socket = self._transport = None
        self._on_lost(self)
        if self.status and self._ends_with_connection and error is None:
            self._has_ended = True
        self._break(error if isinstance(error, OSError) else ConnectionResetError("the server closed the connection"))

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        match name.lower():
            case b"retry-after":
                self.retry_after = value.decode("latin-1")
            case b"content-length" | b"transfer-encoding":
                self._ends_with_connection = False

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self._has_ended = True
