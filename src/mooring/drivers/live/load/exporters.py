"""DCGM exporters, scraped one by one at the addresses that the configuration has."""

import asyncio
import time

from mooring.config.load_sources import DcgmExporters
from mooring.drivers.live.api.connection import without_userinfo
from mooring.drivers.live.load.http import Http
from mooring.drivers.live.load.source import PolledSource, SourceFailed
from mooring.drivers.load.dcgm import from_dcgm
from mooring.errors import InputError
from mooring.model.load.reports import LoadReport


class DcgmSource(PolledSource):
    """Reads each exporter; one that fails says nothing of its nodes, whose reports grow old."""

    def __init__(self, settings: DcgmExporters) -> None:
        shown = ", ".join(without_userinfo(address) for address in settings.addresses)
        super().__init__("dcgm", shown, settings.interval_seconds, settings.timeout_seconds)
        self._addresses = settings.addresses
        self._http = Http()
        self.failures: dict[str, str] = {}
        """By address, why the last scrape of it failed."""

    async def answer(self) -> list[LoadReport]:
        """Read all of them; each has its own time, so that a slow one does not take the others along."""
        return await self.read()

    async def read(self) -> list[LoadReport]:
        found = await asyncio.gather(*map(self._scrape, self._addresses))
        self.failures = {
            without_userinfo(address): problem
            for address, (_, problem) in zip(self._addresses, found, strict=True)
            if problem
        }
        if len(self.failures) == len(found):
            raise SourceFailed(next(iter(self.failures.values())))
        return [report for reports, _ in found for report in reports]

    async def close(self) -> None:
        await self._http.close()

    async def _scrape(self, address: str) -> tuple[list[LoadReport], str]:
        try:
            async with asyncio.timeout(self.timeout_seconds):
                body = await self._http.get(address)
            return list(from_dcgm(body.decode(), without_userinfo(address), time.time())), ""
        except TimeoutError:
            return [], f"no answer within {self.timeout_seconds:g} s"
        except (SourceFailed, InputError, OSError, UnicodeDecodeError) as error:
            return [], " ".join(str(error).split())
