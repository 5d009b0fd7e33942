"""InstanceTypeCatalogue: which instance types a provider has, what they hold, and at which prices they are on offer."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mooring.config.reading import load_documents
from mooring.config.scheduler import ConfigObject, convert
from mooring.errors import ConfigError
from mooring.model.api.meta import QuantityText, Resources
from mooring.model.capacity.instance_types import InstanceType, Offering, amounts_of
from mooring.model.capacity.labels import CAPACITY_TYPE, CAPACITY_TYPES, INSTANCE_TYPE, RESERVED, ZONE
from mooring.model.capacity.provider import Catalogue, Provider
from mooring.model.capacity.requirements import Requirement, Requirements
from mooring.model.values.quantity import QuantityError, parse_quantity
from mooring.model.values.requests import CPU, MEMORY, PODS

KIND = "InstanceTypeCatalogue"
API_VERSION = "mooring.dev/v1alpha1"
BUILT_IN = Path(__file__).with_name("catalogue.yaml")
"""What `mooring up` sells where nothing else is given."""
DEFAULT_PODS = 110
"""The kubelet's own limit, for types that say nothing of pods."""


class OfferingConfig(ConfigObject):
    """One way to launch an instance type."""

    zone: str
    price: float
    """Per hour, in one currency throughout."""
    capacity_type: str = "on-demand"
    available: bool = True
    """Whether there are more to be had; one that is not still gives existing nodes their price."""
    reservation_id: str = ""
    reservation_capacity: int = 0
    """How many nodes still fit the reservation."""
    quantity: int | None = None
    """How many nodes the embedded control plane has of it at a time; None: any number."""


class InstanceTypeConfig(ConfigObject):
    """A kind of node."""

    name: str
    capacity: Resources
    offerings: list[OfferingConfig]
    overhead: Resources = {}
    """What the system keeps for itself; the rest is for pods."""
    labels: dict[str, str | list[str]] = {}
    """Labels of such nodes, with the values that they can have; an empty list says that they never have the label."""


class CatalogueConfig(ConfigObject):
    """The file as a whole."""

    api_version: str
    kind: str
    instance_types: list[InstanceTypeConfig]
    provider: Provider = Provider()


def load_catalogue(path: Path) -> tuple[InstanceType, ...]:
    """Read instance types from a file; raise ConfigError for the first thing that is wrong with it."""
    return load_whole_catalogue(path).instance_types


def parse_catalogue(document: Any, source: str) -> tuple[InstanceType, ...]:
    """Give a parsed document its type, and make instance types of it."""
    return parse_whole_catalogue(document, source).instance_types


def load_whole_catalogue(path: Path) -> Catalogue:
    """Read a catalogue with its provider from a file; raise ConfigError for the first thing that is wrong with it."""
    documents = [document for document in load_documents(path) if document is not None]
    if len(documents) != 1:
        raise ConfigError(str(path), "", expected=f"one {KIND}", found=f"{len(documents)} documents")
    return parse_whole_catalogue(documents[0], str(path))


def parse_whole_catalogue(document: Any, source: str) -> Catalogue:
    """Give a parsed document its type."""
    if not isinstance(document, dict):
        raise ConfigError(source, "", expected=f"a {KIND}", found=type(document).__name__)
    for field, wanted in (("kind", KIND), ("apiVersion", API_VERSION)):
        if document.get(field) != wanted:
            raise ConfigError(source, field, expected=wanted, found=f'"{document.get(field, "")}"')
    config = convert(document, CatalogueConfig, source)
    if not config.instance_types:
        raise ConfigError(source, "instanceTypes", expected="at least one instance type", found="none")
    seen: dict[str, int] = {}
    for index, each in enumerate(config.instance_types):
        path = f"instanceTypes[{index}]"
        first = seen.setdefault(each.name, index)
        if first != index:
            found = f'"{each.name}" again, after instanceTypes[{first}]'
            raise ConfigError(source, f"{path}.name", expected="each name once", found=found)
        _check(each, source, path)
    _check_provider(config.provider, source)
    return Catalogue(
        tuple(_instance_type(each) for each in config.instance_types),
        config.provider,
        {
            (each.name, offering.zone, offering.capacity_type): offering.quantity
            for each in config.instance_types
            for offering in each.offerings
            if offering.quantity is not None
        },
    )


def _check_provider(provider: Provider, source: str) -> None:
    faults = provider.faults
    for name, share in (
        ("fail", faults.fail),
        ("wrongType", faults.wrong_type),
        ("neverRegister", faults.never_register),
        ("late", faults.late),
    ):
        if not 0 <= share <= 1:
            where = f"provider.faults.{name}"
            raise ConfigError(source, where, expected="a share from 0 to 1", found=f"{share:g}")
    for name, seconds in (
        ("launchSeconds", provider.launch_seconds),
        ("registerSeconds", provider.register_seconds),
        ("registrationTimeoutSeconds", provider.registration_timeout_seconds),
        ("spotLifetimeSeconds", provider.spot_lifetime_seconds),
        ("spotNoticeSeconds", provider.spot_notice_seconds),
        ("faults.lateSeconds", faults.late_seconds),
    ):
        if seconds is not None and seconds < 0:
            where = f"provider.{name}"
            raise ConfigError(source, where, expected="a number of at least 0", found=f"{seconds:g}")


def _check(each: InstanceTypeConfig, source: str, path: str) -> None:
    for field, resources in (("capacity", each.capacity), ("overhead", each.overhead)):
        for name, text in resources.items():
            if not _is_amount(text):
                expected = "a quantity of at least 0 such as 500m, 2 or 1.5Gi"
                raise ConfigError(source, f"{path}.{field}.{name}", expected=expected, found=f'"{text}"')
    for name in (CPU, MEMORY):
        if name not in each.capacity:
            raise ConfigError(source, f"{path}.capacity.{name}", expected="a quantity", found="none")
    for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE):
        if key in each.labels:
            expected = f"no {key}, which follows from name and offerings"
            raise ConfigError(source, f"{path}.labels", expected=expected, found="it")
    if not each.offerings:
        raise ConfigError(source, f"{path}.offerings", expected="at least one offering", found="none")
    for position, offering in enumerate(each.offerings):
        _check_offering(offering, source, f"{path}.offerings[{position}]")


def _is_amount(text: QuantityText) -> bool:
    try:
        return parse_quantity(text) >= 0
    except QuantityError:
        return False


def _check_offering(offering: OfferingConfig, source: str, path: str) -> None:
    if not 0 <= offering.price < 1e9:
        expected = "a price per hour of at least 0"
        raise ConfigError(source, f"{path}.price", expected=expected, found=f"{offering.price:g}")
    if offering.capacity_type not in CAPACITY_TYPES:
        expected = f"one of {', '.join(CAPACITY_TYPES)}"
        raise ConfigError(source, f"{path}.capacityType", expected=expected, found=f'"{offering.capacity_type}"')
    if (offering.capacity_type == RESERVED) != bool(offering.reservation_id):
        found = "none" if offering.capacity_type == RESERVED else f'"{offering.reservation_id}"'
        expected = "a reservation's id with capacityType reserved, and with no other"
        raise ConfigError(source, f"{path}.reservationId", expected=expected, found=found)
    if offering.quantity is not None and offering.quantity < 0:
        found = str(offering.quantity)
        raise ConfigError(source, f"{path}.quantity", expected="a number of at least 0", found=found)
    if offering.reservation_capacity < 0:
        found = str(offering.reservation_capacity)
        raise ConfigError(source, f"{path}.reservationCapacity", expected="a number of at least 0", found=found)


def _instance_type(each: InstanceTypeConfig) -> InstanceType:
    requirements = {
        INSTANCE_TYPE: _allowed((each.name,)),
        ZONE: _allowed(offering.zone for offering in each.offerings),
        CAPACITY_TYPE: _allowed(offering.capacity_type for offering in each.offerings),
        **{key: _allowed((values,) if isinstance(values, str) else values) for key, values in each.labels.items()},
    }
    return InstanceType(
        name=each.name,
        requirements=Requirements(requirements),
        capacity={PODS: DEFAULT_PODS, **amounts_of(each.capacity)},
        overhead=amounts_of(each.overhead),
        offerings=tuple(
            Offering(
                zone=offering.zone,
                capacity_type=offering.capacity_type,
                price=offering.price,
                available=offering.available,
                reservation_id=offering.reservation_id,
                reservation_capacity=offering.reservation_capacity,
            )
            for offering in each.offerings
        ),
    )


def _allowed(values: Iterable[str]) -> Requirement:
    return Requirement(frozenset(values))
