"""What a workload asks of a queue: how much of each resource, of which of the queue's groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mooring.actions.admit.quota.structure import FlavorGroup, Queue
from mooring.actions.admit.quota.workload_info import PendingWorkload, PodSetRequest
from mooring.model.values.requests import PODS
from mooring.state.remembered import Derived

MOST_KEPT = 10_000


class QuotaRequest(NamedTuple):
    """What a pod set asks of a queue, or some that must have the same flavors."""

    members: tuple[int, ...]
    totals: tuple[Mapping[str, int], ...]
    """For each of them, by resource."""
    groups: tuple[tuple[str, FlavorGroup | None, Mapping[str, int]], ...]
    """For each group of resources that is asked for: the first of these, and how much of each. None: the queue has none
    of the resource."""


class QuotaRequests:
    """What workloads ask for, kept by queue and shape: most ask for the same as one before them."""

    def __init__(self, *, ignores_undeclared: bool) -> None:
        self._ignores_undeclared = ignores_undeclared
        self._known: Derived[tuple[int, int], tuple[QuotaRequest, ...]] = Derived(MOST_KEPT)

    def of(
        self, pending: PendingWorkload, queue: Queue, counts: Sequence[int], *, is_whole: bool
    ) -> tuple[QuotaRequest, ...]:
        """What so many pods of each set ask for; `is_whole` says that it is all of them."""
        known = self._known.get((queue.node, pending.shape)) if is_whole else None
        if known is None:
            known = _ask(pending, queue, counts, ignores_undeclared=self._ignores_undeclared)
            if is_whole:
                self._known.put((queue.node, pending.shape), known)
        return known


def _ask(
    pending: PendingWorkload, queue: Queue, counts: Sequence[int], *, ignores_undeclared: bool
) -> tuple[QuotaRequest, ...]:
    with_pods = PODS in queue.group_by_resource
    found = []
    pod_sets = pending.pod_sets
    for members in _groups(pod_sets) if pending.has_groups else ((index,) for index in range(len(pod_sets))):
        totals = tuple(pod_sets[index].total(counts[index], with_pods=with_pods) for index in members)
        requests = totals[0] if len(members) == 1 else _sum(totals)
        groups: list[tuple[str, FlavorGroup | None, Mapping[str, int]]] = []
        seen: set[str] = set()
        for resource, amount in requests.items():
            group = queue.group_by_resource.get(resource)
            if group is None and amount != 0 and not ignores_undeclared:
                groups.append((resource, None, {}))
            elif group is not None and resource not in seen:
                wanted = {name: value for name, value in requests.items() if name in group.resources}
                groups.append((resource, group, wanted))
                seen |= group.resources
        found.append(QuotaRequest(members, totals, tuple(groups)))
    return tuple(found)


def _groups(pod_sets: Sequence[PodSetRequest]) -> list[tuple[int, ...]]:
    """Pod sets that share their flavors: those of one group together, at the place of the first."""
    found: dict[str, list[int]] = {}
    for index, pod_set in enumerate(pod_sets):
        found.setdefault(pod_set.topology.group or f"\n{index}", []).append(index)
    return [tuple(members) for members in found.values()]


def _sum(totals: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """What a group asks for together, in Kueue's order: the first one decides where the search goes on next time."""
    found: dict[str, int] = {}
    for total in totals:
        for resource, amount in total.items():
            found[resource] = found.get(resource, 0) + amount
    return {resource: found[resource] for resource in sorted(found, key=_fnv_1a)}


def _fnv_1a(text: str) -> int:
    """The hash by which Kueue orders resources."""
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = ((found ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return found
