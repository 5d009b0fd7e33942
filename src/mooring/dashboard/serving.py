"""Serves the pages until it is told to stop."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import uvicorn

from mooring.dashboard.access import Access, ByOneToken, Guard, everybody, hosts_of, is_loopback
from mooring.dashboard.app import make_app
from mooring.dashboard.following import Following, follow, read_plans
from mooring.dashboard.rights import ByReviews
from mooring.dashboard.watching import Watching
from mooring.drivers.live.access import AccessReviews
from mooring.drivers.live.dashboard_process import listen
from mooring.drivers.offline.reading import Inputs

GRACE_SECONDS = 1
"""How long open pages, which wait for the next picture, keep a server from ending."""
AccessBy = Literal["token", "cluster"]


class Serving:
    """A server that has its port already, so that its link can be printed before it answers."""

    def __init__(
        self, address: str, access: AccessBy | None = None, decision_log: Path | None = None, option: str = "--address"
    ) -> None:
        """Without a way of access, everybody on this machine may open the pages of a loopback address, and who has the
        token of the link those of another."""
        self._socket = listen(address, option)
        host = str(self._socket.getsockname()[0])
        self._host, self._access, self._log = host, access, decision_log
        needs_token = access == "token" or (access is None and not is_loopback(host))
        self._token = secrets.token_urlsafe(24) if needs_token else ""
        shown = f"[{host}]" if ":" in host else host
        query = f"?token={self._token}" if self._token else ""
        self.link = f"http://{shown}:{self._socket.getsockname()[1]}/{query}"

    def run(self, watching: Watching) -> None:
        """Answer requests about manifests until a signal comes."""
        asyncio.run(self._serve(watching, ByOneToken(self._token) if self._token else everybody))

    def run_following(
        self, inputs: Inputs, every_seconds: float, tell: Callable[[str], None], *, has_plans: bool = False
    ) -> None:
        """Follow a cluster and answer requests about it until a signal comes; `tell` gets the link when it is read.

        `has_plans`: the scheduler of the cluster writes its plans to standard input, and we end with it.
        """
        asyncio.run(self._follow(inputs, every_seconds, tell, has_plans))

    async def _follow(self, inputs: Inputs, every: float, tell: Callable[[str], None], has_plans: bool) -> None:
        async with follow(inputs, every) as following:
            tell(self.link)
            plans = asyncio.ensure_future(read_plans(following)) if has_plans else None
            try:
                await self._serve(following, self._guard(following))
            finally:
                if plans is not None:
                    plans.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await plans

    def _guard(self, following: Following) -> Guard:
        if self._access == "cluster":
            return ByReviews(AccessReviews(following.client), lambda: following.namespaces)
        return ByOneToken(self._token) if self._token else everybody

    async def _serve(self, watching: Watching, guard: Guard) -> None:
        app = make_app(watching, Access(hosts_of(self._host), guard), self._log)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            server_header=False,
            lifespan="off",
        )
        await uvicorn.Server(config).serve(sockets=[self._socket])
