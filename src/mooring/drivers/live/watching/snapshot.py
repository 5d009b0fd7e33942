"""A cluster as it is at one moment: exactly what scheduling reads of it, for commands that decide offline.

Secrets and ConfigMaps are not asked for. Of every other object only the fields that scheduling reads are kept: no
environment, no commands, no mounted paths.
"""

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.connection import connect
from mooring.drivers.live.api.discovery import REQUIRED, Resource, discover
from mooring.errors import ManifestError, MooringError
from mooring.model.jobs.app_wrapper import WRAPPER, AppWrapper
from mooring.model.loading.app_wrapper import NOT_STARTED
from mooring.model.loading.catalog import Catalog
from mooring.model.loading.documents import flatten
from mooring.model.loading.manifests import Manifests
from mooring.model.objects.kinds import decode, find_kind, kind_of_type
from mooring.model.objects.picture import Identity, identity_of
from mooring.model.places import Place

CHUNK = 5000
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""All that was once applied, as text: it has what the object itself was stripped of."""
_KEPT_NAMES = frozenset(("", "default", "kube-system", "cpu", "memory", "pods", "ephemeral-storage", "main"))
"""Names that tell nothing, and words that also mean something else."""
_KEPT_PREFIXES = ("system-", "kube-")
_HASHED = re.compile(r"[^\s/,:]+")


class _Metadata(msgspec.Struct, rename={"continue_": "continue"}):
    continue_: str = ""


class _List(msgspec.Struct):
    metadata: _Metadata
    items: list[msgspec.Raw] | None = None


_decode_list = msgspec.json.Decoder(_List).decode


def read_cluster(kubeconfig: Path | None, context: str | None = None) -> tuple[Manifests, list[str]]:
    """A cluster as manifests, with what its controllers have yet to make; warnings say what could not be read."""
    objects, warnings = take(kubeconfig, context)
    catalog, added = Catalog(), dict[str, Identity]()
    for found in objects:
        metadata = found.metadata
        name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        kind = kind_of_type(type(found))
        assert kind is not None
        place = Place(f"{kind.name} {name}")
        try:
            if isinstance(found, AppWrapper) and found.status.phase in NOT_STARTED:
                wrapper = {"apiVersion": found.api_version, "kind": found.kind, **msgspec.to_builtins(found)}
                for inside in flatten(wrapper, place):  # what its controller has yet to make
                    if not inside.is_wrapper:
                        catalog.add_document(inside)
            else:
                catalog.add(kind, found, place)
                added[place.file] = identity_of(found)
        except ManifestError as error:
            warnings.append(f"left out: {error}")
    while True:
        try:
            return catalog.picture(), warnings
        except ManifestError as error:  # what is wrong with one object is no reason to say nothing of the others
            if error.file not in added:
                raise
            catalog.remove(*added.pop(error.file))
            warnings.append(f"left out: {error}")


def take(kubeconfig: Path | None, context: str | None = None) -> tuple[list[Any], list[str]]:
    """List everything that scheduling reads, typed; warnings say what could not be."""
    return asyncio.run(_take(kubeconfig, context))


async def _take(kubeconfig: Path | None, context: str | None) -> tuple[list[Any], list[str]]:
    connection = await connect(kubeconfig, context)
    objects, warnings = list[Any](), list[str]()
    async with Client(connection, "mooring") as client:
        try:
            served = await discover(client, with_quotas=True)
        except ApiError as error:
            raise MooringError(connection.refusal(error.code, error.message)) from error
        for key, resource in served.items():
            try:
                async for raw in _list(client, resource):
                    try:
                        found = decode(raw, resource.kind.type, Place(resource.name), resource.kind.name)
                    except ManifestError as error:
                        warnings.append(f"left out: {error}")
                        continue
                    found.api_version = resource.api_version
                    found.kind = resource.kind.name
                    (found.metadata.annotations or {}).pop(_APPLIED, None)
                    objects.append(found)
            except ApiError as error:
                if key in REQUIRED:
                    raise MooringError(f"{resource.name} cannot be listed: {error.message}") from error
                warnings.append(f"{resource.name} cannot be listed: {error.message}")
    return objects, warnings


async def _list(client: Client, resource: Resource) -> Any:
    token = ""
    while True:
        after = f"&continue={token}" if token else ""
        found = _decode_list(await client.get(f"{resource.path()}?limit={CHUNK}{after}"))
        for raw in found.items or ():
            yield raw
        token = found.metadata.continue_
        if not token:
            return


def documents(objects: Iterable[Any], *, hash_names: bool = False) -> list[dict[str, Any]]:
    """Objects as they are written into a file: every field that is read, and no other."""
    found = [{"apiVersion": each.api_version, "kind": each.kind, **msgspec.to_builtins(each)} for each in objects]
    for each in found:
        for component in (each["spec"].get("components") or ()) if each["kind"] == WRAPPER else ():
            component["template"] = _stripped(component["template"])
    if not hash_names:
        return found
    names = {each["metadata"].get(field, "") for each in found for field in ("name", "namespace")}
    names = {name for name in names if name not in _KEPT_NAMES and not name.startswith(_KEPT_PREFIXES)}
    return [_hashed(each, names) for each in found]


def _stripped(document: dict[str, Any]) -> dict[str, Any]:
    """An object inside an AppWrapper with the fields that are read; of a kind that is not read, its name."""
    named = {field: document.get(field, "") for field in ("apiVersion", "kind")}
    kind = find_kind(named["apiVersion"], named["kind"])
    if kind is not None:
        with contextlib.suppress(msgspec.ValidationError):
            fields: dict[str, Any] = msgspec.to_builtins(msgspec.convert(document, kind.type))
            return named | fields
    return named | {"metadata": {"name": (document.get("metadata") or {}).get("name", "")}}


def _hashed(value: Any, names: set[str]) -> Any:
    """Put a hash in the place of every name, also where one object names another."""
    if isinstance(value, str):
        if value in names:
            return _hash(value)
        # Annotations name objects within longer texts: namespace/name, lists.
        return _HASHED.sub(lambda found: _hash(found[0]) if found[0] in names else found[0], value)
    if isinstance(value, dict):
        return {key: item if key in ("apiVersion", "kind") else _hashed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_hashed(item, names) for item in value]
    return value


def _hash(name: str) -> str:
    return f"x{hashlib.sha256(name.encode()).hexdigest()[:12]}"
