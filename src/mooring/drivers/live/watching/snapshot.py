"""A cluster as it is at one moment, as manifests: for commands that decide offline, and change nothing."""

import asyncio
from pathlib import Path

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.api.discovery import REQUIRED, discover
from mooring.drivers.live.watching.informer import Informer
from mooring.drivers.live.watching.mirror import Mirror
from mooring.errors import MooringError
from mooring.model.loading.manifests import Manifests


def read_cluster(kubeconfig: Path, context: str | None = None) -> tuple[Manifests, list[str]]:
    """List everything that scheduling reads; warnings say what could not be."""
    return asyncio.run(_read(kubeconfig, context))


async def _read(kubeconfig: Path, context: str | None) -> tuple[Manifests, list[str]]:
    connection = await connect(kubeconfig, context)
    mirror, warnings = Mirror(), list[str]()
    async with Client(connection, "mooring") as client:
        try:
            served = await discover(client)
        except ApiError as error:
            raise MooringError(connection.refusal(error.code, error.message)) from error
        for key, resource in served.items():
            try:
                await Informer(client, resource, mirror, lambda: None).list_all()
            except ApiError as error:
                if key in REQUIRED:
                    raise MooringError(f"{resource.name} cannot be listed: {error.message}") from error
                warnings.append(f"{resource.name} cannot be listed: {error.message}")
    return mirror.picture(), warnings
