"""A proxy before an API server that does what networks and servers do on bad days, by a seed.

It speaks plain HTTP to the client and passes everything on. Which faults it makes, a test says at any time.
"""

import asyncio
import json
import random
import ssl
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web
from control_plane import free_port
from kube import Kube

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "content-encoding"}


@dataclass
class Faults:
    """How often each thing goes wrong, from 0 to 1."""

    conflict: float = 0.0
    """409 to a write that was not passed on."""
    too_many: float = 0.0
    """429 with Retry-After."""
    error: float = 0.0
    """500, the request not passed on."""
    lost_answer: float = 0.0
    """The request is carried out, and the connection breaks before the answer."""
    slow: float = 0.0
    """The answer comes a second late."""
    dropped_watch: float = 0.0
    """A watch breaks off, looked at after each piece of it."""
    is_hanging: bool = False
    """Nothing is answered at all."""
    is_failing: bool = False
    """500 to everything but watches that are open."""
    denied: str = ""
    """403 to every write to a path with this in it."""
    counted: Counter[str] = field(default_factory=Counter)


class FaultyProxy:
    """Use it as a context manager; it runs on a thread of its own."""

    def __init__(self, server: str, seed: int = 0) -> None:
        self._server = server
        self._random = random.Random(seed)
        self.faults = Faults()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self.bound: dict[str, list[str]] = {}
        """By the uid of each pod, the nodes to which the API server has bound it, whether or not that was heard of."""

        self._watches: set[asyncio.Future[None]] = set()

    def drop_watches(self) -> None:
        """Break off every watch that is open."""
        self._loop.call_soon_threadsafe(self._drop_watches)

    def _drop_watches(self) -> None:
        for each in self._watches:
            if not each.done():
                each.set_result(None)

    def __enter__(self) -> "FaultyProxy":
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *raised: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # cancels what is left, such as broken watches
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            skip_auto_headers=("Accept-Encoding",),  # else long answers come packed, and nobody asked
        ) as session:
            self._session = session
            app = web.Application(client_max_size=1 << 26)
            app.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", self.port).start()
            self._ready.set()
            await self._stop.wait()
            await runner.cleanup()
            await asyncio.sleep(0.1)

    def _happens(self, name: str, chance: float) -> bool:
        if chance and self._random.random() < chance:
            self.faults.counted[name] += 1
            return True
        return False

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        faults = self.faults
        while faults.is_hanging:
            await asyncio.sleep(0.05)
        is_watch = request.query.get("watch") == "true"
        is_write = request.method != "GET"
        if faults.is_failing:
            faults.counted["failing"] += 1
            return _status(500, "InternalError")
        if is_write and faults.denied and faults.denied in request.path:
            faults.counted["403"] += 1
            return _status(403, "Forbidden")
        if self._happens("429", faults.too_many):
            return _status(429, "TooManyRequests", {"Retry-After": "1"})
        if self._happens("500", faults.error):
            return _status(500, "InternalError")
        if is_write and self._happens("409", faults.conflict):
            return _status(409, "Conflict")
        if self._happens("slow", faults.slow):
            await asyncio.sleep(1.0)
        body = await request.read()
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP}
        try:
            async with self._session.request(
                request.method, self._server + request.raw_path, data=body or None, headers=headers
            ) as answer:
                if is_watch and answer.status == 200:
                    return await self._stream(request, answer)
                content = await answer.read()
                self._note_bind(request, body, answer.status)
                if is_write and self._happens("lost answer", faults.lost_answer):
                    _break(request)
                return web.Response(status=answer.status, body=content, headers=_kept(answer.headers.items()))
        except (aiohttp.ClientError, OSError):
            _break(request)
            return web.Response(status=502)

    def _note_bind(self, request: web.Request, body: bytes, status: int) -> None:
        if request.method == "POST" and request.path.endswith("/binding") and status < 300:
            binding = json.loads(body)
            self.bound.setdefault(binding["metadata"]["uid"], []).append(binding["target"]["name"])

    async def _stream(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(headers=_kept(answer.headers.items()))
        await response.prepare(request)
        dropped = self._loop.create_future()
        self._watches.add(dropped)
        chunks = answer.content.iter_any()
        try:
            while True:
                chunk = asyncio.ensure_future(anext(chunks, b""))
                await asyncio.wait({chunk, dropped}, return_when=asyncio.FIRST_COMPLETED)
                if dropped.done():
                    _break(request)
                    break
                if not chunk.result():
                    break
                while self.faults.is_hanging:
                    await asyncio.sleep(0.05)
                await response.write(chunk.result())
                if self._happens("dropped watch", self.faults.dropped_watch):
                    _break(request)
                    break
        finally:
            self._watches.discard(dropped)
            chunk.cancel()
        return response


@contextmanager
def behind_proxy(kube: Kube, seed: int = 7) -> Iterator[FaultyProxy]:
    """The schedulers that a test starts on this cluster come by a proxy; the test itself does not."""
    with FaultyProxy(kube.server, seed) as proxy:
        kube.kubeconfig = kube.directory / "proxied.kubeconfig"
        kube.kubeconfig.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            f"clusters: [{{name: c, cluster: {{server: '{proxy.url}'}}}}]\n"
            f"users: [{{name: c, user: {{token: {kube.token}}}}}]\n"
            "contexts: [{name: c, context: {cluster: c, user: c}}]\n"
        )
        try:
            yield proxy
        finally:
            proxy.faults = Faults()


def _break(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _kept(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {key: value for key, value in headers if key.lower() not in _HOP}


def _status(code: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": f"the proxy says {code}",
        "reason": reason,
        "code": code,
    }
    return web.json_response(status, status=code, headers=headers)
