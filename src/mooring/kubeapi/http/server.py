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


class _Protocol(HttpToolsProtocol):
    """Tells the application which certificate the client showed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if (secured := transport.get_extra_info("ssl_object")) is not None:
            self.app_state = {**self.app_state, "certificate": secured.getpeercert(binary_form=True)}


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
    return context
