"""Lets in whom the API server knows, and shows each what the API server lets them read.

A token is sent in a TokenReview, its user in SubjectAccessReviews: whether it may list pods everywhere or in which of
the namespaces, nodes, and ClusterQueues. The answers are kept for a while.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from mooring.dashboard.access import COOKIE, bearer_of, with_cookie
from mooring.dashboard.sight import NOTHING, Sight
from mooring.drivers.live.access import MOST_TOKEN_CHARACTERS, AccessReviews, User
from mooring.drivers.live.api.client import ApiError

KEPT_SECONDS = 10.0
MOST_KEPT = 1000
AT_ONCE = 16
"""Reviews under way at a time, for a user without rights everywhere in a cluster of many namespaces."""
LOGIN, OPEN = "/login", ("/static/",)
_SAYS = {401: "a token of the cluster is needed", 403: "this user may list no pods, nodes or queues of the cluster"}


class ByReviews:
    """A guard that asks the API server."""

    def __init__(
        self, reviews: AccessReviews, namespaces: Callable[[], Iterable[str]], now: Callable[[], float] = time.monotonic
    ) -> None:
        """`namespaces` gives those that there are now."""
        self._reviews, self._namespaces, self._now = reviews, namespaces, now
        self._kept: dict[bytes, tuple[float, Sight | None]] = {}

    async def __call__(self, request: Request) -> Response | None:
        path = request.url.path
        if path.startswith(OPEN):
            return None
        if path == LOGIN and request.method == "POST":
            return await self._log_in(request)
        if path == LOGIN:
            request.state.sight = NOTHING
            return None
        try:
            sight = await self.sight_of(bearer_of(request))
        except (ApiError, msgspec.MsgspecError):
            return PlainTextResponse("the API server does not say who may see what", status_code=503)
        if sight is not None and not sight.is_blind:
            request.state.sight = sight
            return None
        is_browser = "text/html" in request.headers.get("accept", "")
        if is_browser and sight is None:
            return RedirectResponse(LOGIN, status_code=303)
        code = 401 if sight is None else 403
        headers = {"WWW-Authenticate": "Bearer"} if sight is None else {}
        return PlainTextResponse(_SAYS[code], status_code=code, headers=headers)

    async def _log_in(self, request: Request) -> Response:
        form = await request.form(max_files=0, max_fields=1)
        token = str(form.get("token", "")).strip()
        try:
            sight = await self.sight_of(token)
        except (ApiError, msgspec.MsgspecError):
            return RedirectResponse(f"{LOGIN}?problem=unknown", status_code=303)
        if sight is None or sight.is_blind:
            problem = "token" if sight is None else "rights"
            answer = RedirectResponse(f"{LOGIN}?problem={problem}", status_code=303)
            answer.delete_cookie(COOKIE)
            return answer
        return with_cookie(request, "/", token)

    async def sight_of(self, token: str) -> Sight | None:
        """What the user of a token may see; None if it is nobody's token."""
        if not token or len(token) > MOST_TOKEN_CHARACTERS:
            return None
        key = hashlib.sha256(token.encode()).digest()
        kept = self._kept.get(key)
        if kept is not None and self._now() < kept[0]:
            return kept[1]
        user = await self._reviews.user_of(token)
        found = None if user is None else await self._ask(user)
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[key] = self._now() + KEPT_SECONDS, found
        return found

    async def _ask(self, user: User) -> Sight:
        everywhere, nodes, queues = await asyncio.gather(
            self._may_list(user, "pods"),
            self._may_list(user, "nodes"),
            self._may_list(user, "clusterqueues", "kueue.x-k8s.io"),
        )
        if everywhere:
            return Sight(None, nodes, queues)
        room = asyncio.Semaphore(AT_ONCE)

        async def may(namespace: str) -> bool:
            async with room:
                return await self._may_list(user, "pods", namespace=namespace)

        there = sorted(set(self._namespaces()))
        allowed = await asyncio.gather(*map(may, there))
        return Sight(frozenset(name for name, is_so in zip(there, allowed, strict=True) if is_so), nodes, queues)

    async def _may_list(self, user: User, resource: str, group: str = "", namespace: str = "") -> bool:
        attributes = {"verb": "list", "resource": resource, "group": group, "namespace": namespace}
        return await self._reviews.may(user, {"resourceAttributes": attributes})
