"""Who may open the pages: everybody on this machine, elsewhere only who has the token."""

import hmac
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

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

    def __init__(self, hosts: frozenset[str], token: str = "") -> None:
        """Without a token, every request that names a host of ours is let in."""
        self._hosts, self._token = hosts, token

    async def __call__(self, request: Request, call_next: Next) -> Response:
        response = self._refusal(request) or await call_next(request)
        response.headers.update(HEADERS)
        return response

    def _refusal(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
        if self._hosts and name not in self._hosts:
            return PlainTextResponse("this server does not answer to that Host", status_code=421)
        if not self._token:
            return None
        given = request.query_params.get("token")
        if given is not None and self._is_right(given):  # from the link: kept by the browser, out of its address bar
            rest = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
            answer = RedirectResponse(request.url.path + (f"?{urlencode(rest)}" if rest else ""), status_code=303)
            answer.set_cookie(COOKIE, given, httponly=True, samesite="strict", secure=request.url.scheme == "https")
            return answer
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._is_right(bearer) or self._is_right(request.cookies.get(COOKIE, "")):
            return None
        text = "a token is needed: open the link that mooring dashboard printed, or send Authorization: Bearer TOKEN"
        return PlainTextResponse(text, status_code=401, headers={"WWW-Authenticate": "Bearer"})

    def _is_right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())
