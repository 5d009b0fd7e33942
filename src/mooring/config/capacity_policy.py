"""CapacityPolicy: how often nodes are bought and given back, and how long a launch may take."""

from dataclasses import dataclass, field
from typing import Any

from mooring.config.scheduler import ConfigObject, convert
from mooring.errors import ConfigError
from mooring.model.capacity.provider import Catalogue

KIND = "CapacityPolicy"
API_VERSION = "config.mooring.dev/v1alpha1"


class CapacityPolicy(ConfigObject):
    """The document as a whole."""

    api_version: str = API_VERSION
    kind: str = KIND
    provision_interval_seconds: float = 1.0
    """How often nodes are planned for pods that no node fits."""
    consolidation_interval_seconds: float = 10.0
    """How often it is looked which nodes could go."""
    consolidate: bool = True
    """Whether nodes are given back at all."""
    registration_timeout_seconds: float = 900.0
    """How long a node may take to appear after it was asked for."""
    retry_seconds: float = 60.0
    """For how long nothing is bought from a NodePool after a launch from it has failed."""
    quiet_seconds: float = 300.0
    """For how long a new node is not replaced or emptied because others are cheaper; empty ones go all the same."""
    spot_to_spot: bool = False
    """Whether spot nodes are replaced by cheaper spot nodes."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What can be bought, and how that is gone about."""

    catalogue: Catalogue
    policy: CapacityPolicy = field(default_factory=CapacityPolicy)


def parse_capacity_policy(document: Any, source: str) -> CapacityPolicy:
    """Give a document of the kind CapacityPolicy its type; say what is wrong with it if it has none."""
    version = str(document.get("apiVersion", ""))
    if version != API_VERSION:
        raise ConfigError(source, "apiVersion", expected=API_VERSION, found=f'"{version}"')
    policy = convert(document, CapacityPolicy, source)
    for name, value in (
        ("provisionIntervalSeconds", policy.provision_interval_seconds),
        ("consolidationIntervalSeconds", policy.consolidation_interval_seconds),
        ("registrationTimeoutSeconds", policy.registration_timeout_seconds),
    ):
        if value <= 0:
            raise ConfigError(source, name, expected="a number above 0", found=f"{value:g}")
    for name, value in (("retrySeconds", policy.retry_seconds), ("quietSeconds", policy.quiet_seconds)):
        if value < 0:
            raise ConfigError(source, name, expected="a number of at least 0", found=f"{value:g}")
    return policy
