"""A short name for a pod template: equal templates have equal ones."""

import hashlib
from typing import Any

import msgspec

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and nothing that looks like another letter, as Kubernetes has it: no words come about."""
_encode = msgspec.json.Encoder(order="deterministic").encode
Object = dict[str, Any]


def template_hash(template: Object, collisions: int = 0) -> str:
    """Ten letters made of a template and of how often another had the same."""
    digest = hashlib.sha256(_encode(template) + str(collisions).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])


def is_same_template(one: Object, other: Object, ignoring: str) -> bool:
    """Whether two templates are the same but for one label, which is made of them."""
    return _without(one, ignoring) == _without(other, ignoring)


def _without(template: Object, label: str) -> Object:
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {key: value for key, value in (metadata.get("labels") or {}).items() if key != label}
    kept = {key: value for key, value in metadata.items() if value}
    return {**template, "metadata": kept}
