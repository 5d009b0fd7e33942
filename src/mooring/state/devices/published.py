"""Which pools each row can reach: ResourceSlices and rules that taint, kept up as they and the nodes change."""

from collections.abc import Set

from mooring.model.api.devices import DeviceTaintRule, ResourceSlice
from mooring.model.api.meta import Labels
from mooring.model.api.nodes import Node
from mooring.model.devices.device import Pool
from mooring.model.devices.slices import PoolReader, in_order, is_local
from mooring.model.node_offer import NodeOffer
from mooring.state.devices.table import DeviceTable, PoolId


class PublishedDevices:
    """Slices by pool, and the rows that have to be looked at when one changes."""

    def __init__(self, table: DeviceTable) -> None:
        self._table = table
        self._slices: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._pool_of: dict[str, PoolId] = {}
        """By slice."""
        self._on_node: dict[str, set[PoolId]] = {}
        """By the name of a node, the pools that are on it alone."""
        self._home_of: dict[PoolId, str] = {}
        self._wide: set[PoolId] = set()
        """Pools that more than one node may reach."""
        self._nodes: dict[str, tuple[int, Labels]] = {}
        self._touched: set[int] = set()
        self._reader = PoolReader()
        self._rules: dict[str, DeviceTaintRule] = {}

    @property
    def has_wide_pools(self) -> bool:
        return bool(self._wide)

    # Nodes.

    def put_node(self, row: int, node: Node) -> None:
        known = self._nodes.get(node.metadata.name)
        now = (row, node.metadata.labels or {})
        self._nodes[node.metadata.name] = now
        if known != now:
            self._look_at(node.metadata.name)

    def remove_node(self, name: str) -> None:
        row, _ = self._nodes.pop(name)
        self._table.put(row, [])
        self._touched.discard(row)

    def pools_of_offer(self, offer: NodeOffer) -> list[tuple[str, Pool]]:
        """The pools that a node on offer would have, each with its name."""
        by_pool: dict[PoolId, list[ResourceSlice]] = {}
        for each in offer.slices:
            by_pool.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
        found = []
        for pool_id, slices in sorted(by_pool.items()):
            name = slices[0].spec.node_name or offer.node.metadata.name
            pool = self._reader.pool(slices, name, offer.node.metadata.labels or {})
            if pool is not None:
                found.append((pool_id[1], pool))
        return in_order(found)

    # Slices and rules.

    def put(self, found: ResourceSlice) -> None:
        name = found.metadata.name
        pool_id = (found.spec.driver, found.spec.pool.name)
        before = self._pool_of.get(name)
        touched = self._reach(before) if before is not None else set()
        if before is not None and before != pool_id:
            self._drop(name, before)
        self._pool_of[name] = pool_id
        slices = self._slices.setdefault(pool_id, {})
        slices[name] = found
        self._index(pool_id)
        self._look_at(*(touched | self._reach(pool_id)))

    def remove(self, name: str) -> None:
        pool_id = self._pool_of.pop(name, None)
        if pool_id is None:
            return
        touched = self._reach(pool_id)
        self._drop(name, pool_id)
        self._look_at(*touched)

    def put_rule(self, rule: DeviceTaintRule) -> None:
        self._rules[rule.metadata.name] = rule
        self._look_at_all()

    def remove_rule(self, name: str) -> None:
        if self._rules.pop(name, None) is not None:
            self._look_at_all()

    def read(self, names: Set[str]) -> None:
        """Somebody reads these attributes of devices: they tell devices apart from now on."""
        if self._reader.read(names):
            self._look_at_all()

    def _drop(self, name: str, pool_id: PoolId) -> None:
        self._slices[pool_id].pop(name, None)
        self._index(pool_id)
        if not self._slices[pool_id]:
            del self._slices[pool_id]

    def _index(self, pool_id: PoolId) -> None:
        slices = self._slices[pool_id].values()
        home = self._home_of.pop(pool_id, None)
        if home is not None:
            self._on_node[home].discard(pool_id)
        self._wide.discard(pool_id)
        if not slices:
            return
        if is_local(slices):
            home = self._home_of[pool_id] = next(iter(slices)).spec.node_name or ""
            self._on_node.setdefault(home, set()).add(pool_id)
        else:
            self._wide.add(pool_id)

    def _reach(self, pool_id: PoolId) -> set[str]:
        """The nodes that a pool may be reached from."""
        if pool_id in self._wide:
            return set(self._nodes)
        return {self._home_of[pool_id]} if pool_id in self._home_of else set()

    def _look_at_all(self) -> None:
        self._reader.rules = dict(self._rules)
        self._look_at(*self._nodes)

    def _look_at(self, *names: str) -> None:
        """Find anew which pools nodes can reach."""
        for name in names:
            if name not in self._nodes:
                continue
            row, labels = self._nodes[name]
            found = []
            for pool_id in sorted((*self._on_node.get(name, ()), *self._wide)):
                pool = self._reader.pool(list(self._slices[pool_id].values()), name, labels)
                if pool is not None:
                    found.append((pool_id[1], pool))
            self._table.put(row, in_order(found))
            self._touched.add(row)

    def take_touched(self) -> set[int]:
        """The rows whose pools were looked at since the last time."""
        touched, self._touched = self._touched, set()
        return touched
