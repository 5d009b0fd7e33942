"""Quotas that change by the clock: which windows are open at a moment, what quotas they leave, and what comes next.

A window names one quota (queue, flavor, resource) and other values for it. While several are open for the same quota,
each value is the one that the last of them in the list gives. No clock is read here: `now` comes in as an argument.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from mooring.config.tenant_policy import ALWAYS, QuotaWindow
from mooring.config.window_times import times_of
from mooring.model.api.kueue import ClusterQueue, FlavorQuotas, ResourceGroup, ResourceQuota
from mooring.model.api.meta import QuantityText
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import to_column_units
from mooring.state.quota_tree import FlavorResource, Quota
from mooring.state.remembered import Derived


class QuotaKey(NamedTuple):
    """Which quota: of which queue, for which flavor's resource."""

    queue: str
    flavor: str
    resource: str

    @property
    def column(self) -> FlavorResource:
        return FlavorResource(self.flavor, self.resource)


class Override(NamedTuple):
    """The values that open windows give a quota; None where they leave it as it is."""

    nominal: QuantityText | None = None
    borrowing_limit: QuantityText | None = None
    lending_limit: QuantityText | None = None

    def on(self, base: Quota, resource: str) -> Quota:
        """The quota that is left of a base one, in column units."""
        nominal, borrowing, lending = (
            None if text is None else to_column_units(resource, parse_quantity(text)) for text in self
        )
        return Quota(
            base.nominal if nominal is None else nominal,
            base.borrowing_limit if borrowing is None else borrowing,
            base.lending_limit if lending is None else lending,
        )


Overrides = dict[QuotaKey, Override]


class Switch(NamedTuple):
    """A moment at which windows open or close."""

    at: float
    windows: tuple[int, ...]
    """Their places in the list."""


class QuotaSchedule:
    """All quota windows. Nothing in it changes but what it remembers of its own answers."""

    def __init__(self, windows: Sequence[QuotaWindow] = ()) -> None:
        self.windows = tuple(windows)
        self.keys = tuple(QuotaKey(window.queue, window.flavor, window.resource) for window in windows)
        self._times = tuple(times_of(window) for window in windows)
        self._next: Derived[None, tuple[float, float | None]] = Derived(1)
        """A moment, and the next change after it."""

    def __bool__(self) -> bool:
        return bool(self.windows)

    def open_at(self, now: float) -> tuple[int, ...]:
        """The places of the windows that are open."""
        return tuple(index for index, times in enumerate(self._times) if times.is_open(now))

    def overrides(self, now: float) -> Overrides:
        """By quota, what the open windows make of it; quotas without an open window are left out."""
        found: Overrides = {}
        for index in self.open_at(now):
            window, key = self.windows[index], self.keys[index]
            before = found.get(key, Override())
            given = Override(window.nominal_quota, window.borrowing_limit, window.lending_limit)
            found[key] = Override(*(old if new is None else new for old, new in zip(before, given, strict=True)))
        return found

    def switches(self, now: float) -> Iterator[Switch]:
        """The moments after now at which windows open or close, in order, for about a year."""
        changes = merge(*(self._changes(index, now) for index in range(len(self.windows))))
        for at, found in groupby(changes, key=lambda change: change[0]):
            yield Switch(at, tuple(dict.fromkeys(index for _, index in found)))

    def _changes(self, index: int, now: float) -> Iterator[tuple[float, int]]:
        for at in self._times[index].changes_after(now):
            yield at, index

    def next_change(self, now: float) -> float | None:
        """The next moment at which any quota changes; None if none does within a year."""
        known = self._next.get(None)
        if known is None or now < known[0] or (known[1] is not None and known[1] <= now):
            before = self.overrides(now)
            changes = (switch.at for switch in self.switches(now) if self.overrides(switch.at) != before)
            known = self._next.put(None, (now, next(changes, None)))
        return known[1]

    def evicts_always(self, key: QuotaKey) -> bool:
        """Tell whether who holds more than this quota goes even if nobody waits for it."""
        return any(found == key and self.windows[index].evict == ALWAYS for index, found in enumerate(self.keys))

    def unknown(self, queues: Iterable[ClusterQueue]) -> Iterator["UnknownQuota"]:
        """The windows for quotas that none of the queues has."""
        known: dict[str, set[FlavorResource]] = {}
        for queue in queues:
            columns = known.setdefault(queue.metadata.name, set())
            for group in queue.spec.resource_groups or ():
                columns.update(
                    FlavorResource(flavor.name, quota.name) for flavor in group.flavors for quota in flavor.resources
                )
        for index, key in enumerate(self.keys):
            if key.queue not in known:
                yield UnknownQuota(index, "queue", key.queue, "a ClusterQueue that there is", tuple(sorted(known)))
                continue
            flavors = sorted({column.flavor for column in known[key.queue]})
            resources = sorted(column.resource for column in known[key.queue] if column.flavor == key.flavor)
            if key.flavor not in flavors:
                yield UnknownQuota(index, "flavor", key.flavor, f"a flavor of ClusterQueue {key.queue}", tuple(flavors))
            elif key.resource not in resources:
                expected = f"a resource of flavor {key.flavor} in ClusterQueue {key.queue}"
                yield UnknownQuota(index, "resource", key.resource, expected, tuple(resources))


class UnknownQuota(NamedTuple):
    """A window that can never open, because there is no such quota."""

    window: int
    """Its place in the list."""
    field: str
    name: str
    expected: str
    known: tuple[str, ...]
    """The names that there are."""


def apply(overrides: Overrides, queues: Iterable[ClusterQueue]) -> list[ClusterQueue]:
    """The queues with the quotas that the overrides leave; the ones given stay as they are."""
    concerned = {key.queue for key in overrides}
    return [_with_overrides(queue, overrides) if queue.metadata.name in concerned else queue for queue in queues]


def _with_overrides(queue: ClusterQueue, overrides: Overrides) -> ClusterQueue:
    name = queue.metadata.name

    def change_quota(flavor: str, quota: ResourceQuota) -> ResourceQuota:
        found = overrides.get(QuotaKey(name, flavor, quota.name))
        if found is None:
            return quota
        return replace(
            quota,
            nominal_quota=quota.nominal_quota if found.nominal is None else found.nominal,
            borrowing_limit=quota.borrowing_limit if found.borrowing_limit is None else found.borrowing_limit,
            lending_limit=quota.lending_limit if found.lending_limit is None else found.lending_limit,
        )

    def change_flavor(flavor: FlavorQuotas) -> FlavorQuotas:
        return replace(flavor, resources=[change_quota(flavor.name, quota) for quota in flavor.resources])

    def change_group(group: ResourceGroup) -> ResourceGroup:
        return replace(group, flavors=[change_flavor(flavor) for flavor in group.flavors])

    groups = [change_group(group) for group in queue.spec.resource_groups or ()]
    return replace(queue, spec=replace(queue.spec, resource_groups=groups))
