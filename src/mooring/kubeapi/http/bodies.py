"""Objects as bytes of the form that was asked for."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import yaml

from mooring.kubeapi.conversion import from_storage, is_stored_as
from mooring.kubeapi.http.exchange import encode
from mooring.kubeapi.http.negotiation import JSON, YAML, Form
from mooring.kubeapi.http.offloading import offload
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import Object
from mooring.kubeapi.store.records import Record, head_of

if TYPE_CHECKING:
    from mooring.kubeapi.http.exchange import Exchange


_TYPE = ("kind", "apiVersion")
MakeTable = Callable[[Resource, list[Object], str], Object]
"""What kubectl shows of objects: columnDefinitions and rows of cells, for objects in a version."""


def name_and_age(_resource: Resource, objects: list[Object], _version: str) -> Object:
    """The table of a kind that has no columns of its own."""
    columns = [
        {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        {"name": "Created At", "type": "date", "format": "", "description": "", "priority": 0},
    ]
    rows = [{"cells": [obj["metadata"].get("name"), obj["metadata"].get("creationTimestamp")]} for obj in objects]
    return {"columnDefinitions": columns, "rows": rows}


class Shape:
    """How the answers to one request are written: for a resource, in a version and a form."""

    def __init__(
        self,
        resource: Resource,
        version: str,
        form: Form,
        include_object: str = "Metadata",
        make_table: MakeTable = name_and_age,
    ) -> None:
        self.resource, self.version, self.form = resource, version, form
        self._make_table = make_table
        self._is_plain = is_stored_as(resource, version)
        self._include_object = include_object or "Metadata"

    @property
    def needs_work(self) -> bool:
        """Whether stored objects are decoded to be shown."""
        return bool(self.form.kind) or not self._is_plain

    def record(self, record: Record) -> bytes:
        """A stored object, as JSON."""
        if self._is_plain and not self.form.kind:
            return record.data
        return encode(self.object(from_storage(self.resource, self.version, record.decode())))

    def object(self, obj: Object) -> Object:
        """An object in its version, in the form."""
        match self.form.kind:
            case "Table":
                return self.table([obj])
            case "PartialObjectMetadata":
                return {**self._partial(obj), "kind": "PartialObjectMetadata", "apiVersion": self.form.api_version}
        return obj

    def _partial(self, obj: Object) -> Object:
        return {"metadata": obj["metadata"]}

    def table(self, objects: Sequence[Object], *, with_columns: bool = True) -> Object:
        found = self._make_table(self.resource, list(objects), self.version)
        found["kind"], found["apiVersion"] = "Table", self.form.api_version
        metadata = found.setdefault("metadata", {})
        if len(objects) == 1:
            metadata.setdefault("resourceVersion", objects[0]["metadata"].get("resourceVersion", ""))
        for row, obj in zip(found["rows"], objects, strict=True):
            if self._include_object == "Object":
                row["object"] = obj
            elif self._include_object == "Metadata":
                partial = {"kind": "PartialObjectMetadata", "apiVersion": self.form.api_version}
                row["object"] = {**partial, **self._partial(obj)}
            else:
                row.pop("object", None)
        if not with_columns:
            found["columnDefinitions"] = None  # as the API server writes those that it leaves out
        return found

    def list(self, records: Iterable[Record], metadata: Object) -> bytes:
        """A list of stored objects, as JSON."""
        if self.form.kind == "Table":
            objects = [from_storage(self.resource, self.version, record.decode()) for record in records]
            found = self.table(objects)
            found["metadata"] = metadata
            return encode(found)
        if self.form.kind:
            kind, api_version = "PartialObjectMetadataList", self.form.api_version
        else:
            kind, api_version = self.resource.list_kind, self.resource.api_version(self.version)
        head = encode({"kind": kind, "apiVersion": api_version, "metadata": metadata})
        items = b",".join(self._items(records))
        return b"".join((head[:-1], b',"items":[', items, b"]}"))

    def _items(self, records: Iterable[Record]) -> Iterable[bytes]:
        """Items as Go writes them: built-in kinds and bare metadata do not say again what they are."""
        resource = self.resource
        if self.form.kind:
            converted = (from_storage(resource, self.version, record.decode()) for record in records)
            return [encode(self._partial(obj)) for obj in converted]
        if resource.custom or resource.definition:
            return [self.record(record) for record in records]
        if not self._is_plain:
            converted = (from_storage(resource, self.version, record.decode()) for record in records)
            return [encode({key: obj[key] for key in obj if key not in _TYPE}) for obj in converted]
        head = head_of(resource.kind, resource.api_version())
        return [b"{" + record.data[len(head) :] if record.data.startswith(head) else record.data for record in records]


async def answer(exchange: "Exchange", code: int, data: bytes, form: Form) -> None:
    """Send JSON, as YAML if that was asked for."""
    if form.media_type == YAML:
        import msgspec

        def write() -> bytes:
            return yaml.dump(msgspec.json.decode(data), Dumper=yaml.CSafeDumper, sort_keys=False).encode()

        await exchange.answer(code, await offload(len(data), write), YAML.encode())
    else:
        await exchange.answer(code, data, JSON.encode())
