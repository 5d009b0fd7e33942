"""The cluster as its objects were last seen, in one catalog: watches put and remove, the loop asks for events."""

import logging
from collections import Counter
from typing import Any

import msgspec

from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.watching.heartbeats import Heartbeats
from mooring.drivers.live.watching.informer import Name, decode_head
from mooring.drivers.live.watching.shard import ELSEWHERE, Shard
from mooring.errors import ManifestError
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.events import Event, PodSeen
from mooring.model.gangs.dialects.volcano import VolcanoPodGroup
from mooring.model.gangs.dialects.volcano_job import GROUP as VOLCANO
from mooring.model.loading.catalog import Catalog
from mooring.model.objects.job_kinds import JOB_KINDS
from mooring.model.objects.kinds import KINDS, decode
from mooring.model.objects.picture import Manifests
from mooring.model.places import Place

_log = logging.getLogger(__name__)
_CLUSTER = Place("cluster")
_JOB_TYPES = {kind.type for kind in JOB_KINDS}
_TYPES = {kind.name: kind.type for kind in KINDS if kind.type in _JOB_TYPES and kind.group != VOLCANO}
"""Kinds of jobs; two are called Job, and only one of them can be suspended."""


class ObjectCache:
    """Objects in as bytes, events out. What cannot be read is left as it was, and said once."""

    def __init__(self, shard: Shard | None = None) -> None:
        self._shard = shard if shard is not None else Shard()
        self._catalog = Catalog(expands=False)
        self._unread: dict[tuple[str, Name], str] = {}
        """Objects that could not be read, and why."""
        self._said: set[str] = set()
        self._heartbeats = Heartbeats()
        self.seen: Counter[str] = Counter()
        """How many objects came in, by resource."""

    def put(self, resource: Resource, raw: msgspec.Raw) -> ObjectMeta:
        """Take in an object as the API server sent it."""
        self.seen[resource.name] += 1
        is_node = resource.kind.type is Node
        if is_node and (beat := self._heartbeats.name_and_version(raw)) is not None:
            return ObjectMeta(name=beat[0], resource_version=beat[1])
        try:
            found = decode(raw, resource.kind.type, _CLUSTER, resource.kind.name)
            found.api_version = resource.api_version
            metadata: ObjectMeta = found.metadata
            if isinstance(found, Pod) and not self._shard.has_pod(found):
                found.spec.scheduler_name += ELSEWHERE
            if isinstance(found, VolcanoPodGroup) and not self._shard.has_group(found):
                found.spec.scheduler_name = ELSEWHERE
            if isinstance(found, Node) and not self._shard.has_node(found):
                self._catalog.remove(Node, "", metadata.name)
            else:
                self._catalog.put(found, _CLUSTER)
        except ManifestError as error:
            metadata = decode_head(raw).metadata
            if is_node:
                self._heartbeats.forget(metadata.name)
            self._note(resource, metadata, str(error))
            return metadata
        if self._unread:
            self._unread.pop((resource.name, (metadata.namespace, metadata.name)), None)
        if is_node:
            self._heartbeats.note(raw)
        return metadata

    def remove(self, resource: Resource, name: Name) -> None:
        self._unread.pop((resource.name, name), None)
        if resource.kind.type is Node:
            self._heartbeats.forget(name[1])
        self._catalog.remove(resource.kind.type, *name)

    @property
    def has_changes(self) -> bool:
        """Whether anything may have happened since the scheduler was last told."""
        return self._catalog.has_changes

    def changes(self) -> list[Event]:
        """What happened since this was last asked, as the scheduler is told it."""
        events = self._catalog.changes()
        for problem in self._catalog.problems:
            self._say(str(problem))
        return events

    def everything(self) -> list[Event]:
        """All that there is, for a scheduler that begins; pods in the order of their creation."""
        self._catalog.tell_again()
        events = self.changes()
        pods = sorted((event for event in events if isinstance(event, PodSeen)), key=_created)
        in_order = iter(pods)
        return [next(in_order) if isinstance(event, PodSeen) else event for event in events]

    def picture(self) -> Manifests:
        """All that there is, at once."""
        return self._catalog.picture()

    def pod(self, key: str) -> Pod | None:
        """A pod as the world has it."""
        namespace, _, name = key.partition("/")
        return self._catalog.find(Pod, namespace, name)

    def node(self, name: str) -> Node | None:
        """A node as the world has it."""
        return self._catalog.find(Node, "", name)

    def volcano_group(self, namespace: str, name: str) -> VolcanoPodGroup | None:
        """A PodGroup of Volcano as the world has it."""
        return self._catalog.find(VolcanoPodGroup, namespace, name)

    def find(self, kind: str, namespace: str, name: str) -> Any:
        """An object of a kind of jobs as the world has it; None if there is none."""
        type_ = _TYPES.get(kind)
        return None if type_ is None else self._catalog.find(type_, namespace, name)

    @property
    def unread(self) -> int:
        """How many objects could not be read."""
        return len(self._unread)

    def _note(self, resource: Resource, metadata: ObjectMeta, why: str) -> None:
        self._unread[resource.name, (metadata.namespace, metadata.name)] = why
        self._say(f"{metadata.namespace}/{metadata.name}: {why}")

    def _say(self, problem: str) -> None:
        if problem not in self._said and len(self._said) < 1000:
            self._said.add(problem)
            _log.warning("cannot be read: %s", problem)


def _created(event: PodSeen) -> str:
    return event.pod.metadata.creation_timestamp or ""
