"""What to do, as values: a cycle returns them and a driver carries them out."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Bind:
    """Run this pod on that node."""

    pod: str
    """namespace/name"""
    node: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done for this pod now; the message says why, in kube-scheduler's words."""

    pod: str
    message: str
    plugins: tuple[str, ...] = ()
    """The plugins that refused it: an event that none of them cares for cannot help."""
    nominated_node: str = ""
    """The node on which room is being made for it, if that is so: status.nominatedNodeName."""


@dataclass(frozen=True, slots=True)
class Evict:
    """Take this pod off that node, to make room for the preemptor."""

    pod: str
    """namespace/name"""
    node: str
    preemptor: str
    """namespace/name"""
    reason: str
    """In the words of kube-scheduler's event on the victim."""


Decision: TypeAlias = Bind | Wait | Evict
