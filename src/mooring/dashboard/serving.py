"""Serves the pages until it is told to stop."""

import secrets
import socket

import uvicorn

from mooring.dashboard.access import Access, hosts_of, is_loopback
from mooring.dashboard.app import make_app
from mooring.dashboard.picture import Picture, Source
from mooring.dashboard.watching import Watching
from mooring.errors import InputError

GRACE_SECONDS = 1
"""How long open pages, which wait for the next picture, keep a server from ending."""


class Serving:
    """A server that has its port already, so that its link can be printed before it answers."""

    def __init__(self, address: str) -> None:
        host, port = parse_address(address)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen()  # a browser that opens the link at once waits instead of being refused
        except OSError as error:
            self._socket.close()
            raise InputError(f"--address: cannot listen at {address}: {error.strerror or error}") from error
        self._host = host
        self._token = "" if is_loopback(host) else secrets.token_urlsafe(24)
        shown = f"[{host}]" if ":" in host else host
        query = f"?token={self._token}" if self._token else ""
        self.link = f"http://{shown}:{self._socket.getsockname()[1]}/{query}"

    def run(self, source: Source, first: Picture, every_seconds: float) -> None:
        """Answer requests until a signal comes."""
        watching = Watching(source, first, every_seconds)
        app = make_app(watching, Access(hosts_of(self._host), self._token))
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE_SECONDS, server_header=False
        )
        uvicorn.Server(config).run(sockets=[self._socket])


def parse_address(text: str) -> tuple[str, int]:
    """`127.0.0.1:8080`, `[::1]:8080`, or `:8080` for every address of this machine."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"--address: expected HOST:PORT, found {text!r}")
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)
