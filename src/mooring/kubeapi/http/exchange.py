"""One request and its answer: headers, query, body, warnings."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

import msgspec

from mooring.kubeapi.auth.user import ANONYMOUS, UNAUTHENTICATED, User
from mooring.kubeapi.status import ApiError, Object, bad_request, too_large

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LARGEST_BODY = 3 * 1024 * 1024
MOST_DISCARDED = 10 * LARGEST_BODY
BODY_SECONDS = 60
MOST_WARNING_LETTERS, MOST_WARNINGS = 4096, 50
_DURATION = re.compile(r"[+-]?(?:0|(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|µs|ms|s|m|h))+)")
"""As Go writes them: 1m30s."""
encode = msgspec.json.Encoder().encode
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("", "0", "f", "F", "false", "FALSE", "False")


class Disconnected(Exception):
    """The client went away before its answer."""


class Exchange:
    """A request as it came, and where its answer goes."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.state: dict[str, Any] = scope.get("state") or {}
        self.headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            self.headers[name] = self.headers[name] + b", " + value if name in self.headers else value
        query = scope.get("query_string") or b""
        self._query = parse_qs(query.decode("latin-1"), keep_blank_values=True) if query else {}
        self.receive, self._send = receive, send
        self.user: User = User(ANONYMOUS, (UNAUTHENTICATED,))
        self.authorise: Callable[[str], None] = lambda name: None
        """Raise 403 unless the user may do the same to the object of this name."""
        self.warnings: list[str] = []
        self.has_started = False
        self.verb, self.code = "", 0
        """What was asked for, and how it was answered; for the metrics."""

    def header(self, name: str) -> str:
        return self.headers.get(name.encode(), b"").decode("latin-1")

    def query(self, name: str) -> str:
        """The first value of a parameter; "" where it is not given."""
        return self._query.get(name, ("",))[0]

    def query_all(self, name: str) -> list[str]:
        return self._query.get(name, [])

    def has_query(self, name: str) -> bool:
        return name in self._query

    def query_flag(self, name: str) -> bool:
        value = self.query(name)
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        raise bad_request(f'strconv.ParseBool: parsing "{value}": invalid syntax: {name}')

    def query_number(self, name: str) -> int | None:
        value = self.query(name)
        if not value:
            return None
        try:
            number = int(value)
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax: {name}') from None
        if not -(2**63) <= number < 2**63:
            raise bad_request(f'strconv.ParseInt: parsing "{value}": value out of range: {name}')
        return number

    def check_timeout(self) -> None:
        """Refuse a `timeout` that is none; requests take less than the shortest that anyone asks for."""
        text = self.query("timeout")
        if text and not _DURATION.fullmatch(text):
            raise bad_request(f'invalid timeout specified in the request URL - time: invalid duration "{text}"')

    async def body(self) -> bytes:
        """All of the body; 413 if it is too much, once a client that is not too far off has sent it: one that is
        still writing would not see the answer."""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await self._whole_body()
        except TimeoutError:
            raise ApiError(408, "Timeout", f"the body has not come in {BODY_SECONDS} seconds") from None

    async def _whole_body(self) -> bytes:
        parts: list[bytes] = []
        length = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part: bytes = message.get("body") or b""
            length += len(part)
            if length > MOST_DISCARDED:
                raise too_large(LARGEST_BODY)
            if length <= LARGEST_BODY:
                parts.append(part)
            if not message.get("more_body"):
                break
        if length > LARGEST_BODY:
            raise too_large(LARGEST_BODY)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def start(
        self, code: int, content_type: bytes, length: int | None = None, more: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        headers = [(b"content-type", content_type), (b"cache-control", b"no-cache, private"), *more]
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        headers += self._warning_headers()
        self.has_started = True
        self.code = code
        await self._send({"type": "http.response.start", "status": code, "headers": headers})

    def _warning_headers(self) -> list[tuple[bytes, bytes]]:
        found: list[tuple[bytes, bytes]] = []
        letters = 0
        for warning in dict.fromkeys(self.warnings):
            text = warning.replace("\\", "\\\\").replace('"', '\\"')
            text = "".join(letter if letter.isprintable() else "?" for letter in text)
            letters += len(text)
            if letters > MOST_WARNING_LETTERS or len(found) >= MOST_WARNINGS:
                break
            found.append((b"warning", f'299 - "{text}"'.encode("latin-1", "replace")))
        return found

    async def send(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def answer(
        self,
        code: int,
        data: bytes,
        content_type: bytes = b"application/json",
        more: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        await self.start(code, content_type, len(data), more)
        await self.send(b"" if self.method == "HEAD" else data, more=False)

    async def answer_object(self, code: int, obj: Object) -> None:
        await self.answer(code, encode(obj))
