"""What every Kubernetes object shares: metadata, owner references, selectors of labels and of nodes."""

from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

QuantityText: TypeAlias = str | int | float
"""A quantity as written in a manifest; `mooring.model.values.quantity` gives it its value."""

Labels: TypeAlias = dict[str, str]
Resources: TypeAlias = dict[str, QuantityText]


class KubeObject(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """The base of all API types here: camelCase outside, snake_case inside, unknown fields ignored."""


class OwnerReference(KubeObject):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(KubeObject):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Labels | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] | None = None
    generation: int = 0
    resource_version: str = ""


class LabelSelectorRequirement(KubeObject):
    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(KubeObject):
    match_labels: Labels | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class NodeSelectorRequirement(KubeObject):
    key: str
    operator: str
    values: list[str] | None = None


class NodeSelectorTerm(KubeObject):
    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(KubeObject):
    node_selector_terms: list[NodeSelectorTerm] = []


def timestamp_seconds(text: str | None) -> float | None:
    """A timestamp of the API as seconds since 1970; None where there is none, or none that can be read."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def timestamp_text(seconds: float) -> str:
    """Seconds since 1970 as the API writes timestamps."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class TypeMeta(KubeObject):
    """Just enough of a document to know what it is."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class Namespace(KubeObject):
    api_version: str = "v1"
    kind: str = "Namespace"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class Condition(KubeObject):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


Document: TypeAlias = dict[str, Any]
"""A manifest as parsed, before it has a type."""
