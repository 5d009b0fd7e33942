"""Random devices and claims, and a recount of who has what from the claims themselves."""

from collections import Counter
from collections.abc import Iterator

from mooring.model.api.claims import ResourceClaimSpec
from mooring.model.api.pods import Pod
from mooring.model.devices.device import Device, Inventory
from mooring.model.devices.requests import ClaimRequests
from mooring.model.events import Related
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_node
from mooring.testing.claim_builders import (
    CLASS,
    DRIVER,
    make_claiming_pod,
    make_class,
    make_device,
    make_request,
    make_slice,
    make_template,
)
from mooring.testing.random_clusters import Choose

MODELS = ("h100", "a100")


class ClaimWorld:
    """Nodes with devices of several sorts, and templates of claims to them."""

    def __init__(self, choose: Choose, nodes: int) -> None:
        self._choose = choose
        self.nodes = [make_node(f"n{index}") for index in range(nodes)]
        self.templates = [
            make_template(f"t{index}", *self._requests(), constraints=self._constraints()) for index in range(4)
        ]
        self.related: list[Related] = [make_class(), *self.templates]
        for node in self.nodes:
            self.related += self._slices(node.metadata.name)

    def pod(self, name: str, priority: int = 0) -> Pod:
        template = self.templates[self._choose(len(self.templates))].metadata.name
        return make_claiming_pod(name, templates=[template], cpu=1, priority=priority)

    def _requests(self) -> list[dict[str, object]]:
        selector = f'device.attributes["{DRIVER}"].model == "{MODELS[self._choose(2)]}"'
        kind = self._choose(5)
        if kind == 0:
            return [make_request("a", count=1 + self._choose(2)), make_request("b", selector)]
        if kind == 1:
            first = {"name": "big", "deviceClassName": CLASS, "count": 3}
            second = {"name": "small", "deviceClassName": CLASS, "count": 1}
            return [{"name": "a", "firstAvailable": [first, second]}]
        if kind == 2:
            return [make_request("a", capacity={"requests": {"memory": f"{1 + self._choose(6)}Gi"}})]
        if kind == 3:
            return [{"name": "a", "exactly": {"deviceClassName": CLASS, "allocationMode": "All"}}]
        return [make_request("a", *([selector] if self._choose(2) else []), count=1 + self._choose(3))]

    def _constraints(self) -> list[dict[str, object]]:
        kind = ("", "", "matchAttribute", "distinctAttribute")[self._choose(4)]
        return [{kind: f"{DRIVER}/numa"}] if kind else []

    def _slices(self, node: str) -> list[Related]:
        kind = self._choose(4)
        if kind == 0:
            return []
        if kind == 1:
            count = 1 + self._choose(4)
            return [make_slice(node, [self._gpu(f"gpu-{index}") for index in range(count)])]
        if kind == 2:
            policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "2Gi"}}
            capacity = {"memory": {"value": "8Gi", "requestPolicy": policy}}
            cards = [self._gpu(f"card-{i}", allowMultipleAllocations=True, capacity=capacity) for i in range(2)]
            return [make_slice(node, cards)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
        counters = {"name": "gpu", "counters": {"parts": {"value": "4"}}}
        cuts = [self._cut(f"cut-{index}", 1 + self._choose(4)) for index in range(5)]
        return [
            make_slice(node, [], name=f"{node}-counters", pool=pool, sharedCounters=[counters]),
            make_slice(node, cuts, name=f"{node}-cuts", pool=pool),
        ]

    def _gpu(self, name: str, **given: object) -> dict[str, object]:
        attributes: dict[str, int | bool | str] = {"model": MODELS[self._choose(2)], "numa": self._choose(2)}
        return make_device(name, attributes=attributes, **{"capacity": {"memory": {"value": "8Gi"}}, **given})

    def _cut(self, name: str, parts: int) -> dict[str, object]:
        return self._gpu(name, consumesCounters=[{"counterSet": "gpu", "counters": {"parts": {"value": str(parts)}}}])


def wrong_with_devices(cluster: Cluster) -> Iterator[str]:
    """Recount from the claims of pods: what is given out twice, overdrawn, or against what a claim asks for."""
    for row, found in cluster.devices.on_row.items():
        yield from _overdrawn(cluster, row, found.inventory)
    for record in cluster.pods.records.values():
        if record.row >= 0 and record.shape.claims:
            for key, spec in cluster.claims.claims_of(record.pod):
                yield from _unmet(cluster, record.row, key, spec)


def _overdrawn(cluster: Cluster, row: int, inventory: Inventory) -> Iterator[str]:
    node, found = cluster.nodes.name(row), cluster.devices.on_row[row]
    drawn: Counter[tuple[int, str, str]] = Counter()
    for position, device in enumerate(inventory.devices):
        pool = inventory.pool_of[position]
        shares = list(cluster.devices.holders(device.driver, found.pool_names[pool], device.name).values())
        if len(shares) > 1 and any(share.amounts is None for share in shares):
            yield f"{node}: {device.name} is given out {len(shares)} times"
        amounts: Counter[str] = Counter()
        for share in shares:
            amounts.update(dict(share.amounts or ()))
        for name, amount in amounts.items():
            if amount > device.capacity[name].value:
                yield f"{node}: {amount} of {name} of {device.name}, {device.capacity[name].value} there"
        if shares:
            for set_name, counters in device.consumes:
                drawn.update({(pool, set_name, name): amount for name, amount in counters.items()})
    for (pool, set_name, name), amount in drawn.items():
        if amount > inventory.pools[pool].counter_sets[set_name][name]:
            yield f"{node}: {amount} drawn of counter {set_name}/{name}"


def _unmet(cluster: Cluster, row: int, key: str, spec: ResourceClaimSpec) -> Iterator[str]:
    allocation = cluster.claims.state(key).allocation
    if allocation is None:
        yield f"{key}: its pod has a place, and it has no devices"
        return
    compiled = cluster.claims.compiled(cluster.claims.number_of(spec))
    assert isinstance(compiled, ClaimRequests)
    inventory, found = cluster.devices.of_row(row).inventory, cluster.devices.on_row[row]
    by_name: dict[str, list[Device]] = {}
    for result in allocation.devices.results or ():
        pool = found.pool_index[result.driver, result.pool]
        by_name.setdefault(result.request, []).append(inventory.devices[inventory.position_of[pool, result.device]])
    for request in compiled.requests:
        chosen = [each for each in request.alternatives if each.name in by_name]
        if len(chosen) != 1:
            yield f"{key}: {request.name} is met {len(chosen)} times"
            continue
        devices = by_name[chosen[0].name]
        if not chosen[0].wants_all and len(devices) != chosen[0].count:
            yield f"{key}: {len(devices)} devices for {request.name}, not {chosen[0].count}"
        if any(chosen[0].selects(device) is not True for device in devices):
            yield f"{key}: a device that {request.name} does not select"
    for constraint in compiled.constraints:
        concerned = [
            d for name, each in by_name.items() for d in each if constraint.concerns(name.partition("/")[0], name)
        ]
        values = [device.attribute(constraint.attribute) for device in concerned]
        if None in values or (len(set(values)) != len(values) if constraint.is_distinct else len(set(values)) > 1):
            yield f"{key}: {constraint.attribute} is {values}"
