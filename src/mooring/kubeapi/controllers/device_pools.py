"""The pools of a driver's devices, as their slices describe them and claims use them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mooring.model.values.quantity import format_quantity, parse_quantity

Object = dict[str, Any]
Counters = dict[tuple[str, str], int]
"""Amounts by counter set and counter."""
MOST_LISTED, LONGEST_ERROR = 32, 256
_PREVENTING = ("NoSchedule", "NoExecute")


@dataclass
class Pool:
    """The slices of one pool that are of its newest generation."""

    driver: str
    name: str
    generation: int
    slices: list[Object] = field(default_factory=list)

    @property
    def is_incomplete(self) -> bool:
        return len(self.slices) < max(int(each["spec"]["pool"].get("resourceSliceCount", 1)) for each in self.slices)

    @property
    def devices(self) -> Iterator[tuple[Object, str]]:
        """Each device, with the attribute that its slice groups partitions by."""
        for each in self.slices:
            for device in each["spec"].get("devices") or ():
                yield device, each["spec"].get("partitionTypeAttribute") or ""

    def status(self, claims: Iterable[Object], rules: Iterable[Object], default_attribute: str | None) -> Object:
        """The pool as a ResourcePoolStatusRequest shows it."""
        devices = list(self.devices)
        results = list(_results(claims, self.driver, self.name))
        taken = {result["device"] for result in results}
        relevant = [rule["spec"] for rule in rules if rule["spec"]["taint"].get("effect") in _PREVENTING]
        tainted = sum(self._is_tainted(device, relevant) for device, _ in devices)
        found: Object = {
            "driver": self.driver,
            "poolName": self.name,
            "generation": self.generation,
            "resourceSliceCount": len(self.slices),
            "totalDevices": len(devices),
            "allocatedDevices": len(taken),
            "availableDevices": max(0, len(devices) - len(taken) - tainted),
            "unavailableDevices": tainted,
        }
        nodes = {each["spec"].get("nodeName") or "" for each in self.slices}
        if len(nodes) == 1 and nodes != {""}:
            found["nodeName"] = nodes.pop()
        problems = []
        for name, view in (
            ("partitionSummary", self._partitions(devices, taken, default_attribute)),
            ("shareableSummary", self._shared(devices, taken, results)),
        ):
            if isinstance(view, str):
                problems.append(view)
            elif view:
                found[name] = view
        if problems:
            found.pop("partitionSummary", None)
            found["validationError"] = problems[0][:LONGEST_ERROR]
        return found

    def _is_tainted(self, device: Object, rules: list[Object]) -> bool:
        if any(taint.get("effect") in _PREVENTING for taint in device.get("taints") or ()):
            return True
        is_named = {"driver": self.driver, "pool": self.name, "device": device["name"]}
        selectors = [rule.get("deviceSelector") for rule in rules]
        return any(
            selector is not None and all(selector.get(field) in (None, value) for field, value in is_named.items())
            for selector in selectors
        )

    # Devices that are parts of others

    def _partitions(
        self, devices: list[tuple[Object, str]], taken: set[str], default: str | None
    ) -> list[Object] | str:
        """How many devices of each partition type there are, and how many more of it fit; a text if that is not to be
        told."""
        if not any(attribute for _, attribute in devices):
            devices = [(device, default or "") for device, _ in devices]
        if not any(attribute for _, attribute in devices):
            return []
        left = self._counters()
        if not left:
            return f"PartitionTypeMissing: {self} has a partition type attribute and no shared counters"
        groups: dict[tuple[str, str], list[Object]] = {}
        for device, attribute in devices:
            cost = _cost(device)
            if device["name"] in taken:
                _take(left, cost)
            if not cost or not attribute:
                continue
            type_ = self._type_of(device, attribute)
            if type_ is None:
                return f'PartitionTypeMissing: device "{device["name"]}" of {self} has no attribute "{attribute}"'
            members = groups.setdefault((attribute, type_), [])
            if members and _cost(members[0]) != cost:
                return f'PartitionCostMismatch: devices of type "{type_}" of {self} consume different counters'
            members.append(device)
        if len(groups) > MOST_LISTED:
            return f"PartitionSummaryOverCap: {self} has {len(groups)} partition types, more than {MOST_LISTED}"
        return [
            {
                "attribute": attribute,
                "type": type_,
                "total": len(members),
                "allocatable": _fitting(members, taken, left),
            }
            for (attribute, type_), members in sorted(groups.items())
        ]

    def _type_of(self, device: Object, attribute: str) -> str | None:
        attributes = device.get("attributes") or {}
        found = attributes.get(attribute) or attributes.get(attribute.removeprefix(f"{self.driver}/")) or {}
        value: str | None = found.get("string")
        return value

    def _counters(self) -> Counters:
        return {
            (each["name"], name): parse_quantity(counter["value"])
            for one in self.slices
            for each in one["spec"].get("sharedCounters") or ()
            for name, counter in (each.get("counters") or {}).items()
        }

    # Devices that several claims may share

    def _shared(self, devices: list[tuple[Object, str]], taken: set[str], results: list[Object]) -> Object | str:
        shared = [device for device, _ in devices if device.get("allowMultipleAllocations")]
        if not shared:
            return {}
        total: dict[str, tuple[int, str]] = {}  # with the suffix of the first, in whose form the others are written
        for device in shared:
            for name, capacity in (device.get("capacity") or {}).items():
                suffix = str(capacity["value"]).lstrip("+-.0123456789")
                before, like = total.get(name, (0, suffix))
                total[name] = before + parse_quantity(capacity["value"]), like
        if len(total) > MOST_LISTED:
            return f"ShareableSummaryOverCap: {self} has {len(total)} capacities, more than {MOST_LISTED}"
        consumed: dict[str, int] = {}
        for result in results:
            for name, amount in (result.get("consumedCapacity") or {}).items():
                consumed[name] = consumed.get(name, 0) + parse_quantity(amount)
        partly = sum(device["name"] in taken for device in shared)
        return {
            "fullyAvailableDevices": len(shared) - partly,
            "partiallyAvailableDevices": partly,
            "capacity": [
                {
                    "name": name,
                    "total": format_quantity(amount, like=like),
                    "consumed": format_quantity(consumed.get(name, 0), like=like),
                    "available": format_quantity(max(0, amount - consumed.get(name, 0)), like=like),
                }
                for name, (amount, like) in sorted(total.items())
            ],
        }

    def __str__(self) -> str:
        return f"pool {self.driver}/{self.name}"


def pools_of(driver: str, slices: Iterable[Object], only: str | None = None) -> list[Pool]:
    """The pools of a driver by name; slices of older generations do not count."""
    found: dict[str, Pool] = {}
    for each in slices:
        spec = each["spec"]
        name, generation = spec["pool"]["name"], int(spec["pool"].get("generation", 0))
        if spec["driver"] != driver or only not in (None, "", name):
            continue
        pool = found.get(name)
        if pool is None or generation > pool.generation:
            pool = found[name] = Pool(driver, name, generation)
        if generation == pool.generation:
            pool.slices.append(each)
    return [pool for _, pool in sorted(found.items())]


def _results(claims: Iterable[Object], driver: str, pool: str) -> Iterator[Object]:
    """What claims have of a pool; access of administrators takes nothing away."""
    for claim in claims:
        allocation = (claim.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            if (result["driver"], result["pool"]) == (driver, pool) and not result.get("adminAccess"):
                yield result


def _cost(device: Object) -> Counters:
    return {
        (each["counterSet"], name): parse_quantity(counter["value"])
        for each in device.get("consumesCounters") or ()
        for name, counter in (each.get("counters") or {}).items()
    }


def _take(left: Counters, cost: Mapping[tuple[str, str], int]) -> None:
    for counter, amount in cost.items():
        if counter in left:
            left[counter] -= amount


def _fitting(members: list[Object], taken: set[str], left: Counters) -> int:
    """How many more of equal devices fit into what is left of the counters."""
    cost, free = _cost(members[0]), sum(member["name"] not in taken for member in members)
    rooms = [left.get(counter, -1) // amount if amount else free for counter, amount in cost.items()]
    return max(0, min([free, *rooms]))
