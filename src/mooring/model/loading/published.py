"""What has been told of each object, so that only what differs is told next."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from mooring.model.api.pods import Pod
from mooring.model.events import (
    Event,
    GangLost,
    GangSeen,
    NodeLost,
    NodeSeen,
    ObjectLost,
    ObjectSeen,
    PodLost,
    PodSeen,
    WorkloadLost,
    WorkloadSeen,
    object_key,
)
from mooring.model.loading.collection import Collected
from mooring.model.objects.picture import Identity, identity_of
from mooring.model.queued.gathering import Gathering, is_same_workload
from mooring.model.what_matters import is_same, is_same_to_engine

OBJECT, NODE, GANG, POD, WORKLOAD = range(5)
Output = tuple[int, str, str]
"""What it is about, for objects the kind, and the key."""
Slot = Hashable
"""Whom an output is on account of: an object, a gang by its key, or the owner of what queues."""


class Outputs:
    """What a translation gives, each on somebody's account."""

    def __init__(self) -> None:
        self.values: dict[Output, Any] = {}
        self.slots: dict[Output, Slot] = {}

    def add(self, output: Output, value: Any, slot: Slot) -> None:
        self.values[output], self.slots[output] = value, slot


def outputs_of(collected: Collected, workloads: Gathering) -> Outputs:
    """Everything that the engine is told of some objects."""
    manifests, made_by = collected.manifests, collected.made_by
    outputs = Outputs()

    def producer(found: Any) -> Identity:
        identity = identity_of(found)
        return made_by.get(identity, identity)

    for found in manifests.related():
        outputs.add((OBJECT, found.kind, object_key(found)), found, producer(found))
    for node in manifests.nodes:
        outputs.add((NODE, "", node.name), node, producer(node))
    for gang in manifests.gangs:
        outputs.add((GANG, "", gang.key), gang, gang.key)
    for pod in manifests.pods:
        outputs.add((POD, "", pod.key), pod, producer(pod))
    for queued in workloads.workloads():
        workload = queued.workload
        slot: Slot = identity_of(workload) if workload.key in workloads.ownerless else queued.owner_key
        outputs.add((WORKLOAD, "", workload.key), queued, slot)
    return outputs


class Published:
    """All that has been told, by slot."""

    def __init__(self) -> None:
        self._values: dict[Output, Any] = {}
        self._slots: dict[Output, Slot] = {}
        self._by_slot: defaultdict[Slot, dict[Output, None]] = defaultdict(dict)

    def replace(self, slots: Iterable[Slot], outputs: Outputs) -> list[Event]:
        """Let these slots have these outputs and no others; the events that tell of it.

        What pods depend on comes first, then pods that go, then those that come.
        """
        concerned = dict.fromkeys(slots)
        fresh = {output: value for output, value in outputs.values.items() if outputs.slots[output] in concerned}
        before = [output for slot in concerned for output in self._by_slot.get(slot, ())]
        lost = [output for output in before if output not in fresh]
        for output in lost:
            self._forget(output)
        seen = [output for output, value in fresh.items() if self._take(output, value, outputs.slots[output])]
        return [*_events(lost, seen, self._values)]

    def replace_pods(self, lost: Iterable[Identity], found: Iterable[tuple[Identity, Pod]]) -> list[Event]:
        """The same for pods on nobody's account but their own, and with no other outputs."""
        outputs = [output for identity in lost for output in self._by_slot.get(identity, ())]
        for output in outputs:
            self._forget(output)
        events: list[Event] = [PodLost(key) for _, _, key in outputs]
        events += [
            PodSeen(pod)
            for identity, pod in found
            if self._take((POD, "", f"{identity[1]}/{identity[2]}"), pod, identity)
        ]
        return events

    def has(self, slot: Slot) -> bool:
        """Whether anything is told on somebody's account."""
        return bool(self._by_slot.get(slot))

    def _take(self, output: Output, value: Any, slot: Slot) -> bool:
        """Keep an output; tell whether it is news."""
        if self._slots.get(output) != slot:
            if output in self._slots:
                self._by_slot[self._slots[output]].pop(output, None)
            self._slots[output] = slot
            self._by_slot[slot][output] = None
        is_news = output not in self._values or not _is_same(output[0], self._values[output], value)
        if is_news:
            self._values[output] = value
        return is_news

    def _forget(self, output: Output) -> None:
        slot = self._slots.pop(output)
        del self._values[output]
        del self._by_slot[slot][output]
        if not self._by_slot[slot]:
            del self._by_slot[slot]


def _is_same(category: int, old: Any, new: Any) -> bool:
    match category:
        case 0 | 1:
            return is_same_to_engine(old, new)
        case 3:
            return is_same(old, new)
        case 4:
            return is_same_workload(old, new)
    return bool(old == new)


def _events(lost: list[Output], seen: list[Output], values: dict[Output, Any]) -> Iterator[Event]:
    def among(outputs: list[Output], category: int) -> Iterator[Output]:
        return (output for output in outputs if output[0] == category)

    yield from (ObjectLost(kind, key) for _, kind, key in among(lost, OBJECT))
    yield from (ObjectSeen(values[output]) for output in among(seen, OBJECT))
    yield from (NodeLost(key) for _, _, key in among(lost, NODE))
    yield from (NodeSeen(values[output]) for output in among(seen, NODE))
    yield from (GangSeen(values[output]) for output in among(seen, GANG))
    yield from (PodLost(key) for _, _, key in among(lost, POD))
    yield from (PodSeen(values[output]) for output in among(seen, POD))
    yield from (WorkloadLost(key) for _, _, key in among(lost, WORKLOAD))
    yield from (WorkloadSeen(values[output]) for output in among(seen, WORKLOAD))
    yield from (GangLost(key) for _, _, key in among(lost, GANG))
