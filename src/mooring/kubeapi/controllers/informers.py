"""What controllers see of the API: the objects of a resource, exact at every moment, with those that each one controls.

They follow the store itself, not its watches: a change is seen before the call that made it returns, so a controller
never acts on what it has just changed. Objects are shared: whoever wants to change one asks the API for a fresh copy.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from mooring.kubeapi.api import Api
from mooring.kubeapi.store.records import DELETED, Event, Record

log = logging.getLogger(__name__)
Object = dict[str, Any]
decode_object = msgspec.json.Decoder().decode


class MetaView(msgspec.Struct, rename="camel"):
    """Metadata, as far as controllers read it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[dict[str, Any]] = []
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None

    @property
    def controller(self) -> Object | None:
        return next((owner for owner in self.owner_references if owner.get("controller")), None)


class View(msgspec.Struct):
    """Just the metadata of an object."""

    metadata: MetaView = msgspec.field(default_factory=MetaView)


V = TypeVar("V")
Handler = Callable[[V | None, V | None], None]
"""Called with the object as it was and as it is; None where it was or is not there."""


class Informer(Generic[V]):
    """The objects of one resource."""

    def __init__(self, api: Api, resource: str, decode: Callable[[bytes], V]) -> None:
        self._decode = decode
        self._objects: dict[str, dict[str, V]] = {}
        self._controllers: dict[tuple[str, str], str] = {}
        self._controlled: dict[str, dict[tuple[str, str], None]] = {}
        self._orphans: dict[str, dict[str, V]] = {}
        self._handlers: list[Handler[V]] = []
        table = api.registry.find(resource).storage
        for record in api.store.records(table):
            self._set(record)
        api.store.observe(table, self._observe)

    def on_change(self, handler: Handler[V]) -> None:
        """Call `handler` for every object that is there, and for every change from now on."""
        for found in list(self.list()):
            handler(None, found)
        self._handlers.append(handler)

    def get(self, namespace: str, name: str) -> V | None:
        return self._objects.get(namespace, {}).get(name)

    def list(self, namespace: str | None = None) -> Iterator[V]:
        if namespace is not None:
            yield from self._objects.get(namespace, {}).values()
            return
        for objects in self._objects.values():
            yield from objects.values()

    def controlled_by(self, uid: str) -> Iterable[V]:
        """The objects whose controller has this UID."""
        return [self._objects[namespace][name] for namespace, name in self._controlled.get(uid, ())]

    def orphans(self, namespace: str) -> Iterable[V]:
        """The objects of a namespace that nothing controls."""
        return list(self._orphans.get(namespace, {}).values())

    def _observe(self, event: Event) -> None:
        key = event.namespace, event.name
        old = self.get(*key)
        if event.type == DELETED:
            self._remove(key)
            new = None
        else:
            new = self._set(event.record)
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception:  # the change has happened: no handler may keep the others, or its author, from knowing
                log.exception("a controller failed on %s/%s", *key)

    def _set(self, record: Record) -> V:
        new = self._decode(record.data)
        key = record.namespace, record.name
        self._objects.setdefault(record.namespace, {})[record.name] = new
        owner = controller_of(new)
        uid = owner["uid"] if owner is not None else None
        if uid is None:
            self._orphans.setdefault(record.namespace, {})[record.name] = new
        else:
            self._forget_orphan(key)
        before = self._controllers.get(key)
        if before != uid:
            self._forget_controller(key)
            if uid is not None:
                self._controllers[key] = uid
                self._controlled.setdefault(uid, {})[key] = None
        return new

    def _remove(self, key: tuple[str, str]) -> None:
        objects = self._objects.get(key[0], {})
        objects.pop(key[1], None)
        if not objects:
            self._objects.pop(key[0], None)
        self._forget_controller(key)
        self._forget_orphan(key)

    def _forget_orphan(self, key: tuple[str, str]) -> None:
        orphans = self._orphans.get(key[0], {})
        orphans.pop(key[1], None)
        if not orphans:
            self._orphans.pop(key[0], None)

    def _forget_controller(self, key: tuple[str, str]) -> None:
        uid = self._controllers.pop(key, None)
        if uid is not None:
            controlled = self._controlled[uid]
            controlled.pop(key, None)
            if not controlled:
                del self._controlled[uid]


def controller_of(found: Any) -> Object | None:
    """The reference to what controls an object, in whichever form the object is seen."""
    if not isinstance(found, dict):
        seen: Object | None = found.metadata.controller
        return seen
    owners = found["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def namespace_of(found: Any) -> str:
    namespace: str = found["metadata"]["namespace"] if isinstance(found, dict) else found.metadata.namespace
    return namespace
