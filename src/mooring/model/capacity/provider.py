"""A provider of simulated nodes: what it sells, how long that takes, and what goes wrong."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from mooring.model.capacity.instance_types import InstanceType


class Faults(msgspec.Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What goes wrong with launches: the share of them, each from 0 to 1."""

    fail: float = 0.0
    """The provider refuses the launch."""
    wrong_type: float = 0.0
    """A node of another instance type appears."""
    never_register: float = 0.0
    """The machine is launched, and its node never appears."""
    late: float = 0.0
    """The node takes `lateSeconds` longer."""
    late_seconds: float = 60.0
    seed: int = 0


class Provider(msgspec.Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How the provider of the embedded control plane behaves."""

    launch_seconds: float = 1.0
    """From the NodeClaim to the machine."""
    register_seconds: float = 2.0
    """From the machine to its node."""
    registration_timeout_seconds: float = 900.0
    """When a claim is given up whose node has not appeared."""
    spot_lifetime_seconds: float | None = None
    """After which spot nodes are taken back; None: never."""
    spot_notice_seconds: float = 120.0
    """How long before that a spot node takes no more pods."""
    faults: Faults = Faults()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What can be bought, and how the embedded control plane sells it."""

    instance_types: tuple[InstanceType, ...]
    provider: Provider
    quantities: Mapping[tuple[str, str, str], int]
    """By instance type, zone and capacity type: how many nodes there are at a time, where that is limited."""
