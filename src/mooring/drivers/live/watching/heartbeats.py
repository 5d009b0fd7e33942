"""Heartbeats of nodes, told from news by the bytes of what scheduling reads of a node.

Most of what a watch of nodes brings is a status that says the same again, with another time. To find that out takes a
fraction of what it costs to read the node and compare it.
"""

import msgspec

NOTHING = msgspec.Raw()


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: msgspec.Raw = NOTHING
    annotations: msgspec.Raw = NOTHING
    owner_references: msgspec.Raw = NOTHING


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, rename="camel"):
    capacity: msgspec.Raw = NOTHING
    allocatable: msgspec.Raw = NOTHING
    images: msgspec.Raw = NOTHING
    declared_features: msgspec.Raw = NOTHING
    conditions: tuple[_Condition, ...] | None = None


class _Node(msgspec.Struct):
    metadata: _Metadata
    spec: msgspec.Raw = NOTHING
    status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(_Node).decode


class Heartbeats:
    """Knows of each node what was last read of it, as a number."""

    def __init__(self) -> None:
        self._read: dict[str, int] = {}

    def name_and_version(self, raw: msgspec.Raw) -> tuple[str, str] | None:
        """The name and the version of a node that says nothing but what it said when it was last read."""
        try:
            node = _decode(raw)
        except msgspec.MsgspecError:  # the words for it are those of the one that reads it
            return None
        metadata = node.metadata
        if self._read.get(metadata.name) != _number_of(node):
            return None
        return metadata.name, metadata.resource_version

    def note(self, raw: msgspec.Raw) -> None:
        """A node was read as it is here."""
        node = _decode(raw)
        self._read[node.metadata.name] = _number_of(node)

    def forget(self, name: str) -> None:
        self._read.pop(name, None)


def _number_of(node: _Node) -> int:
    """A number that differs for nodes that differ in anything that is read of them."""
    metadata, status = node.metadata, node.status
    parts = (metadata.labels, metadata.annotations, metadata.owner_references, node.spec)
    amounts = (status.capacity, status.allocatable, status.images, status.declared_features)
    return hash((metadata.uid, metadata.deletion_timestamp, status.conditions, *map(bytes, parts + amounts)))
