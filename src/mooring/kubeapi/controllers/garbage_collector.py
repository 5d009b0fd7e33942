"""Garbage collection: what has lost all its owners goes, in the order that the deletion of an owner asks for.

The graph of owners follows the store as it is, so an owner that is not in it does not exist.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.informers import View
from mooring.kubeapi.controllers.slices import SLICE
from mooring.kubeapi.deletion import FOREGROUND, ORPHAN
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import ApiError
from mooring.kubeapi.store.records import DELETED, Event, Record

_decode = msgspec.json.Decoder(View).decode


@dataclass(slots=True)
class _Item:
    """One object in the graph."""

    table: str
    namespace: str
    name: str
    owners: dict[str, Object] = field(default_factory=dict)
    finalizers: frozenset[str] = frozenset()
    is_leaving: bool = False

    @property
    def waits_for_dependents(self) -> bool:
        return self.is_leaving and FOREGROUND in self.finalizers


class GarbageCollector(Controller):
    """Deletes what nobody owns any more. The key is ("", UID)."""

    name = "garbage-collector-controller"

    def start(self) -> None:
        self._items: dict[str, _Item] = {}
        self._uids: dict[tuple[str, str, str], str] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        for table in self.api.store.tables():
            if table != "events":
                for record in self.api.store.records(table):
                    self._take_in(table, record)
        for uid in list(self._items):
            self._look_at(uid)
        self.api.store.observe(None, self._observe)

    # The graph

    def _observe(self, event: Event) -> None:
        if event.table == "events":
            return
        if event.type == DELETED:
            uid = self._uids.pop((event.table, event.namespace, event.name), None)
            if uid is not None:
                self._drop(uid)
            return
        self._look_at(self._take_in(event.table, event.record))

    def _take_in(self, table: str, record: Record) -> str:
        metadata = _decode(record.data).metadata
        place = table, record.namespace, record.name
        before = self._uids.get(place)
        if before is not None and before != metadata.uid:
            self._drop(before)
        self._uids[place] = metadata.uid
        item = self._items.get(metadata.uid)
        if item is None:
            item = self._items[metadata.uid] = _Item(table, record.namespace, record.name)
        owners = {owner["uid"]: owner for owner in metadata.owner_references}
        for uid in item.owners.keys() - owners.keys():
            self._unlink(uid, metadata.uid)
        for uid in owners.keys() - item.owners.keys():
            self._dependents.setdefault(uid, {})[metadata.uid] = None
        for uid in owners.keys() & item.owners.keys():
            if item.owners[uid].get("blockOwnerDeletion") and not owners[uid].get("blockOwnerDeletion"):
                self.enqueue(("", uid))
        item.owners = owners
        item.finalizers = frozenset(metadata.finalizers)
        item.is_leaving = metadata.deletion_timestamp is not None
        return metadata.uid

    def _unlink(self, owner: str, dependent: str) -> None:
        dependents = self._dependents.get(owner)
        if dependents is not None:
            dependents.pop(dependent, None)
            if not dependents:
                del self._dependents[owner]
        if owner in self._items and self._items[owner].waits_for_dependents:
            self.enqueue(("", owner))

    def _drop(self, uid: str) -> None:
        item = self._items.pop(uid, None)
        if item is None:
            return
        for owner in item.owners:
            self._unlink(owner, uid)
        for dependent in self._dependents.get(uid, ()):
            self.enqueue(("", dependent))

    def _look_at(self, uid: str) -> None:
        """See whether an object that came or changed has something to be done about it."""
        item = self._items[uid]
        if item.is_leaving:
            needs_care = bool(item.finalizers & {FOREGROUND, ORPHAN})
        else:
            needs_care = any(not self._is_solid(item, owner) for owner in item.owners.values())
        if needs_care:
            self.enqueue(("", uid))

    def _owner(self, item: _Item, reference: Object) -> _Item | None:
        """The owner that a reference means, if it is where it may be."""
        owner = self._items.get(reference["uid"])
        return owner if owner is not None and owner.namespace in ("", item.namespace) else None

    def _is_solid(self, item: _Item, reference: Object) -> bool:
        owner = self._owner(item, reference)
        return owner is not None and not owner.waits_for_dependents

    # What is to be done

    def sync(self, key: Key) -> None:
        item = self._items.get(key[1])
        resource = self._resource(item.table) if item is not None else None
        if item is None or resource is None:
            return
        if item.is_leaving:
            if ORPHAN in item.finalizers:
                self._orphan(key[1], item, resource)
            elif FOREGROUND in item.finalizers:
                self._wait_for_dependents(key[1], item, resource)
            return
        self._attempt_to_delete(key[1], item, resource)

    def _resource(self, table: str) -> Resource | None:
        return next((one for one in self.api.registry if one.storage == table), None)

    def _attempt_to_delete(self, uid: str, item: _Item, resource: Resource) -> None:
        if not item.owners or not all(self._is_known(owner) for owner in item.owners.values()):
            return
        solid = [one for one in item.owners.values() if self._is_solid(item, one)]
        waiting = [
            one for one in item.owners.values() if (owner := self._owner(item, one)) and owner.waits_for_dependents
        ]
        if solid:
            gone = {one["uid"] for one in item.owners.values() if one not in solid}
            if gone:
                self._drop_references(uid, item, resource, gone)
            return
        propagation = "Background"
        dependents = [self._items[one] for one in self._dependents.get(uid, ()) if one in self._items]
        if waiting and dependents:
            if any(one.waits_for_dependents for one in dependents):
                self._unblock(uid, item, resource)
            propagation = "Foreground"
        elif ORPHAN in item.finalizers:
            propagation = "Orphan"
        elif FOREGROUND in item.finalizers:
            propagation = "Foreground"
        try:
            self.api.delete(resource, item.namespace or None, item.name, uid=uid, propagation=propagation)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def _is_known(self, reference: Object) -> bool:
        """An owner of a kind that is not served cannot be looked for: nothing is deleted for it."""
        try:
            self.api.registry.of_kind(reference["apiVersion"], reference["kind"])
        except ApiError:
            return False
        return True

    def _change(self, uid: str, item: _Item, resource: Resource, change: Callable[[Object], None]) -> None:
        found = self.api.find(resource, item.namespace or None, item.name)
        if found is not None and found["metadata"]["uid"] == uid:
            change(found["metadata"])
            self.api.update(resource, found)

    def _drop_references(self, uid: str, item: _Item, resource: Resource, gone: set[str]) -> None:
        def drop(metadata: Object) -> None:
            metadata["ownerReferences"] = [one for one in metadata["ownerReferences"] if one["uid"] not in gone]
            if not metadata["ownerReferences"]:
                del metadata["ownerReferences"]

        self._change(uid, item, resource, drop)

    def _unblock(self, uid: str, item: _Item, resource: Resource) -> None:
        """Break a circle: owners no longer wait for this one."""

        def unblock(metadata: Object) -> None:
            for one in metadata["ownerReferences"]:
                one["blockOwnerDeletion"] = False

        self._change(uid, item, resource, unblock)

    def _orphan(self, uid: str, item: _Item, resource: Resource) -> None:
        items = ((dependent, self._items.get(dependent)) for dependent in self._dependents.get(uid, ()))
        known = ((dependent, found, self._resource(found.table)) for dependent, found in items if found is not None)
        dependents = [(dependent, found, of) for dependent, found, of in islice(known, SLICE) if of is not None]
        for dependent, found, of in dependents:
            self._drop_references(dependent, found, of, {uid})
        if len(dependents) == SLICE:
            self.enqueue(("", uid))
            return
        self._drop_finalizer(uid, item, resource, ORPHAN)

    def _wait_for_dependents(self, uid: str, item: _Item, resource: Resource) -> None:
        blocking = False
        for dependent in list(self._dependents.get(uid, ())):
            found = self._items.get(dependent)
            if found is None:
                continue
            blocking = blocking or bool(found.owners[uid].get("blockOwnerDeletion"))
            if not found.is_leaving:
                self.enqueue(("", dependent))
        if not blocking:
            self._drop_finalizer(uid, item, resource, FOREGROUND)

    def _drop_finalizer(self, uid: str, item: _Item, resource: Resource, finalizer: str) -> None:
        def drop(metadata: Object) -> None:
            metadata["finalizers"] = [one for one in metadata.get("finalizers") or () if one != finalizer]

        self._change(uid, item, resource, drop)
