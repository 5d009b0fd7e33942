"""Health, metrics and configuration over HTTP: /livez, /healthz, /readyz, /metrics and /configz, as kube-scheduler
has them."""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from mooring.drivers.live.access import Access
from mooring.drivers.live.checks import Check
from mooring.errors import InputError

OPEN_PATHS = frozenset(("/livez", "/healthz", "/readyz"))
"""What anybody may read, for kubelets have no token: kube-scheduler's --authorization-always-allow-paths."""


@dataclass(frozen=True)
class Served:
    """What is told about a run."""

    alive: Callable[[], list[Check]]
    """Whether it works; one that does not is to be started anew."""
    ready: Callable[[], list[Check]]
    metrics: Callable[[], bytes]
    configuration: Callable[[], bytes]


class HealthServer:
    """Answers on one address, by plain HTTP or by TLS; `may_read` says of a header and a path whether it is told."""

    def __init__(
        self,
        option: str,
        address: str,
        served: Served,
        *,
        tls: ssl.SSLContext | None = None,
        may_read: Callable[[str, str], Awaitable[Access]] | None = None,
    ) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise InputError(f"{option}: expected HOST:PORT, found {address!r}")
        self._option, self._host, self._port = option, host.strip("[]"), int(port)
        self._served, self._tls, self._may_read = served, tls, may_read
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/livez", self._live)
        app.router.add_get("/healthz", self._live)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._measure)
        app.router.add_get("/configz", self._configure)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port, ssl_context=self._tls).start()
        except OSError as error:
            raise InputError(f"{self._option}: {self._host}:{self._port}: {str(error.strerror).lower()}") from error

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if self._may_read is not None and request.path not in OPEN_PATHS:
            access = await self._may_read(request.headers.get("Authorization", ""), request.path)
            if access is not Access.ALLOWED:
                return web.Response(status=access.value, text=f"{access.name.capitalize()}\n")
        return await handler(request)

    async def _live(self, request: web.Request) -> web.Response:
        failed = [check for check in self._served.alive() if check.problem]
        return _checked("livez", failed) if failed else web.Response(text="ok")

    async def _ready(self, request: web.Request) -> web.Response:
        """Ready if everything needed is; what is done without is listed too."""
        return _checked("readyz", self._served.ready())

    async def _measure(self, request: web.Request) -> web.Response:
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=self._served.metrics(), headers=headers)

    async def _configure(self, request: web.Request) -> web.Response:
        return web.Response(body=self._served.configuration(), content_type="application/json")


def _checked(name: str, checks: list[Check]) -> web.Response:
    lines = [
        f"[+]{check.name} ok"
        if not check.problem
        else f"[{'-' if check.is_needed else '~'}]{check.name} {check.problem}"
        for check in checks
    ]
    failed = any(check.problem and check.is_needed for check in checks)
    lines.append(f"{name} check {'failed' if failed else 'passed'}")
    return web.Response(status=503 if failed else 200, text="\n".join(lines) + "\n")
