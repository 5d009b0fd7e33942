"""Where a manifest stood, so that whatever is wrong with it later can be said with file, document and field."""

from typing import Any

import msgspec

from mooring.errors import ManifestError

CLUSTER_SCOPED = frozenset(
    {"Node", "Namespace", "PriorityClass", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver"}
    | {"VolumeAttachment", "ResourceSlice", "DeviceClass", "DeviceTaintRule", "NodeResourceTopology", "Device"}
    | {"ResourceFlavor", "ClusterQueue", "Cohort", "WorkloadPriorityClass", "Topology", "AdmissionCheck"}
    | {"NodePool", "NodeClaim", "Provisioner"}
    | {
        "HyperNode",
        "Queue",
        "Queue.scheduling.run.ai",
        "ClusterTopologyBinding",
        "ClusterTopology",
        "ClusterTrainingRuntime",
        "ClusterColocationProfile",
    }
)


class Place(msgspec.Struct, frozen=True, gc=False):
    """One object's place: the file, the document in it, and for lists the item (`items[3]`).

    One is made per object and most are never printed, so the words are put together only when something is wrong.
    """

    file: str
    document: int | None = None
    item: int | None = None

    def error(self, field: str, *, expected: str, found: str, subject: Any = None) -> ManifestError:
        return ManifestError(
            self.file, self.document, self._full(field), expected=expected, found=found, kind=describe(subject)
        )

    def _full(self, field: str) -> str:
        if self.item is None:
            return field
        return f"items[{self.item}].{field}" if field else f"items[{self.item}]"

    def __str__(self) -> str:
        words = [self.file]
        if self.document is not None:
            words.append(f"document {self.document}")
        if self.item is not None:
            words.append(f"items[{self.item}]")
        return ": ".join(words)


def describe(subject: Any) -> str:
    """Name an object for a message, as in `Pod default/web`; an object without a name is just its kind."""
    if subject is None or isinstance(subject, str):
        return subject or ""
    metadata = subject.metadata
    name = metadata.name or metadata.generate_name
    if not name:
        return str(subject.kind)
    if subject.kind in CLUSTER_SCOPED:
        return f"{subject.kind} {name}"
    return f"{subject.kind} {metadata.namespace or 'default'}/{name}"


def show(value: Any) -> str:
    """Print a found value on one line, short enough for a message."""
    if isinstance(value, msgspec.Struct | dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, msgspec.MsgspecError):
        text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."
