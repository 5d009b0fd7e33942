"""GET with watch: a stream of changes, one JSON document a line, that lasts until one side has had enough."""

import asyncio
import random
import time
from collections.abc import Iterable

from mooring.kubeapi.api import Api
from mooring.kubeapi.http.bodies import Shape
from mooring.kubeapi.http.exchange import Disconnected, Exchange, encode
from mooring.kubeapi.http.paths import Target
from mooring.kubeapi.http.reading import list_options
from mooring.kubeapi.status import ApiError, FieldError, Object, invalid, too_large_revision
from mooring.kubeapi.store.records import ADDED, Record
from mooring.kubeapi.store.watch import Watch

SHORTEST_SECONDS = 1800
"""A watch without timeoutSeconds lasts between this and twice this."""
BOOKMARK_SECONDS = 60.0
AT_ONCE, AT_ONCE_BYTES = 500, 128 * 1024
"""Events of one write to the connection, and the bytes after which no more are added."""
SLOWEST_SECONDS = 60.0
"""How long one such write may wait for a client that does not read; then the watch ends."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


async def watch_objects(exchange: Exchange, api: Api, target: Target, shape: Shape) -> None:
    """Answer a watch, from its first event to its end."""
    options = list_options(exchange, api, shape.resource, target)
    initial = _wants_initial_events(exchange, options.resource_version, options.match)
    bookmarks = exchange.query_flag("allowWatchBookmarks")
    namespace = target.namespace if shape.resource.namespaced else None
    storage = shape.resource.storage
    stream = _Stream(exchange, shape)
    records: list[Record] = []
    since = options.revision
    try:
        if initial:
            if since > api.store.revision:
                raise too_large_revision(since, api.store.revision)
            found = api.store.records(storage, namespace)
            records = [record for record in found if options.selects is None or options.selects(record)]
            since = api.store.revision
        watch = api.store.watch(storage, namespace, since, options.selects)
    except ApiError as error:
        await stream.start()
        await stream.fail(error)
        return
    try:
        if initial:
            await api.store.committed(since)
        await stream.start()
        await stream.objects(records)
        if initial and exchange.has_query("sendInitialEvents") and bookmarks:
            await stream.bookmark(since, {INITIAL_EVENTS_END: "true"})
        await _follow(exchange, api, watch, stream, bookmarks=bookmarks)
    finally:
        api.store.unwatch(watch)


def _wants_initial_events(exchange: Exchange, resource_version: str, match: str) -> bool:
    if not exchange.has_query("sendInitialEvents"):
        return resource_version in ("", "0")
    if match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        error = FieldError("FieldValueForbidden", "resourceVersionMatch", detail)
        raise invalid("meta.k8s.io", "ListOptions", "", [error])
    return exchange.query_flag("sendInitialEvents")


async def _follow(exchange: Exchange, api: Api, watch: Watch, stream: "_Stream", *, bookmarks: bool) -> None:
    """Pass on what happens until the time is up, the client has gone, or the watch is over."""
    loop = asyncio.get_running_loop()
    seconds = exchange.query_number("timeoutSeconds") or random.uniform(SHORTEST_SECONDS, 2 * SHORTEST_SECONDS)
    ends_at = time.monotonic() + seconds
    woken = asyncio.Event()
    watch.on_change(woken.set)
    gone = loop.create_task(_wait_until_gone(exchange, watch))
    try:
        while True:
            woken.clear()
            while changes := watch.take(AT_ONCE, AT_ONCE_BYTES):
                await stream.events(changes)
            if watch.is_over:
                break
            left = ends_at - time.monotonic()
            if left <= 0:
                if bookmarks:
                    await stream.bookmark(api.store.published)
                break
            try:
                async with asyncio.timeout(min(left, BOOKMARK_SECONDS)):
                    await woken.wait()
            except TimeoutError:
                if bookmarks and not watch.waiting:
                    await stream.bookmark(api.store.published)
        await stream.end()
    finally:
        watch.on_change(None)
        gone.cancel()


async def _wait_until_gone(exchange: Exchange, watch: Watch) -> None:
    while (await exchange.receive())["type"] != "http.disconnect":
        pass
    watch.end()


class _Stream:
    """The lines of a watch, in the form that the client wants."""

    def __init__(self, exchange: Exchange, shape: Shape) -> None:
        self._exchange, self._shape = exchange, shape
        self._has_columns = False

    async def start(self) -> None:
        await self._exchange.start(200, b"application/json")
        await self._exchange.send(b"", more=True)

    async def objects(self, records: list[Record]) -> None:
        pending, size = [], 0
        for record in records:
            pending.append((ADDED, record))
            size += len(record.data)
            if len(pending) >= AT_ONCE or size >= AT_ONCE_BYTES:
                await self.events(pending)
                pending, size = [], 0
        if pending:
            await self.events(pending)

    async def events(self, events: Iterable[tuple[str, Record]]) -> None:
        lines = [
            b"".join((b'{"type":"', type_.encode(), b'","object":', self._written(record), b"}\n"))
            for type_, record in events
        ]
        try:
            async with asyncio.timeout(SLOWEST_SECONDS):
                await self._exchange.send(b"".join(lines), more=True)
        except TimeoutError:
            if (abort := self._exchange.state.get("abort")) is not None:
                abort()  # closing would wait for what was written to be read
            raise Disconnected from None

    def _written(self, record: Record) -> bytes:
        if self._shape.form.kind != "Table":
            return self._shape.record(record)
        from mooring.kubeapi.conversion import from_storage

        obj = from_storage(self._shape.resource, self._shape.version, record.decode())
        table = self._shape.table([obj], with_columns=not self._has_columns)
        self._has_columns = True
        return encode(table)

    async def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> None:
        metadata: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        resource, form = self._shape.resource, self._shape.form
        kind, api_version = resource.kind, resource.api_version(self._shape.version)
        if form.kind:
            kind, api_version = form.kind, form.api_version
        obj: Object = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
        if form.kind == "Table":
            obj = {
                **obj,
                "columnDefinitions": None,
                "rows": [
                    {
                        "cells": [],
                        "object": {
                            "kind": "PartialObjectMetadata",
                            "apiVersion": form.api_version,
                            "metadata": metadata,
                        },
                    }
                ],
            }
        await self._exchange.send(encode({"type": "BOOKMARK", "object": obj}) + b"\n", more=True)

    async def fail(self, error: ApiError) -> None:
        await self._exchange.send(encode({"type": "ERROR", "object": error.status}) + b"\n", more=False)

    async def end(self) -> None:
        await self._exchange.send(b"", more=False)
