"""Which pods a turn is about, once it is decided how many members of which roles."""

from collections import Counter
from collections.abc import Sequence

from mooring.actions.batches import Batches
from mooring.actions.gangs.members import completing_members, needed_members
from mooring.actions.shares.jobs import Members
from mooring.actions.shares.shared_jobs import SharedJob, in_turn, role_key
from mooring.engine.queue.queue import Entry
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND


def members_of_turn(cluster: Cluster, job: SharedJob, members: Members) -> list[Entry]:
    """So many members of each role, the first in order; for a gang also those without requests that make it whole.

    Those without requests wait for nobody's share, so they count as present when it is decided how many others the gang
    starts with. Here they start together with these. Empty if the gang would not be whole.
    """
    left = Counter(dict(zip(job.members, members, strict=True)))
    if job.gang is None:
        return _first_of(cluster, job.spares, left)
    if not job.takes_turns or job.root is None:
        return needed_members(job.gang, cluster.gangs)
    waiting = in_turn(job.gang.entries.values(), job.root)
    chosen = _first_of(cluster, waiting, left)
    present = [*job.root.bound(), *(entry.record for entry in chosen)]
    best_effort = [entry for entry in waiting if job.is_best_effort(entry.record)]
    chosen += completing_members(job.root, present, best_effort)
    present = [*job.root.bound(), *(entry.record for entry in chosen)]
    return chosen if job.root.is_whole(present) else []


def _first_of(cluster: Cluster, waiting: Sequence[Entry], left: Counter[tuple[str, str, int]]) -> list[Entry]:
    chosen: list[Entry] = []
    wanted = left.total()
    for entry in waiting:
        if len(chosen) == wanted:
            break
        role = role_key(cluster, entry.record)
        if left[role] > 0:
            left[role] -= 1
            chosen.append(entry)
    return chosen


def first_misfit(cluster: Cluster, job: SharedJob, entries: Sequence[Entry], batches: Batches) -> dict[int, int]:
    """How many members have a node when the first of some that are placed one by one finds none, by role.

    Only of its own role: as in Volcano, nobody of that name is tried after it. Empty if all find a node.
    """
    with cluster.what_if():
        for entry in entries:
            row = batches.choose(cluster, entry.profile, entry.record.shape)
            if row < 0:
                refused = role_key(cluster, entry.record)
                return {
                    index: sum(record.row != UNBOUND for record in records)
                    for index, (role, records) in enumerate(job.members.items())
                    if role == refused or (refused[1] and role[:2] == refused[:2])
                }
            cluster.assume(entry.record.key, row)
    return {}
