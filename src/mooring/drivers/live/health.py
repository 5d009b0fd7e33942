"""Health, readiness and metrics over HTTP: /livez, /healthz, /readyz and /metrics, as kube-scheduler has them."""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from mooring.errors import InputError


@dataclass(frozen=True)
class Check:
    """One thing that has to be in order, and whether it is."""

    name: str
    problem: str = ""
    is_needed: bool = True
    """If not, it is said and nothing more: service goes on without it."""


class HealthServer:
    """Answers on one address; `checks` says how things stand, `metrics` gives what Prometheus reads."""

    def __init__(self, address: str, checks: Callable[[], list[Check]], metrics: Callable[[], bytes]) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise InputError(f"--health-address: expected HOST:PORT, found {address!r}")
        self._host, self._port = host.strip("[]"), int(port)
        self._checks, self._metrics = checks, metrics
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/livez", self._live)
        app.router.add_get("/healthz", self._live)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._measure)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            raise InputError(f"--health-address: {self._host}:{self._port}: {str(error.strerror).lower()}") from error

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _live(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _ready(self, request: web.Request) -> web.Response:
        """Ready if everything needed is; what is done without is listed too."""
        checks = self._checks()
        lines = [
            f"[+]{check.name} ok"
            if not check.problem
            else f"[{'-' if check.is_needed else '~'}]{check.name} {check.problem}"
            for check in checks
        ]
        failed = any(check.problem and check.is_needed for check in checks)
        lines.append("readyz check failed" if failed else "readyz check passed")
        return web.Response(status=503 if failed else 200, text="\n".join(lines) + "\n")

    async def _measure(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
