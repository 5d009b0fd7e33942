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


Decision: TypeAlias = Bind | Wait
