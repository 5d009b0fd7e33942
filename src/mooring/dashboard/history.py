"""The cluster as it was: nodes, pods and queues at every moment since the dashboard began to follow it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mooring.dashboard.journal import Difference, Journal, Key, Value
from mooring.model.events import Event, PodLost, PodSeen
from mooring.report.nodes import NodeMap
from mooring.report.queues.data import QueuesResult

NODE, POD, QUEUE = "node", "pod", "queue"
MOST_STOPS = 1000
"""Moments at which the scrubber stops; links lead to any other."""


class QueueRow(NamedTuple):
    """What a queue had of a resource."""

    family: str
    queue: str
    flavor: str
    resource: str
    used: float


@dataclass(frozen=True)
class State:
    """The cluster at a moment."""

    at: float
    nodes: NodeMap
    pods: Mapping[str, str]
    """By key of a pod: its node; empty for one that waited."""
    queues: Sequence[QueueRow]


class History:
    """Notes what is seen, and tells what was."""

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = journal if journal is not None else Journal()

    @property
    def begins(self) -> float | None:
        return self._journal.begins

    @property
    def ends(self) -> float | None:
        return self._journal.ends

    def note(self, at: float, nodes: NodeMap, events: Iterable[Event]) -> None:
        """Note nodes as they are now, with what happened to pods since they were noted last."""
        self._journal.note(at, {**self._of_nodes(nodes), **_of_pods(events)})

    def note_nodes(self, at: float, nodes: NodeMap) -> None:
        self._journal.note(at, self._of_nodes(nodes))

    def note_queues(self, at: float, queues: QueuesResult) -> None:
        """Note what every queue uses now."""
        found: dict[Key, Value | None] = dict.fromkeys(self._journal.keys(QUEUE))
        for row in queue_rows(queues):
            found[QUEUE, row.family, row.queue, row.flavor, row.resource] = (row.used,)
        self._journal.note(at, found)

    def stops(self) -> list[float]:
        return self._journal.moments(MOST_STOPS)

    def at(self, moment: float) -> State:
        """Everything as it was."""
        known = self._journal.at(moment)
        nodes = sorted((key[1], value) for key, value in known.items() if key[0] == NODE)
        resources = list(dict.fromkeys(resource for _, value in nodes for resource, _ in value[5]))
        amounts = [dict(value[5]) for _, value in nodes]
        made = NodeMap(
            names=[name for name, _ in nodes],
            pools=[value[0] for _, value in nodes],
            zones=[value[1] for _, value in nodes],
            racks=[value[2] for _, value in nodes],
            states=[value[3] for _, value in nodes],
            pods=[value[4] for _, value in nodes],
            allocated={resource: [each.get(resource) for each in amounts] for resource in resources},
        )
        pods = {key[1]: value[0] for key, value in known.items() if key[0] == POD}
        queues = sorted(_queue_row(key, value) for key, value in known.items() if key[0] == QUEUE)
        return State(moment, made, pods, queues)

    def pods_between(self, start: float, end: float) -> list[tuple[str, str | None, str | None]]:
        """Pods whose node is another one, or that came or went: key, node before, node after (None: no such pod)."""
        return [
            (each.key[1], each.before[0] if each.before else None, each.after[0] if each.after else None)
            for each in self._between(start, end, POD)
        ]

    def queues_between(self, start: float, end: float) -> list[tuple[QueueRow, QueueRow]]:
        """Queues that use more or less: before and after."""
        return [
            (
                _queue_row(each.key, each.before),
                _queue_row(each.key, each.after),
            )
            for each in self._between(start, end, QUEUE)
        ]

    def nodes_between(self, start: float, end: float) -> list[tuple[str, str | None, str | None]]:
        """Nodes that came, went or are in another state: name, state before, state after (None: no such node)."""
        found = (
            (each.key[1], each.before[3] if each.before else None, each.after[3] if each.after else None)
            for each in self._between(start, end, NODE)
        )
        return [each for each in found if each[1] != each[2]]

    def _between(self, start: float, end: float, kind: str) -> list[Difference]:
        return [each for each in self._journal.between(start, end) if each.key[0] == kind]

    def _of_nodes(self, nodes: NodeMap) -> dict[Key, Value | None]:
        found: dict[Key, Value | None] = dict.fromkeys(self._journal.keys(NODE))
        columns = (nodes.pools, nodes.zones, nodes.racks, nodes.states, nodes.pods)
        amounts = zip(*nodes.allocated.values(), strict=True) if nodes.allocated else ()
        resources = tuple(nodes.allocated)
        for name, facts, percents in zip(nodes.names, zip(*columns, strict=True), amounts, strict=False):
            found[NODE, name] = (*facts, tuple(zip(resources, percents, strict=True)))
        return found


def _queue_row(key: Key, value: Value | None) -> QueueRow:
    _, family, queue, flavor, resource = key
    return QueueRow(family, queue, flavor, resource, value[0] if value else 0.0)


def queue_rows(queues: QueuesResult) -> list[QueueRow]:
    """What the queues of every family use, by flavor where they have flavors."""
    rows = [
        QueueRow("ClusterQueue", queue.name, quota.flavor, quota.resource, quota.used)
        for queue in queues.queues
        for quota in queue.quotas
    ]
    rows += [
        QueueRow("Volcano queue", queue.name, "", resource, amount)
        for queue in queues.volcano_queues
        for resource, amount in queue.allocated.items()
    ]
    return rows + [
        QueueRow(queue.kind, queue.name, "", resource, amount)
        for queue in queues.shared_queues
        for resource, amount in queue.allocated.items()
    ]


def _of_pods(events: Iterable[Event]) -> dict[Key, Value | None]:
    """Pods that have a node or wait for one; of those that ended, nothing is there any more."""
    found: dict[Key, Value | None] = {}
    for event in events:
        if isinstance(event, PodLost):
            found[POD, event.key] = None
        elif isinstance(event, PodSeen):
            found[POD, event.pod.key] = None if event.pod.is_terminal else (event.pod.spec.node_name or "",)
    return found
