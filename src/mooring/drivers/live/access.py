"""Whether a client may read what a scheduler serves: the API server is asked, as kube-scheduler asks it.

A bearer token is sent to it in a TokenReview, and the user whom that names in a SubjectAccessReview for the path. Both
answers are kept for a while, so that a scraper costs two requests now and then.
"""

import hashlib
import time
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.requests import encode

KEPT_SECONDS = 10.0
"""As kube-scheduler keeps both answers."""
MOST_KEPT = 1000
MOST_TOKEN_CHARACTERS = 16_384


class Access(Enum):
    """What becomes of a request: the code of the answer."""

    ALLOWED = 200
    UNAUTHENTICATED = 401
    FORBIDDEN = 403
    UNKNOWN = 503
    """The API server does not answer."""


class User(msgspec.Struct):
    """As the API server names who a token is of."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: User | None = None


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


class AccessReviews:
    """Asks the API server about clients."""

    def __init__(self, client: Client, now: Callable[[], float] = time.monotonic) -> None:
        self._client, self._now = client, now
        self._kept: dict[tuple[bytes, str], tuple[float, Access]] = {}

    async def of(self, authorization: str, path: str) -> Access:
        """Whether the client with this Authorization header may read this path."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > MOST_TOKEN_CHARACTERS:
            return Access.UNAUTHENTICATED
        key = hashlib.sha256(token.encode()).digest(), path
        kept = self._kept.get(key)
        if kept is not None and self._now() < kept[0]:
            return kept[1]
        try:
            found = await self._ask(token, path)
        except (ApiError, msgspec.MsgspecError):
            return Access.UNKNOWN
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[key] = self._now() + KEPT_SECONDS, found
        return found

    async def _ask(self, token: str, path: str) -> Access:
        user = await self.user_of(token)
        if user is None:
            return Access.UNAUTHENTICATED
        allowed = await self.may(user, {"nonResourceAttributes": {"path": path, "verb": "get"}})
        return Access.ALLOWED if allowed else Access.FORBIDDEN

    async def user_of(self, token: str) -> User | None:
        """Who a token is of; None if it is nobody's. Raises ApiError or MsgspecError where the server does not tell."""
        status = (await self._review("authentication", "TokenReview", {"token": token}, _TokenReview)).status
        return status.user if status.authenticated else None

    async def may(self, user: User, attributes: dict[str, dict[str, str]]) -> bool:
        """Whether a user may do what the attributes of a SubjectAccessReview say. Raises as `user_of` does."""
        spec = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            **attributes,
        }
        review = await self._review("authorization", "SubjectAccessReview", spec, _AccessReview)
        return bool(review.status.allowed)

    async def _review(self, group: str, kind: str, spec: dict[str, Any], type_: type[Any]) -> Any:
        body = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, "spec": spec}
        answer = await self._client.post(f"/apis/{group}.k8s.io/v1/{kind.lower()}s", encode(body))
        return msgspec.json.decode(answer, type=type_)
