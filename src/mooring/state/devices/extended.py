"""Extended resources that device classes serve: which rows have how much of them, by their devices."""

from collections.abc import Sequence

from mooring.model.api.claims import ResourceClaimSpec
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.devices.device import Inventory
from mooring.model.devices.extended import PREFIX, asked_resources, extended_claim, request_mappings, served_resources
from mooring.model.devices.selecting import selector
from mooring.model.values.quantity import parse_quantity
from mooring.state.devices.table import DeviceTable
from mooring.state.related import RelatedObjects


class ServedResources:
    """What classes serve, and what nodes offer themselves; a node that offers a resource serves it by its plugin."""

    def __init__(self, related: RelatedObjects, devices: DeviceTable) -> None:
        self._related = related
        self._devices = devices
        self._served: dict[str, str] = {}
        """By extended resource, the class that serves it."""
        self._own: dict[int, frozenset[str]] = {}
        """By row, the served resources that the node offers itself."""
        self._counted: dict[Inventory, dict[str, int]] = {}
        self._asked_by_class: set[str] = set()
        """Resources of a class's own name that somebody has asked for: others need no column."""
        self._is_news = False

    @property
    def is_mixed(self) -> bool:
        """Whether some nodes offer resources themselves that a class serves on others."""
        return bool(self._own)

    @property
    def is_any(self) -> bool:
        return bool(self._served)

    def classes_changed(self) -> None:
        self._served = served_resources(self._related.device_classes.values())
        self._counted.clear()

    def asked_by(self, pod: Pod) -> tuple[str, ...]:
        """The resources that a pod asks for and a class serves."""
        resources = asked_resources(pod, self._served) if self._served else ()
        new = [name for name in resources if name.startswith(PREFIX) and name not in self._asked_by_class]
        if new:
            self._asked_by_class.update(new)
            self._counted.clear()
            self._is_news = True
            self._devices.version += 1
        return resources

    def take_news(self) -> bool:
        """Whether a resource was asked for since the last time that no row has been given yet."""
        is_news, self._is_news = self._is_news, False
        return is_news

    def claim(self, pod: Pod, resources: Sequence[str]) -> ResourceClaimSpec:
        return extended_claim(pod, resources, self._served)

    def mappings(self, pod: Pod, spec: ResourceClaimSpec) -> tuple[tuple[str, str, str], ...]:
        return request_mappings(pod, spec, self._served)

    def left_by(self, row: int, resources: Sequence[str]) -> tuple[str, ...]:
        """Those of some resources that a node does not offer itself."""
        own = self._own.get(row, frozenset())
        return tuple(name for name in resources if name not in own)

    def offered(self, row: int, node: Node) -> dict[str, int]:
        """How many devices a row has for each resource that a class serves and the node does not offer."""
        given = node.status.allocatable or node.status.capacity or {}
        self._own[row] = own = frozenset(name for name in self._served if parse_quantity(given.get(name, 0)) > 0)
        if not own:
            del self._own[row]
        counts = self._counts(self._devices.of_row(row).inventory)
        return {name: count for name, count in counts.items() if name not in own}

    def _counts(self, inventory: Inventory) -> dict[str, int]:
        """How many devices of an inventory each resource has that somebody may ask for."""
        found = self._counted.get(inventory)
        if found is None:
            pools = inventory.pools
            usable = [d for d, pool in zip(inventory.devices, inventory.pool_of, strict=True) if pools[pool].is_usable]
            found = self._counted[inventory] = {}
            for name in self._served:
                if not name.startswith(PREFIX) or name in self._asked_by_class:
                    spec = self._related.device_classes[self._served[name]].spec
                    texts = [each.cel.expression for each in spec.selectors or () if each.cel is not None]
                    found[name] = sum(all(selector(text).matches(each) is True for text in texts) for each in usable)
        return found
