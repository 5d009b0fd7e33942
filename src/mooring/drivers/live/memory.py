"""What must outlive a restart, in a ConfigMap that people can read: one for each scheduler that is active.

It is read before the first decision, and written by whoever leads: soon after something changed, but not more often
than every ten seconds, and once more at the end. So a crash costs the last seconds of it. A section that cannot be read
is said in the log and left out; the others count.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec

from mooring.drivers.live.api.backoff import Backoff
from mooring.drivers.live.api.client import MERGE_PATCH, ApiError, Client
from mooring.drivers.live.api.requests import encode
from mooring.model.api.meta import timestamp_seconds, timestamp_text
from mooring.model.memory import Memory

NAME = "mooring-memory"
WRITTEN, CONFIGURATION = "written", "configuration"
"""Beside the sections: when, and the configuration by which this scheduler decides, for commands that ask about it."""
SCHEDULER = "mooring.dev/scheduler"
"""The label by which such ConfigMaps are found."""
LOOK_SECONDS, PAUSE_SECONDS = 1.0, 10.0
"""How often it is looked for changes, and how long nothing more is written after a write."""
READ_SECONDS = 10.0
"""How long it is tried to read it before we go on without."""
WRONG_CLOCK_SECONDS = 60.0
"""What was written so far in the future is not believed."""
MOST_BYTES = 900_000
"""The API server takes a megabyte."""
_SECTIONS = {field.encode_name: field for field in msgspec.structs.fields(Memory)}
_TEXTS = {*_SECTIONS, CONFIGURATION}
_log = logging.getLogger(__name__)


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _ConfigMap(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    data: dict[str, str] = {}


class KeptMemory:
    """The ConfigMap, as the scheduler whose memory it is reads and writes it."""

    def __init__(
        self, client: Client, namespace: str, scheduler: str, configuration: Callable[[], str] = lambda: ""
    ) -> None:
        """`configuration` gives what is published of it, nothing if it is the default or must not be."""
        self._client, self._namespace, self._name = client, namespace, f"{NAME}-{scheduler}"
        self._labels, self._configuration = {SCHEDULER: scheduler}, configuration
        self._root = f"/api/v1/namespaces/{namespace}/configmaps"
        self._version = ""
        self._written: dict[str, str] = {}
        self._is_failing = False

    async def read(self) -> Memory:
        """What was remembered; nothing if there is none, or none that can be read."""
        backoff, deadline = Backoff(longest=2.0), time.monotonic() + READ_SECONDS
        while True:
            try:
                found = await self._get()
                break
            except ApiError as error:
                if error.is_passing and time.monotonic() < deadline:
                    await asyncio.sleep(backoff.next(error.retry_after))
                    continue
                _log.warning("going on without what was remembered: %s", error.message)
                return Memory()
        self._written = {name: text for name, text in found.data.items() if name in _TEXTS}
        if not found.data:
            return Memory()
        written = timestamp_seconds(found.data.get(WRITTEN))
        if written is None or written > time.time() + WRONG_CLOCK_SECONDS:
            when = found.data.get(WRITTEN, "")
            _log.warning(
                "ConfigMap %s is left out: %s: expected a time that is over, found %r", self._name, WRITTEN, when
            )
            return Memory()
        memory, counts = self._decode(found.data), []
        for name, field in _SECTIONS.items():
            counts += [f"{name}: {len(known)}" for known in (getattr(memory, field.name),) if known]
        _log.info("remembered from %s: %s", found.data[WRITTEN], ", ".join(counts) or "nothing")
        return memory

    async def keep(self, remembered: Callable[[], Memory]) -> None:
        """Write what is remembered, whenever it has changed."""
        while True:
            await asyncio.sleep(PAUSE_SECONDS if await self.write(remembered()) else LOOK_SECONDS)

    async def write(self, memory: Memory) -> bool:
        """Write it down if it is not what is written; whether anything was sent."""
        sections = self._encode(memory)
        if sections == self._written:
            return False
        try:
            await self._send(sections)
        except ApiError as error:
            if not self._is_failing:
                _log.warning(
                    "ConfigMap %s could not be written, what is remembered would be lost: %s", self._name, error.message
                )
            self._is_failing = True
        else:
            self._written, self._is_failing = sections, False
        return True

    async def _send(self, sections: dict[str, str]) -> None:
        metadata: dict[str, Any] = {"name": self._name, "namespace": self._namespace, "labels": self._labels}
        data: dict[str, str | None] = {WRITTEN: timestamp_text(time.time()), **sections}
        if not self._version:
            await self._get()  # after a failure, it may be another one's, or not there at all
        if not self._version:
            body = encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
            answer = await self._client.post(self._root, body)
        else:
            changes = {**dict.fromkeys(_TEXTS - sections.keys()), **data}
            metadata = {"resourceVersion": self._version, "labels": self._labels}
            body = encode({"metadata": metadata, "data": changes})
            self._version = ""  # until the answer is there
            answer = await self._client.request("PATCH", f"{self._root}/{self._name}", body, MERGE_PATCH)
        self._version = msgspec.json.decode(answer, type=_ConfigMap).metadata.resource_version

    async def _get(self) -> _ConfigMap:
        try:
            found = msgspec.json.decode(await self._client.get(f"{self._root}/{self._name}"), type=_ConfigMap)
        except ApiError as error:
            if error.code != 404:
                raise
            found = _ConfigMap()
        self._version = found.metadata.resource_version
        return found

    def _decode(self, data: dict[str, str]) -> Memory:
        found: dict[str, Any] = {}
        for name, field in _SECTIONS.items():
            try:
                if name in data:
                    found[field.name] = msgspec.json.decode(data[name], type=field.type)
            except msgspec.MsgspecError as error:
                _log.warning("ConfigMap %s: %s is left out: %s", self._name, name, error)
        return Memory(**found)

    def _encode(self, memory: Memory) -> dict[str, str]:
        """Each section as JSON for people; those that would be too much are left out, the largest first."""
        sections = {name: getattr(memory, field.name) for name, field in _SECTIONS.items()}
        texts = {name: msgspec.json.format(encode(each), indent=2).decode() for name, each in sections.items() if each}
        if configuration := self._configuration():
            texts[CONFIGURATION] = configuration
        while sum(map(len, texts.values())) > MOST_BYTES:
            largest = max(texts, key=lambda name: len(texts[name]))
            if not self._is_failing:
                _log.warning("ConfigMap %s: %s is left out: it has %d bytes", self._name, largest, len(texts[largest]))
            del texts[largest]
        return texts
