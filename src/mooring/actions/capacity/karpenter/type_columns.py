"""A catalogue of instance types as columns: what matches requirements and what is on offer, for all types at once."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mooring.model.capacity.instance_types import InstanceType
from mooring.model.capacity.labels import CAPACITY_TYPE, CAPACITY_TYPES, RESERVATION_ID, RESERVED, ZONE
from mooring.model.capacity.requirements import Requirement, Requirements
from mooring.state.remembered import Derived

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Units = npt.NDArray[np.int64]
Prices = npt.NDArray[np.float64]

NO_PRICE = float("inf")


class ResourceNames:
    """Which resource stands in which column."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._positions = {name: position for position, name in enumerate(self.names)}

    def vector(self, amounts: Mapping[str, int]) -> Units:
        row = np.zeros(len(self.names), np.int64)
        for name, amount in amounts.items():
            row[self._positions[name]] = amount
        return row

    def position(self, name: str) -> int:
        return self._positions[name]

    def amounts(self, row: Units) -> dict[str, int]:
        return {name: amount for name, amount in zip(self.names, row.tolist(), strict=True) if amount}


class TypeColumns:
    """Instance types in the order of the catalogue, with answers kept by requirement."""

    def __init__(self, types: Sequence[InstanceType], resources: ResourceNames) -> None:
        self.types = tuple(types)
        count = len(self.types)
        self.names = tuple(each.name for each in self.types)
        self.capacity: Units = np.array([resources.vector(each.capacity) for each in self.types], np.int64).reshape(
            count, len(resources.names)
        )
        self.allocatable: Units = np.array(
            [resources.vector(each.allocatable) for each in self.types], np.int64
        ).reshape(count, len(resources.names))
        self.is_sane: Mask = np.all(self.allocatable >= 0, axis=1)
        self._codes = {key: self._code(key) for each in self.types for key in each.requirements}
        offerings = [(row, offering) for row, each in enumerate(self.types) for offering in each.offerings]
        self.offerings = tuple(offering for _, offering in offerings)
        self.offering_type: Rows = np.array([row for row, _ in offerings], np.intp)
        self.prices: Prices = np.array([offering.price for offering in self.offerings], np.float64)
        self.is_available: Mask = np.array([offering.available for offering in self.offerings], np.bool_)
        self.has_reservations = any(
            offering.available and offering.capacity_type == RESERVED for offering in self.offerings
        )
        self._offering_values = {
            ZONE: _encode([offering.zone for offering in self.offerings]),
            CAPACITY_TYPE: _encode([offering.capacity_type for offering in self.offerings]),
            RESERVATION_ID: _encode([offering.reservation_id for offering in self.offerings]),
        }
        self._by_requirement: Derived[tuple[str, Requirement], Mask] = Derived()
        self._matching: Derived[Requirements, Mask] = Derived()
        self._on_offer: Derived[tuple[Requirement | None, ...], Mask] = Derived()

    def _code(self, key: str) -> tuple[Rows, list[Requirement | None]]:
        found: dict[Requirement | None, int] = {}
        codes = [found.setdefault(each.requirements.get(key), len(found)) for each in self.types]
        return np.array(codes, np.intp), list(found)

    def _mask_of(self, key: str, requirement: Requirement) -> Mask | None:
        """The types that a requirement on one key leaves; None if it leaves all."""
        if key not in self._codes:
            return None
        mask = self._by_requirement.get((key, requirement))
        if mask is None:
            codes, distinct = self._codes[key]
            answers = [
                own is None or own.intersects(requirement) or (own.may_be_absent and requirement.may_be_absent)
                for own in distinct
            ]
            mask = self._by_requirement.put((key, requirement), np.array(answers, np.bool_)[codes])
        return mask

    def matching(self, requirements: Requirements) -> Mask:
        """The types that satisfy requirements and have an available offering that does."""
        mask = self._matching.get(requirements)
        if mask is None:
            mask = np.zeros(len(self.types), np.bool_)
            mask[self.offering_type[self.on_offer(requirements)]] = True
            mask &= self.overlapping(requirements)
            self._matching.put(requirements, mask)
        return mask

    def overlapping(self, requirements: Requirements) -> Mask:
        """The types whose labels can satisfy requirements, whatever is on offer."""
        mask = np.ones(len(self.types), np.bool_)
        for key, requirement in requirements.items():
            of_key = self._mask_of(key, requirement)
            if of_key is not None:
                mask &= of_key
        return mask

    def on_offer(self, requirements: Requirements) -> Mask:
        """The available offerings that satisfy requirements."""
        signature = tuple(requirements.get(key) for key in self._offering_values)
        mask = self._on_offer.get(signature)
        if mask is None:
            mask = self._on_offer.put(signature, self.is_available & self.compatible_offerings(requirements))
        return mask

    def compatible_offerings(self, requirements: Requirements) -> Mask:
        """The offerings that satisfy requirements, available or not."""
        mask = np.ones(len(self.offerings), np.bool_)
        for key, (codes, values) in self._offering_values.items():
            requirement = requirements.get(key)
            if requirement is not None:
                # An offering without a reservation says nothing of the label.
                mask &= np.array([not value or requirement.has(value) for value in values], np.bool_)[codes]
        return mask

    def cheapest(self, requirements: Requirements) -> Prices:
        """The lowest price of each type; NO_PRICE where nothing is on offer."""
        prices = np.full(len(self.types), NO_PRICE)
        mask = self.on_offer(requirements)
        np.minimum.at(prices, self.offering_type[mask], self.prices[mask])
        return prices

    def worst_launch_price(self, requirements: Requirements) -> Prices:
        """The highest price that each type can be launched at, within the capacity type that is tried first."""
        mask = self.on_offer(requirements)
        codes, values = self._offering_values[CAPACITY_TYPE]
        prices = np.full(len(self.types), NO_PRICE)
        is_open = np.ones(len(self.types), np.bool_)
        for capacity_type in CAPACITY_TYPES:
            if capacity_type not in values:
                continue
            of_type = mask & (codes == values.index(capacity_type))
            highest = np.full(len(self.types), -1.0)
            np.maximum.at(highest, self.offering_type[of_type], self.prices[of_type])
            launched = is_open & (highest >= 0)
            prices[launched] = highest[launched]
            is_open &= ~launched
        return prices

    def count_values(self, rows: Rows, key: str, requirement: Requirement) -> int:
        """How many different values that a requirement allows these types have for a label."""
        if key not in self._codes:
            return 0
        codes, distinct = self._codes[key]
        values: set[str] = set()
        for code in np.unique(codes[rows]).tolist():
            own = distinct[code]
            if own is not None:
                values.update(own.values)
        return sum(requirement.has(value) for value in values)

    def missing_values(self, rows: Rows, requirements: Requirements) -> dict[str, int]:
        """The keys whose minValues these types do not reach, with what they have."""
        missing = {}
        for key, wanted in requirements.with_min_values:
            count = self.count_values(rows, key, requirements[key])
            if count < wanted:
                missing[key] = count
        return missing


def _encode(values: Sequence[str]) -> tuple[Rows, list[str]]:
    found: dict[str, int] = {}
    return np.array([found.setdefault(value, len(found)) for value in values], np.intp), list(found)
