"""One kind of a cluster, followed: listed in chunks, then watched from there on, for as long as it takes.

A watch that ends is resumed where it ended. Where the server no longer knows that place (410), everything is listed
anew, and what is gone since is taken away. Whatever fails is tried again, later and later.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Protocol

import msgspec

from mooring.drivers.live.api.backoff import Backoff
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.discovery import Resource
from mooring.model.api.meta import ObjectMeta

CHUNK = 1000
"""Objects a request of a list."""
WATCH_SECONDS = (300, 600)
"""How long a watch lasts before the server ends it, drawn for each."""
GATHER_SECONDS = 0.005
"""How long what arrives after something has is left to gather, so that it is read at once."""
GONE = 410
_log = logging.getLogger(__name__)


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Head(msgspec.Struct):
    """Of an object, who it is; of a Status, why a watch ended."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    code: int = 0
    message: str = ""


_decode_list = msgspec.json.Decoder(_List).decode
_decode_line = msgspec.json.Decoder(_WatchEvent).decode
decode_head = msgspec.json.Decoder(Head).decode
Name = tuple[str, str]
"""Namespace and name."""


class Sink(Protocol):
    """Who is told of objects."""

    def put(self, resource: Resource, raw: msgspec.Raw) -> ObjectMeta:
        """Here is an object as it is now; say who it is."""

    def remove(self, resource: Resource, name: Name) -> None:
        """It is gone."""


class Informer:
    """Follows one kind, and tells the sink of it."""

    def __init__(self, client: Client, resource: Resource, sink: Sink, on_change: Callable[[], None]) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.problem = ""
        """Why it is not followed at the moment."""
        self.watches = 0
        """How many watches were opened so far, relists not counted."""
        self.relists = 0
        self._client, self._sink, self._on_change = client, sink, on_change
        self._version = ""
        self._known: set[Name] = set()

    @property
    def version(self) -> int:
        """Up to which version it has been followed; 0 while it is listed anew."""
        return int(self._version or 0)

    async def run(self) -> None:
        """Follow it until cancelled."""
        backoff = Backoff()
        while True:
            retry_after = 0.0
            try:
                if not self._version:
                    await self.list_all()
                await self._watch(backoff)
            except ApiError as error:
                retry_after = error.retry_after
                if error.code == GONE:
                    self._version = ""
                else:
                    self._say(f"{error.code} {error.reason}: {error.message}" if error.code else error.message)
            except Exception as error:  # a kind that nobody follows any more would be a scheduler that sees nothing
                _log.exception("%s is listed anew after a fault", self.resource.name)
                self._version = ""
                self._say(f"{type(error).__name__}: {error}")
            await asyncio.sleep(backoff.next(retry_after))

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            if problem:
                _log.warning("%s cannot be followed: %s", self.resource.name, problem)
            else:
                _log.info("%s is followed again", self.resource.name)
        self.problem = problem
        self._on_change()

    async def _page(self, token: str) -> bytes:
        after = f"&continue={token}" if token else ""
        return await self._client.get(f"{self.resource.path()}?limit={CHUNK}{after}")

    async def list_all(self) -> None:
        """Take in everything there is, and away what is not there any more."""
        seen: set[Name] = set()
        page = asyncio.ensure_future(self._page(""))
        try:
            while True:
                listed = _decode_list(await page)
                token = listed.metadata.continue_
                if token:  # the server prepares the next page while this one is taken in
                    page = asyncio.ensure_future(self._page(token))
                    await asyncio.sleep(0)
                for raw in listed.items or ():
                    metadata = self._sink.put(self.resource, raw)
                    seen.add((metadata.namespace, metadata.name))
                self._on_change()
                if not token:
                    break
        finally:
            page.cancel()
        for name in self._known - seen:
            self._sink.remove(self.resource, name)
        self._known = seen
        self._version = listed.metadata.resource_version
        self.relists += 1
        self.synced.set()
        self._on_change()

    async def _watch(self, backoff: Backoff) -> None:
        seconds = random.randint(*WATCH_SECONDS)
        path = (
            f"{self.resource.path()}?watch=true&allowWatchBookmarks=true"
            f"&resourceVersion={self._version}&timeoutSeconds={seconds}"
        )
        self.watches += 1
        async with self._client.stream(path) as chunks:
            self._say("")
            rest = b""
            async for chunk in chunks:
                lines = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
                rest = lines.pop()
                for line in lines:
                    if line:
                        self._take(line)
                if lines:
                    backoff.reset()
                    self._on_change()
                    await asyncio.sleep(GATHER_SECONDS)

    def _take(self, line: bytes) -> None:
        found = _decode_line(line)
        match found.type:
            case "ADDED" | "MODIFIED":
                metadata = self._sink.put(self.resource, found.object)
                self._known.add((metadata.namespace, metadata.name))
                self._version = metadata.resource_version
            case "DELETED":
                metadata = decode_head(found.object).metadata
                self._known.discard((metadata.namespace, metadata.name))
                self._sink.remove(self.resource, (metadata.namespace, metadata.name))
                self._version = metadata.resource_version
            case "BOOKMARK":
                self._version = decode_head(found.object).metadata.resource_version
            case "ERROR":
                status = decode_head(found.object)
                raise ApiError(status.code, "Watch", status.message)
