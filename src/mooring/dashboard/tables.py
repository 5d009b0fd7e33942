"""Rows of the pages' tables, and the search over them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mooring.dashboard.picture import Picture, WhatIf
from mooring.report.explain.data import PodExplanation
from mooring.report.nodes import NodeMap
from mooring.report.schedule import Result

RUNNING, PLACED, WAITING, GATED = "running", "would be placed", "waiting", "gated"


class PodRow(NamedTuple):
    namespace: str
    pod: str
    state: str
    """running, would be placed (Mooring has a node for it), waiting or gated."""
    node: str
    priority: int
    owner: str
    message: str


class WorkloadRow(NamedTuple):
    """Pods of one workload that wait for the same reason."""

    namespace: str
    owner: str
    pods: int
    first: str
    """One of them, to ask about."""
    state: str
    message: str


class QuotaChange(NamedTuple):
    """What a ClusterQueue uses of a quota now (None: the queue is new), and would use."""

    queue: str
    flavor: str
    resource: str
    before: float | None
    after: float


@dataclass(frozen=True)
class Table:
    """Some of the rows, and what was asked for."""

    rows: Sequence[PodRow]
    found: int
    namespaces: Sequence[str]
    states: dict[str, int]
    search: str
    namespace: str
    state: str

    @classmethod
    def make(cls, rows: Sequence[PodRow], search: str, namespace: str, state: str, most: int) -> "Table":
        """The rows whose namespace and state are those, and that have the text in a name, an owner or a node."""
        found = [
            row
            for row in rows
            if (not namespace or row.namespace == namespace)
            and (not state or row.state == state)
            and (not search or search in f"{row.namespace}/{row.pod} {row.owner} {row.node}")
        ]
        namespaces = sorted({row.namespace for row in rows})
        states = dict(Counter(row.state for row in rows))
        return cls(found[:most], len(found), namespaces, states, search, namespace, state)


def pod_rows(picture: Picture) -> list[PodRow]:
    """All pods: those that wait first, in queue order."""
    result = picture.result
    rows = [
        PodRow(each.namespace, each.pod, state, "", each.priority, each.owner, each.message)
        for state, found in ((WAITING, result.waiting), (GATED, result.gated))
        for each in found
    ]
    placed = {(each.namespace, each.pod): each for each in result.placements}
    rows += [PodRow(*key, PLACED, each.node, each.priority, each.owner, "") for key, each in placed.items()]
    for record in picture.moment.offline.scheduler.cluster.pods.records.values():
        metadata = record.pod.metadata
        if record.node_name and not record.nominated and (metadata.namespace, metadata.name) not in placed:
            owner = picture.workloads.name_of(record.pod)
            rows.append(
                PodRow(metadata.namespace, metadata.name, RUNNING, record.node_name, record.priority, owner, "")
            )
    return rows


def waiting_rows(result: Result) -> list[PodRow]:
    return [
        PodRow(each.namespace, each.pod, WAITING, "", each.priority, each.owner, each.message)
        for each in (*result.waiting, *result.gated)
    ]


def workload_rows(result: Result) -> list[WorkloadRow]:
    """What waits, by workload and reason, in queue order."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for state, found in ((WAITING, result.waiting), (GATED, result.gated)):
        for each in found:
            groups.setdefault((each.namespace, each.owner or f"Pod/{each.pod}", state, each.message), []).append(
                each.pod
            )
    return [
        WorkloadRow(namespace, owner, len(pods), pods[0], state, message)
        for (namespace, owner, state, message), pods in groups.items()
    ]


def members_of(picture: Picture, explanation: PodExplanation) -> list[PodRow]:
    """The other pods of the same workload, and where they are."""
    rows = pod_rows(picture)
    own = next((row for row in rows if (row.namespace, row.pod) == (explanation.namespace, explanation.pod)), None)
    if own is None or not own.owner:
        return []
    return _same_owner(rows, own)


def quota_changes(outcome: WhatIf) -> list[QuotaChange]:
    """What each ClusterQueue would use, where that differs from what it uses now."""
    before = {
        (queue.name, quota.flavor, quota.resource): quota.used
        for queue in outcome.queues_before.queues
        for quota in queue.quotas
    }
    after = (
        QuotaChange(queue.name, quota.flavor, quota.resource, None, quota.used)
        for queue in outcome.queues.queues
        for quota in queue.quotas
    )
    found = (change._replace(before=before.get(change[:3])) for change in after)
    return [change for change in found if change.before != change.after]


def _same_owner(rows: Iterable[PodRow], own: PodRow) -> list[PodRow]:
    return [row for row in rows if (row.namespace, row.owner) == (own.namespace, own.owner)]


def some_of(nodes: NodeMap, rows: Sequence[int]) -> dict[str, object]:
    """What a page needs to bring its map up to date: positions, and what changes at each."""
    return {
        "rows": list(rows),
        "states": [nodes.states[at] for at in rows],
        "pods": [nodes.pods[at] for at in rows],
        "pools": [nodes.pools[at] for at in rows],
        "zones": [nodes.zones[at] for at in rows],
        "racks": [nodes.racks[at] for at in rows],
        "allocated": {resource: [values[at] for at in rows] for resource, values in nodes.allocated.items()},
    }
