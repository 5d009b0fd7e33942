"""Who may open the pages: everybody on this machine; elsewhere who has the token, or whom the API server knows."""

import hmac
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from mooring.dashboard.sight import EVERYTHING

Next = Callable[[Request], Awaitable[Response]]
COOKIE = "mooring-dashboard"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def hosts_of(host: str) -> frozenset[str]:
    """The names by which pages at an address may be asked for; none: by any.

    A page elsewhere can have its own name point to this machine (DNS rebinding); it would send that name.
    """
    return frozenset({host, "localhost", "127.0.0.1", "[::1]", "::1"}) if is_loopback(host) else frozenset()


class Access:
    """Checks each request, and says in each answer what a browser may do with it."""

    def __init__(self, hosts: frozenset[str], guard: "Guard") -> None:
        """Every request has to name one of the hosts, if there are any, and to pass the guard."""
        self._hosts, self._guard = hosts, guard

    async def __call__(self, request: Request, call_next: Next) -> Response:
        response = self._misdirected(request) or await self._guard(request) or await call_next(request)
        response.headers.update(HEADERS)
        return response

    def _misdirected(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
        if self._hosts and name not in self._hosts:
            return PlainTextResponse("this server does not answer to that Host", status_code=421)
        return None


Guard = Callable[[Request], Awaitable[Response | None]]
"""Lets a request in, with `request.state.sight` saying how much it is shown, or answers in place of the page."""


async def everybody(request: Request) -> Response | None:
    """For an address that only this machine reaches."""
    request.state.sight = EVERYTHING
    return None


class ByOneToken:
    """Lets in who has the token of the link that was printed."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def __call__(self, request: Request) -> Response | None:
        request.state.sight = EVERYTHING
        given = request.query_params.get("token")
        if given is not None and self._is_right(given):  # from the link: kept by the browser, out of its address bar
            rest = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
            return with_cookie(request, request.url.path + (f"?{urlencode(rest)}" if rest else ""), given)
        if self._is_right(bearer_of(request)):
            return None
        text = "a token is needed: open the link that mooring dashboard printed, or send Authorization: Bearer TOKEN"
        return PlainTextResponse(text, status_code=401, headers={"WWW-Authenticate": "Bearer"})

    def _is_right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def bearer_of(request: Request) -> str:
    """The token that a program sends, or that a browser keeps."""
    sent = request.headers.get("authorization", "")
    return sent.removeprefix("Bearer ").strip() if sent else request.cookies.get(COOKIE, "")


def with_cookie(request: Request, address: str, token: str) -> Response:
    """Lead a browser to an address, and let it keep a token."""
    answer = RedirectResponse(address, status_code=303)
    answer.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer
