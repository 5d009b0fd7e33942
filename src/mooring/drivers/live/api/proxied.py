"""Requests to an API server by way of a proxy: a general client's, since few clusters are reached so."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from mooring.drivers.live.api.connections import MaySend, NotSent, Reply

KEPT_SECONDS = 60.0
"""How long a connection may be idle."""


class Proxied:
    """One API server behind a proxy. What goes wrong on the way is an OSError, as on connections of our own."""

    def __init__(self, base: str, proxy: str, tls: ssl.SSLContext | None, server_name: str | None, agent: str) -> None:
        self._base, self._proxy, self._server_name = base, proxy, server_name
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls or False, keepalive_timeout=KEPT_SECONDS),
            headers={"User-Agent": agent},
            skip_auto_headers=("Accept-Encoding",),
            auto_decompress=True,
        )

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        seconds: float,
        may_send: MaySend | None = None,
    ) -> Reply:
        """Send a request and return its answer; raise OSError if there is none, TimeoutError if not in time.

        `may_send` is asked when there is a connection, before the body leaves; raise NotSent if it says no.
        """
        is_kept_back = False

        async def content() -> AsyncIterator[bytes]:
            nonlocal is_kept_back
            is_kept_back = may_send is not None and not may_send()
            if is_kept_back:
                raise NotSent
            yield body or b""

        if body is not None:
            headers = {**headers, "Content-Length": str(len(body))}
        try:
            with _as_os_errors():
                async with self._session.request(
                    method,
                    self._url(path),
                    data=content() if body is not None else None,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=seconds),
                    proxy=self._proxy,
                    server_hostname=self._server_name,
                ) as answer:
                    return Reply(answer.status, await answer.read(), answer.headers.get("Retry-After", ""))
        except OSError as error:  # a connection on which half of a request was sent is closed
            if is_kept_back:
                raise NotSent from error
            raise

    @asynccontextmanager
    async def stream(
        self, path: str, headers: Mapping[str, str], seconds: float, silent_seconds: float
    ) -> AsyncIterator[tuple[int, str, AsyncIterator[bytes]]]:
        """Send a request whose answer goes on for long: its status, when to come back if refused, and what comes."""
        with _as_os_errors():
            async with self._session.get(
                self._url(path),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=seconds, sock_read=silent_seconds),
                proxy=self._proxy,
                server_hostname=self._server_name,
            ) as answer:
                yield answer.status, answer.headers.get("Retry-After", ""), answer.content.iter_any()

    async def close(self) -> None:
        await self._session.close()

    def _url(self, path: str) -> URL:
        return URL(self._base + path, encoded=True)


@contextlib.contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientError as error:
        if isinstance(error, OSError):
            raise
        raise ConnectionError(str(error) or type(error).__name__) from error
