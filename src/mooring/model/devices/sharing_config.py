"""The device plugin's configuration file: how often each GPU is offered, by time-slicing or MPS."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

DEFAULT_RENAME = ".shared"
CONFIG_LABEL = "nvidia.com/device-plugin.config"
"""The label by which a node selects one of several configurations."""
KIND = "the device plugin's configuration"
"""What it is called, as it has no kind: a document with a version instead of an apiVersion."""


@dataclass(frozen=True, slots=True)
class Replicated:
    """One resource that is offered several times."""

    resource: str
    replicas: int
    strategy: str
    """time-slicing or mps"""
    rename: str = ""
    fails_above_one: bool = False
    indices: frozenset[int] | None = None
    """The cards that it holds for; None: all."""

    def covers(self, index: int) -> bool:
        return self.indices is None or index in self.indices


@dataclass(frozen=True, slots=True)
class SharingConfig:
    """What one configuration says of sharing."""

    replicated_resources: tuple[Replicated, ...] = ()
    mig_strategy: str = ""

    def replicated(self, resource: str) -> Replicated | None:
        return next((found for found in self.replicated_resources if found.resource == resource), None)


class BadConfig(ValueError):
    """A field of the configuration, what is expected, and what is there."""

    def __init__(self, field: str, expected: str, found: str) -> None:
        super().__init__(field, expected, found)
        self.field, self.expected, self.found = field, expected, found


class _Resource(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    name: str
    replicas: int
    rename: str = ""
    devices: Any = "all"


class _Replicas(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    resources: list[_Resource] = []
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool = False


class _Sharing(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    time_slicing: _Replicas | None = None
    mps: _Replicas | None = None


class _Flags(msgspec.Struct, rename="camel"):
    mig_strategy: str = ""


class _Config(msgspec.Struct, rename="camel"):
    version: str = ""
    flags: _Flags | None = None
    sharing: _Sharing | None = None


def is_sharing_config(document: Mapping[str, Any]) -> bool:
    """Whether a document is a configuration of the device plugin: it has a version instead of apiVersion and kind."""
    return document.get("version") == "v1" and "kind" not in document and "apiVersion" not in document


def read_sharing_config(document: Mapping[str, Any]) -> SharingConfig:
    """Give a document its meaning; BadConfig says what is wrong with it."""
    try:
        config = msgspec.convert(document, _Config)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$.")
        raise BadConfig(where.rstrip("`"), "a device plugin's configuration", message.lower()) from error
    sharing = config.sharing or _Sharing()
    if sharing.time_slicing is not None and sharing.mps is not None:
        raise BadConfig("sharing.mps", "none beside timeSlicing", "both")
    found = [
        *_replicated(sharing.time_slicing, "time-slicing", "sharing.timeSlicing"),
        *_replicated(sharing.mps, "mps", "sharing.mps"),
    ]
    return SharingConfig(tuple(found), config.flags.mig_strategy if config.flags else "")


def _replicated(replicas: _Replicas | None, strategy: str, path: str) -> Iterator[Replicated]:
    if replicas is None:
        return
    for at, resource in enumerate(replicas.resources):
        field = f"{path}.resources[{at}]"
        if resource.replicas < 2:
            raise BadConfig(f"{field}.replicas", "at least 2", str(resource.replicas))
        if strategy == "mps" and resource.replicas > 48:
            raise BadConfig(
                f"{field}.replicas", "at most 48 clients, which is all that MPS serves", str(resource.replicas)
            )
        rename = resource.rename or (resource.name + DEFAULT_RENAME if replicas.rename_by_default else "")
        indices = _indices(resource.devices, f"{field}.devices")
        # A client of MPS gets its share of one GPU, so that several shares are no more of anything.
        fails = replicas.fail_requests_greater_than_one or strategy == "mps"
        yield Replicated(resource.name, resource.replicas, strategy, rename, fails, indices)


def _indices(devices: Any, field: str) -> frozenset[int] | None:
    if devices == "all":
        return None
    if isinstance(devices, int) and devices > 0:
        return frozenset(range(devices))
    if isinstance(devices, list) and all(isinstance(name, int | str) for name in devices):
        named = [str(name) for name in devices]
        if all(name.isdecimal() for name in named):
            return frozenset(int(name) for name in named)
    raise BadConfig(field, "all, a number of GPUs, or a list of their indices", repr(devices))
