"""DefragmentGpus: pods with devices are moved so that those that wait for whole devices have room.

A pod or gang waits although enough devices are idle, because they are spread over nodes. The fewest pods are moved that
make room for all of it; where they go, and the room that they leave, is held.
"""

from collections.abc import Iterator, Sequence

from mooring.actions.gangs.members import needed_members
from mooring.actions.rebalance.defragment.search import MOST_MOVES, Amounts, Movable, Rearranged, Room, rearrangements
from mooring.actions.rebalance.descheduler.evictor import Evictor
from mooring.actions.rebalance.planned.mover import Mover, Why
from mooring.engine.queue.entries import Entry, GangEntry
from mooring.engine.queue.parked import Turn
from mooring.model.keys import PodKey
from mooring.model.values.requests import CPU, MEMORY
from mooring.state.cluster import Cluster
from mooring.state.nodes import PLACES
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape

STRATEGY = "DefragmentGpus"
PLAIN = frozenset((CPU, MEMORY, "ephemeral-storage"))
MOST_TRIES = 20
"""So many ways that amounts allow are rehearsed before it is given up."""
MOST_MEMBERS = 256
"""Room is made for no more at once: the search is as deep as there are members."""


def defragment(mover: Mover, evictor: Evictor) -> None:
    """Make room for each pod or gang that waits for devices, the first in the queue first."""
    turns = [turn for parked in mover.cycle.queue.parked() for turn in parked.turns()]
    for turn in sorted(turns, key=lambda turn: (turn.key, turn.arrival)):
        if mover.cycle.is_over() or not mover.left:
            return
        waiting = _waiting(mover.cycle.cluster, turn)
        if waiting and not _is_shared(mover, turn):
            _make_room(mover, evictor, turn, waiting)


def _waiting(cluster: Cluster, turn: Turn) -> list[Entry]:
    """The pods that have to start together, if they are alike and ask for devices."""
    entries = needed_members(turn, cluster.gangs) if isinstance(turn, GangEntry) else [turn]
    shapes = {entry.record.shape.id for entry in entries}
    if len(shapes) != 1 or len(entries) > MOST_MEMBERS or not _devices(entries[0].record.shape):
        return []
    return entries


def _is_shared(mover: Mover, turn: Turn) -> bool:
    return mover.shared.of_turn(mover.cycle.cluster, turn) is not None


def _devices(shape: Shape) -> list[str]:
    """The resources of a pod that are devices."""
    return [name for name, amount in shape.requests.items() if name not in PLAIN and amount]


def _make_room(mover: Mover, evictor: Evictor, turn: Turn, waiting: Sequence[Entry]) -> None:
    cluster, shape = mover.cycle.cluster, waiting[0].record.shape
    devices = _devices(shape)
    names = (*devices, *(name for name in shape.requests if name not in devices), PLACES)
    rooms = _rooms(mover, evictor, names, devices)
    most = min(MOST_MOVES, mover.left)
    ways = rearrangements(rooms, _amounts(shape, names), len(waiting), most_moves=most)
    name = turn.name if isinstance(turn, GangEntry) else turn.record.key
    why = Why(STRATEGY, evictor.profile, f"room for {name}, which waits for {' and '.join(devices)}")
    for _, way in zip(range(MOST_TRIES), ways, strict=False):
        hosts = _rehearse(mover, waiting, way)
        if hosts is None:
            continue
        leaving = [cluster.pods.records[PodKey(key)] for key in way.targets]
        targets = {PodKey(key): row for key, row in way.targets.items()}
        mover.make_room(turn, list(zip(waiting, hosts, strict=True)), leaving, targets, why)
        return


def _rooms(mover: Mover, evictor: Evictor, names: Sequence[str], devices: Sequence[str]) -> list[Room]:
    """All rows that have the devices, with what is free and the pods that hold devices and may be moved."""
    cluster = mover.cycle.cluster
    rows = cluster.rows()
    free = [rows.free(name).tolist() for name in names]
    barred = set(cluster.barred_rows)
    found = []
    for position, row in enumerate(rows.index.tolist()):
        if row in barred or cluster.nodes.node(row).spec.unschedulable:
            continue
        pods = tuple(_movable(mover, evictor, row, names, devices))
        amounts = tuple(column[position] for column in free)
        if pods or any(amounts[: len(devices)]):
            found.append(Room(row, amounts, pods))
    return found


def _movable(
    mover: Mover, evictor: Evictor, row: int, names: Sequence[str], devices: Sequence[str]
) -> Iterator[Movable]:
    records = sorted(mover.cycle.cluster.pods.on(row), key=lambda record: record.key)
    for record in records:
        if any(record.shape.requests.get(name) for name in devices) and _may_move(mover, evictor, record):
            yield Movable(record.key, row, _amounts(record.shape, names))


def _may_move(mover: Mover, evictor: Evictor, record: PodRecord) -> bool:
    """Whether a pod may be moved by itself: a gang's members go together, which is no small thing."""
    found = evictor.situation.find(record.key)
    if found is None or mover.cycle.cluster.gangs.of(record.key) is not None or not evictor.could_move(found):
        return False
    return mover.why_not_movable([record], lambda pod: evictor.may_evict(found)) is None


def _amounts(shape: Shape, names: Sequence[str]) -> Amounts:
    return tuple(1 if name == PLACES else shape.requests.get(name, 0) for name in names)


def _rehearse(mover: Mover, waiting: Sequence[Entry], way: Rearranged) -> list[int] | None:
    """Where those that wait would go, if the real plugins agree to all of it."""
    cluster = mover.cycle.cluster
    with cluster.what_if():
        for key in way.targets:
            cluster.release(PodKey(key))
        placed = mover.rehearsal.place(cluster, [entry.record.pod for entry in waiting], set(way.hosts))
        if placed.problem:
            return None
        for key, row in way.targets.items():
            if mover.place_again(PodKey(key), row):
                return None
        return [placed.rows[entry.record.key] for entry in waiting]
