"""The application on a port: uvicorn, with TLS, and the client's certificate handed on."""

import asyncio
import socket
import ssl
import tempfile
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mooring.errors import ConfigError
from mooring.kubeapi.auth.certificates import Pair
from mooring.kubeapi.http.app import App

BACKLOG = 4096


LARGEST_HEAD = 1024 * 1024
"""Bytes of a request before its body: the line with the URL, and all headers."""
HEAD_SECONDS = 32.0
"""In which those have to come."""
MOST_CONNECTIONS = 10_000
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class _Protocol(HttpToolsProtocol):
    """Tells the application which certificate the client showed; ends connections that send too much before a body,
    or too slowly."""

    _head_bytes = 0
    _is_in_head = True
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._expect_head()
        self.app_state = {**self.app_state, "abort": transport.abort}
        if (secured := transport.get_extra_info("ssl_object")) is not None:
            self.app_state = {**self.app_state, "certificate": secured.getpeercert(binary_form=True)}

    def _expect_head(self) -> None:
        self._is_in_head, self._head_bytes = True, 0
        self._forget_timer()
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > LARGEST_HEAD:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                self.transport.abort()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._is_in_head:
            self._expect_head()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._forget_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        super().connection_lost(exc)


def open_socket(host: str, port: int) -> socket.socket:
    """Listen at an address; one line about what is wrong if that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # An answer is written in two parts. Without this the second one waits for the client to acknowledge the first.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        found = (error.strerror or str(error)).lower()
        raise ConfigError("--port", "", expected=f"a port that is free at {host}", found=f"{port} ({found})") from error
    listening.listen(BACKLOG)
    return listening


class Server:
    """Serves the application in the running event loop until it is stopped."""

    def __init__(self, app: App, listening: socket.socket, certificate: Pair, authority: bytes) -> None:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=300,
            timeout_graceful_shutdown=1,
            backlog=BACKLOG,
        )
        config.load()
        config.ssl = _context(certificate, authority)
        self._listening = listening
        self._server = _QuietServer(config)
        self._task: asyncio.Task[Any] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listening]))
        while not self._server.started:
            if self._task.done():
                await self._task
                return
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        for connection in tuple(self._server.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


class _QuietServer(uvicorn.Server):
    """Leaves signals to whoever started the process."""

    def capture_signals(self) -> Any:
        from contextlib import nullcontext

        return nullcontext()


def _context(certificate: Pair, authority: bytes) -> ssl.SSLContext:
    """TLS; a client may show a certificate of our authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory(prefix="mooring-") as folder:
        path = Path(folder) / "server.pem"
        path.touch(0o600)
        path.write_bytes(certificate.certificate + certificate.key)
        context.load_cert_chain(path)
    context.load_verify_locations(cadata=authority.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.num_tickets = 0  # OpenSSL would keep a session of each connection, up to 20,000 of them
    return context
