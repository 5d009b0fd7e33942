"""Requests to a Kubernetes API: raw bytes in and out, every answer counted.

Objects are decoded by whoever knows their types; here they are bytes. They go over connections of our own, which cost
a fifth of what a general client takes of the processor, and over aiohttp where there is a proxy on the way.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from mooring.drivers.live.api.connection import Connection
from mooring.drivers.live.api.connections import Connections, MaySend, NotSent, Reply
from mooring.errors import MooringError

if TYPE_CHECKING:
    from mooring.drivers.live.api.proxied import Proxied

REQUEST_SECONDS = 15.0
"""How long one request may take before it is given up; it is not known then whether it was carried out."""
FENCED_SECONDS = 0.05
"""How often it is looked whether requests may be sent again."""
MOST_LINES = 20
SILENT_SECONDS = 150.0
"""How long a watch may be silent: API servers send a bookmark about every minute."""
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_decode_status = msgspec.json.Decoder(_Status).decode


class ApiError(MooringError):
    """The API server refused a request, or could not be asked: `code` is 0 where there was no answer."""

    def __init__(
        self, code: int, reason: str, message: str, retry_after: float = 0.0, *, is_budget: bool = False
    ) -> None:
        """`is_budget`: a disruption budget does not allow the eviction that was asked for."""
        self.code, self.reason, self.message, self.retry_after = code, reason, message, retry_after
        self.is_budget = is_budget
        super().__init__(message)

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later: nobody answered, or the server is not well."""
        return self.code == 0 or self.code == 429 or self.code >= 500

    @property
    def is_unsettled(self) -> bool:
        """Whether it may have been carried out all the same."""
        return self.code == 0 or self.code >= 500


Told = Callable[[ApiError | None], None]
"""Hears what a request was refused for; None if it was not."""


class Client:
    """One API server. Use it as an async context manager."""

    def __init__(
        self, connection: Connection, agent: str, on_answer: Callable[[str, int, float], None] | None = None
    ) -> None:
        """`on_answer` is told of every request: its verb, the code of the answer, and the seconds that it took."""
        self._connection, self._on_answer = connection, on_answer
        self._agent = agent
        self._proxied: Proxied | None = None
        self._connections: Connections | None = None
        self._base = connection.server.rstrip("/")
        address = urlsplit(self._base)
        self._host, self._prefix = address.netloc.rpartition("@")[2], address.path
        self._fences: list[Callable[[], bool]] = []
        self._lines: dict[tuple[str, ...], str] = {}
        """Headers as they are sent, by the kinds of content and the credentials."""

    async def __aenter__(self) -> "Client":
        tls, server_name = self._connection.tls(), self._connection.server_name
        if self._connection.proxy is None:
            self._connections = Connections(self._base, tls, server_name)
            return self
        from mooring.drivers.live.api.proxied import Proxied  # hardly anybody needs it, and it takes long to import

        self._proxied = Proxied(self._base, self._connection.proxy, tls, server_name, self._agent)
        return self

    async def __aexit__(self, *raised: object) -> None:
        if self._connections is not None:
            self._connections.close()
        if self._proxied is not None:
            await self._proxied.close()
        await asyncio.sleep(0)  # let transports close

    @property
    def server(self) -> str:
        return self._base

    def fence(self, may_write: Callable[[], bool]) -> None:
        """From now on, send nothing that changes anything at a moment at which this says no: it waits until then."""
        self._fences.append(may_write)

    def may_write(self) -> bool:
        return all(may_write() for may_write in self._fences)

    async def until_may_write(self) -> None:
        """Wait for as long as nothing may be changed."""
        while not self.may_write():
            await asyncio.sleep(FENCED_SECONDS)

    async def get(self, path: str, accept: str = JSON) -> bytes:
        return await self.request("GET", path, accept=accept)

    async def post(self, path: str, body: bytes) -> bytes:
        return await self.request("POST", path, body)

    async def patch(self, path: str, body: bytes, content_type: str = MERGE_PATCH) -> bytes:
        return await self.request("PATCH", path, body, content_type)

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        *,
        is_fenced: bool = True,
    ) -> bytes:
        """Send one request and return its answer's body; raise ApiError for anything but success.

        `is_fenced=False` is for the requests by which it is found out whether others may be sent.
        """
        may_send = self.may_write if is_fenced and method != "GET" else None
        if self._connection.may_have_expired:
            await self._connection.renew()
        try:
            return await self._send_when_it_may(method, path, body, content_type, accept, may_send)
        except ApiError as error:
            if error.code != 401:
                raise
        await self._connection.renew(at_once=True)
        return await self._send_when_it_may(method, path, body, content_type, accept, may_send)

    async def _send_when_it_may(
        self, method: str, path: str, body: bytes | None, content_type: str, accept: str, may_send: MaySend | None
    ) -> bytes:
        while True:
            if may_send is not None:
                await self.until_may_write()
            try:
                return await self._send(method, path, body, content_type, accept, may_send)
            except NotSent:
                continue

    def post_at_once(self, path: str, body: bytes, answered: Told) -> bool:
        """Post without a task, if nothing has to be waited for before: a lease, credentials, a connection, a proxy.

        If so, `answered` is told later why it was refused, or None; a 401 is for whoever asks to try again by `post`.
        """
        if self._connections is None or self._connection.may_have_expired:
            return False
        request = self._bytes("POST", path, body, JSON, JSON)
        told = partial(self._tell, "POST", time.perf_counter(), answered)
        return self._connections.send_at_once(request, REQUEST_SECONDS, told, self.may_write)

    def _tell(self, method: str, started: float, answered: Told, found: Reply | Exception) -> None:
        code = found.status if isinstance(found, Reply) else 0
        if self._on_answer is not None:
            self._on_answer(method, code, time.perf_counter() - started)
        if isinstance(found, Exception):
            answered(ApiError(0, "Unreachable", _why(found, self._base)))
        else:
            answered(_refusal(code, found.body, found.retry_after) if code >= 300 else None)

    async def _send(
        self, method: str, path: str, body: bytes | None, content_type: str, accept: str, may_send: MaySend | None
    ) -> bytes:
        started, code = time.perf_counter(), 0
        try:
            if self._connections is not None:
                request = self._bytes(method, path, body, content_type, accept)
                reply = await self._connections.send(request, REQUEST_SECONDS, may_send)
            else:
                assert self._proxied is not None
                headers = self._headers(body, content_type, accept)
                reply = await self._proxied.send(method, path, body, headers, REQUEST_SECONDS, may_send)
            code = reply.status
        except OSError as error:
            raise ApiError(0, "Unreachable", _why(error, self._base)) from error
        finally:
            if self._on_answer is not None:
                self._on_answer(method, code, time.perf_counter() - started)
        if code >= 300:
            raise _refusal(code, reply.body, reply.retry_after)
        return reply.body

    def _bytes(self, method: str, path: str, body: bytes | None, content_type: str, accept: str) -> bytes:
        credentials = self._connection.headers
        key = (accept, content_type if body is not None else "", *credentials.values())
        lines = self._lines.get(key)
        if lines is None:
            always = {"Host": self._host, "User-Agent": self._agent}
            headers = always | self._headers(body, content_type, accept)
            lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
            self._lines = {key: lines} if len(self._lines) > MOST_LINES else {**self._lines, key: lines}
        if body is None:
            return f"{method} {self._prefix}{path} HTTP/1.1\r\n{lines}\r\n".encode("ascii")
        head = f"{method} {self._prefix}{path} HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
        return head.encode("ascii") + body

    def _headers(self, body: bytes | None, content_type: str, accept: str) -> dict[str, str]:
        headers = {**self._connection.headers, "Accept": accept}
        return headers if body is None else {**headers, "Content-Type": content_type}

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch: what comes, in pieces that need not be lines, until the server ends it."""
        await self._connection.renew()
        try:
            async with self._opened(path) as (status, retry_after, chunks):
                if status == 401:
                    await self._connection.renew(at_once=True)
                if status >= 300:
                    raise _refusal(status, b"".join([chunk async for chunk in chunks]), retry_after)
                yield chunks
        except OSError as error:
            raise ApiError(0, "Unreachable", _why(error, self._base)) from error

    @asynccontextmanager
    async def _opened(self, path: str) -> AsyncIterator[tuple[int, str, AsyncIterator[bytes]]]:
        """The status of a watch, when to come back if it was refused, and what comes."""
        if self._connections is not None:
            request = self._bytes("GET", path, None, "", JSON)
            async with self._connections.stream(request, REQUEST_SECONDS, SILENT_SECONDS) as stream:
                yield stream.status, stream.retry_after, stream
            return
        assert self._proxied is not None
        headers = self._headers(None, "", JSON)
        async with self._proxied.stream(path, headers, REQUEST_SECONDS, SILENT_SECONDS) as found:
            yield found


def _refusal(code: int, content: bytes, retry_after: str) -> ApiError:
    """What the server says of a request that it refused: a Status, or a page of somebody in between."""
    try:
        status = _decode_status(content)
    except msgspec.MsgspecError:
        text = content[:200].decode(errors="replace")
        status = _Status(message=" ".join(text.split()) or f"status {code}")
    try:
        seconds = float(retry_after or 0)
    except ValueError:  # a date
        seconds = 1.0
    causes = (status.details.causes if status.details is not None else None) or []
    budget = next((cause.message for cause in causes if cause.reason == "DisruptionBudget"), "")
    message = f"{status.message} {budget}" if budget else status.message
    return ApiError(code, status.reason, message, seconds, is_budget=bool(budget))


_CREDENTIALS = re.compile(r"[^\s/@'\"]+:[^\s/@]*@")
"""A name and a password before a host, as the address of a proxy may have them."""


def _why(error: Any, server: str) -> str:
    if isinstance(error, TimeoutError):
        return f"{server}: no answer in time"
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{server}: {_CREDENTIALS.sub('', text)}"
