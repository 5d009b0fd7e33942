"""What actions do to pods that run, and to those for whom they go: evict, nominate, withdraw.

Everybody who evicts does it here, for whichever reason: who is leaving is told so once, and whoever holds room that is
being made for it never ran, and gives that up instead.
"""

from collections.abc import Iterable, Sequence

from mooring.engine.queue.queue import Entry, Queue
from mooring.model.decisions import Decision, Evict
from mooring.model.keys import NO_GANG, GangKey
from mooring.state.cluster import Cluster
from mooring.state.intentions import NominatedPod, Nomination
from mooring.state.pods import PodRecord


def evict(
    cluster: Cluster, queue: Queue, record: PodRecord, preemptor: str, reason: str, moves_to: str = ""
) -> list[Decision]:
    """Tell a pod to go, unless it was told before or does not run; `moves_to` has room for what comes in its place."""
    nomination = cluster.nomination_of(record.key)
    if nomination is not None:
        withdraw(cluster, queue, nomination)
        return []
    node = record.node_name
    if not node:
        return []  # it held room with others, and gave it up with them
    return [Evict(record.key, node, preemptor, reason, moves_to)] if cluster.mark_leaving(record.key) else []


def nominate(
    cluster: Cluster,
    queue: Queue,
    entries: Sequence[Entry],
    rows: Sequence[int],
    victims: Iterable[PodRecord] = (),
    gang: GangKey = NO_GANG,
) -> Nomination:
    """Let pods hold rows, as others leave these for them or until they are permitted to start, and wait in no queue."""
    pods = tuple(_place(cluster, entry, row) for entry, row in zip(entries, rows, strict=True))
    leaving = tuple(victim.leaving for victim in victims if victim.leaving is not None)
    nomination = Nomination(pods, leaving, gang)
    for entry in entries:
        queue.set_aside(entry)
    cluster.nominate(nomination)
    return nomination


def withdraw(cluster: Cluster, queue: Queue, nomination: Nomination) -> bool:
    """Take the room back from pods that were nominated together: they wait again. Tell whether anybody held any."""
    records = cluster.pods.records
    holding = {
        pod.key
        for pod in nomination.pods
        if pod.key in records and records[pod.key].nominated and records[pod.key].pod.metadata.uid == pod.uid
    }
    cluster.withdraw(nomination)
    entries = [entry for pod in nomination.pods if (entry := queue.nominated.pop(pod.key, None)) is not None]
    waiting = [entry for entry in entries if entry.record.key in holding]
    if not nomination.gang:
        queue.put_back(waiting)
    else:
        for entry in waiting:
            queue.let_in(entry.record, entry.profile, entry.queued_at)
        queue.gang_changed(nomination.gang)  # whoever of it still waits belongs with them again
    return bool(waiting)


def is_held(cluster: Cluster, pod: NominatedPod) -> bool:
    """Whether a pod still holds its room: it is the same pod, and its node is there, in the domains that it was in."""
    record = cluster.pods.records.get(pod.key)
    if record is None or not record.nominated or record.pod.metadata.uid != pod.uid:
        return False
    if record.row != pod.row or cluster.nodes.row_of.get(pod.node) != pod.row:
        return False
    return (cluster.nodes.node(pod.row).metadata.labels or {}) == pod.labels


def _place(cluster: Cluster, entry: Entry, row: int) -> NominatedPod:
    node = cluster.nodes.node(row)
    labels = node.metadata.labels or {}
    return NominatedPod(entry.record.key, entry.record.pod.metadata.uid, node.metadata.name, row, labels)
