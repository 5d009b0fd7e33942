"""What the API server says when it does not create an object."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from mooring.model.quotas.resource_names import resource_of

LIMIT_RANGER, RESOURCE_QUOTA = "LimitRanger", "ResourceQuota"
"""The admission plugins that refuse, under Kubernetes' names."""


class Refusal(Struct, frozen=True):
    """An object that is not created."""

    key: str
    """namespace/name"""
    message: str
    """What who creates it is told, with its name."""
    reason: str
    """The same without the object's name, so that what is refused for one reason can be told at once."""
    plugin: str
    found: Any
    """The object itself, with the defaults that it would have."""


def forbid(found: Any, reason: str, plugin: str) -> Refusal:
    """Refuse an object in the API server's words."""
    return Refusal(object_key(found), forbidden(found, reason), reason, plugin, found)


def forbidden(found: Any, reason: str) -> str:
    return f'{resource_of(found)} "{found.metadata.name}" is forbidden: {reason}'


def object_key(found: Any) -> str:
    return f"{found.metadata.namespace}/{found.metadata.name}"


def join_faults(faults: Iterable[str]) -> str:
    """Put several faults in one sentence: each once, in brackets if there are more than one."""
    found = list(dict.fromkeys(faults))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"
