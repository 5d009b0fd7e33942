"""The configuration that the running scheduler of a cluster has published beside what it remembers."""

import asyncio
from pathlib import Path

import msgspec

from mooring.config.settings import Settings, parse_settings, read_settings_text
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.memory import CONFIGURATION, SCHEDULER


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


class _List(msgspec.Struct):
    items: list[_ConfigMap] = []


def published_settings(kubeconfig: Path | None, context: str | None) -> Settings | None:
    """The settings of the scheduler that runs; None if none is published, several differ, or it may not be read."""
    texts = set(asyncio.run(_texts(kubeconfig, context)))
    if len(texts) != 1:
        return None
    source = "the configuration that the scheduler has published"
    return parse_settings(read_settings_text(texts.pop(), source), source)


async def _texts(kubeconfig: Path | None, context: str | None) -> list[str]:
    connection = await connect(kubeconfig, context)
    async with Client(connection, "mooring") as client:
        try:
            answer = await client.get(f"/api/v1/configmaps?labelSelector={SCHEDULER}")
        except ApiError:
            return []
    found = msgspec.json.decode(answer, type=_List).items
    return [each.data[CONFIGURATION] for each in found if CONFIGURATION in each.data]
