"""Hears when a process that we start is ready: it says so as services say it to systemd."""

import asyncio
import socket
import tempfile
from contextlib import suppress
from pathlib import Path


class Readiness:
    """A socket for one process, until the end of a `with`; `environment` has to be in that process' own."""

    def __init__(self) -> None:
        self._is_ready = asyncio.Event()
        self._socket: socket.socket | None = None
        self.environment: dict[str, str] = {}
        if not hasattr(socket, "AF_UNIX"):  # Windows
            self._is_ready.set()
            return
        self._folder = tempfile.TemporaryDirectory(prefix="mooring-")
        path = Path(self._folder.name) / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind(str(path))
        except OSError:  # a folder whose path is too long for a socket: nothing is waited for
            self._is_ready.set()
        self.environment["NOTIFY_SOCKET"] = str(path)
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def _read(self) -> None:
        assert self._socket is not None
        with suppress(OSError):
            if b"READY=1" in self._socket.recv(4096).splitlines():
                self._is_ready.set()

    async def wait(self) -> None:
        await self._is_ready.wait()

    def __enter__(self) -> "Readiness":
        return self

    def __exit__(self, *raised: object) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            self._folder.cleanup()
