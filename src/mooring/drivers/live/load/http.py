"""Requests to sources of load that are not the API server."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mooring.drivers.live.load.source import SourceFailed

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES = 256 * 1024 * 1024
"""An answer that is longer is not a list of nodes, and would use up the memory of the scheduler."""


class Http:
    """Gets documents; connections are kept from one request to the next."""

    def __init__(self, token_file: str = "", ca_file: str = "") -> None:
        self._token_file, self._ca_file = token_file, ca_file
        self._session: aiohttp.ClientSession | None = None

    async def get(self, url: str, parameters: Mapping[str, str] | None = None) -> bytes:
        """Return the body of an answer with the code 200; raise SourceFailed for anything else."""
        import aiohttp  # it takes longer to import than a small cluster to read

        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self._tls()))
        try:
            async with self._session.get(url, params=parameters or {}, headers=self._headers()) as answer:
                body = await answer.content.read(MOST_BYTES)
                if answer.status != 200:
                    text = " ".join(body[:200].decode(errors="replace").split())
                    raise SourceFailed(f"expected the code 200, found {answer.status} {text}".rstrip())
                rest = await answer.content.read()
                if rest:
                    raise SourceFailed(f"expected at most {MOST_BYTES} bytes, found more")
                return body
        except aiohttp.ClientError as error:
            raise SourceFailed(" ".join(str(error).split()) or type(error).__name__) from error

    def _tls(self) -> ssl.SSLContext | bool:
        if not self._ca_file:
            return True
        try:
            return ssl.create_default_context(cafile=self._ca_file)
        except (OSError, ssl.SSLError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise SourceFailed(f"caFile: {self._ca_file}: expected certificates, found {reason}") from error

    def _headers(self) -> dict[str, str]:
        if not self._token_file:
            return {}
        try:
            return {"Authorization": f"Bearer {Path(self._token_file).read_text().strip()}"}
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "other bytes"
            raise SourceFailed(f"tokenFile: {self._token_file}: expected a token, found {reason}") from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            await asyncio.sleep(0)  # let transports close
