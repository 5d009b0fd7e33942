"""What the store holds and hands out: an object as JSON bytes, and a change of one."""

from typing import Any

import msgspec

from mooring.kubeapi.status import Object

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Head(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decode_head = msgspec.json.Decoder(_Head).decode
_NO_LABELS: dict[str, str] = {}


class Record:
    """An object at one revision. Its bytes never change; `decode` gives a fresh copy each time."""

    __slots__ = ("_labels", "_texts", "data", "name", "namespace", "revision")

    def __init__(self, namespace: str, name: str, revision: int, data: bytes) -> None:
        self.namespace, self.name, self.revision, self.data = namespace, name, revision, data
        self._labels: dict[str, str] | None = None
        self._texts: dict[tuple[str, ...], str] | None = None

    def decode(self) -> Object:
        found: Object = _decode(self.data)
        return found

    @property
    def labels(self) -> dict[str, str]:
        """Its labels, read without the rest of the object and kept."""
        if self._labels is None:
            self._labels = _decode_head(self.data).metadata.labels or _NO_LABELS
        return self._labels

    def text_at(self, path: tuple[str, ...]) -> str:
        """The value at a path as a field selector compares it, "" if there is none; read once and kept, since as many
        watches as there are nodes ask for the same."""
        if self._texts is None:
            self._texts = {}
        if path not in self._texts:
            self._texts[path] = _text_at(self.decode(), path)
        return self._texts[path]

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


def _text_at(obj: Any, path: tuple[str, ...]) -> str:
    for part in path:
        if not isinstance(obj, dict):
            return ""
        obj = obj.get(part)
    if obj is None:
        return ""
    return ("true" if obj else "false") if isinstance(obj, bool) else str(obj)


def make_record(namespace: str, name: str, revision: int, obj: Object) -> Record:
    """Encode an object at a revision; `obj` gets its resourceVersion. What it is comes first: see `head_of`."""
    obj["metadata"]["resourceVersion"] = str(revision)
    if "kind" in obj:
        obj = {"kind": obj["kind"], "apiVersion": obj.get("apiVersion", ""), **obj}
    return Record(namespace, name, revision, _encode(obj))


def head_of(kind: str, api_version: str) -> bytes:
    """How the bytes of every stored object of a kind begin; lists of built-in kinds leave this out of their items."""
    return _encode({"kind": kind, "apiVersion": api_version})[:-1] + b","


class Event:
    """A change of one object: what it was, what it is. `object` and `old` are decoded once and shared: do not change
    them. The object of a deletion is its last state, at the revision of the deletion."""

    __slots__ = ("_departed", "_object", "_old", "before", "record", "table", "type")

    def __init__(self, table: str, type_: str, record: Record, before: Record | None) -> None:
        self.table, self.type, self.record, self.before = table, type_, record, before
        self._object: Object | None = None
        self._old: Object | None = None
        self._departed: Record | None = None

    @property
    def revision(self) -> int:
        return self.record.revision

    @property
    def namespace(self) -> str:
        return self.record.namespace

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def object(self) -> Object:
        if self._object is None:
            self._object = self.record.decode()
        return self._object

    @property
    def old(self) -> Object | None:
        if self._old is None and self.before is not None:
            self._old = self.before.decode()
        return self._old

    @property
    def departed(self) -> Record:
        """The state before, at the revision of this event: what those see who selected it and now do not."""
        if self._departed is None:
            before: Any = self.before
            self._departed = make_record(self.namespace, self.name, self.revision, before.decode())
        return self._departed
