"""Whether we may do what scheduling takes: who may read a cluster need not be one who may bind.

The API server is asked now and then, and when it has refused something. What it says is logged and shown by readiness;
nothing else depends on it: what is refused is dealt with where it is refused.
"""

import asyncio
import logging
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import msgspec

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.requests import encode
from mooring.drivers.live.checks import Check

PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
FORBIDDEN = 403
ASK_SECONDS = 180.0
"""How often it is asked, while nothing is refused."""
SOONEST_SECONDS = 10.0
"""How soon it is asked again after a refusal: there may be thousands."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Right:
    """Something that we do, and what would not be done without it."""

    verb: str
    group: str
    resource: str
    subresource: str
    loss: str
    is_needed: bool = False

    @property
    def name(self) -> str:
        """As people say it: create pods/binding, create events.events.k8s.io."""
        within = f".{self.group}" if self.group else ""
        below = f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {self.resource}{within}{below}"


RIGHTS = (
    Right("create", "", "pods", "binding", "no pod can be bound", is_needed=True),
    Right("patch", "", "pods", "status", "pods are not told why they wait"),
    Right("delete", "", "pods", "", "nobody can be evicted"),
    Right("create", "events.k8s.io", "events", "", "no events are written"),
)


class _Verdict(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _Verdict


_decode = msgspec.json.Decoder(_Review).decode


class Rights:
    """What the API server says of our rights, in all namespaces or in those that are ours."""

    def __init__(self, client: Client, namespaces: Collection[str] = ()) -> None:
        self._client, self._namespaces = client, sorted(namespaces) or [""]
        self._refused = asyncio.Event()
        self._denied: dict[Right, str] = {}
        """What we may not do, and where."""
        self._was_asked = False

    def note(self, code: int) -> None:
        """A request was answered so: after a refusal, look what has changed."""
        if code == FORBIDDEN:
            self._refused.set()

    async def run(self) -> None:
        """Ask again and again."""
        while True:
            asked = time.monotonic()
            await self.ask()
            self._refused.clear()
            try:
                async with asyncio.timeout(ASK_SECONDS):
                    await self._refused.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(asked + SOONEST_SECONDS - time.monotonic())

    async def ask(self) -> None:
        """Ask once. A server that cannot say changes nothing."""
        try:
            for right in RIGHTS:
                places = [place for place in self._namespaces if not await self._is_allowed(right, place)]
                self._take(right, _where(places) if places else "")
        except (ApiError, msgspec.MsgspecError) as error:
            _log.debug("which rights we have could not be found out: %s", error)
        self._was_asked = True

    async def _is_allowed(self, right: Right, namespace: str) -> bool:
        attributes = {"verb": right.verb, "group": right.group, "resource": right.resource, "namespace": namespace}
        if right.subresource:
            attributes["subresource"] = right.subresource
        body: dict[str, Any] = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        return _decode(await self._client.post(PATH, encode(body))).status.allowed

    def _take(self, right: Right, where: str) -> None:
        if where == self._denied.get(right, ""):
            return
        if where:
            self._denied[right] = where
            level = logging.ERROR if right.is_needed else logging.WARNING
            _log.log(level, "this user may not %s %s: %s", right.name, where, right.loss)
        else:
            del self._denied[right]
            _log.info("this user may %s now", right.name)

    def checks(self) -> list[Check]:
        """What we may not do; who cannot bind is not ready."""
        if not self._was_asked:
            return [Check("rights", "the API server has not said yet whether pods may be bound")]
        return [
            Check(f"right-to-{right.name.replace(' ', '-')}", f"not given {where}: {right.loss}", right.is_needed)
            for right, where in self._denied.items()
        ]


def _where(namespaces: list[str]) -> str:
    return "in all namespaces" if namespaces == [""] else f"in namespace {', '.join(namespaces)}"
