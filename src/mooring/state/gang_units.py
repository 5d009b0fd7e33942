"""Which running pods go only with their whole gang: kept by slot, and worked out again for gangs that changed.

Members beyond what a gang needs (its surplus) may go by themselves. The others, its core, go together or not at all,
and take the surplus with them. So it is with gangs inside a gang, which may be more than it needs. Who is on the way
out already counts for nothing here.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mooring.model.gangs.gang import Gang
from mooring.model.keys import GangKey, PodKey
from mooring.model.priorities import is_preemptible
from mooring.state.gangs import GangRecord
from mooring.state.pods import UNBOUND, PodRecord

if TYPE_CHECKING:
    from mooring.state.cluster import Cluster

ALONE = -1
"""Instead of a unit's code: the pod goes by itself."""
UNTOUCHABLE = 1 << 62
"""The priority of those that may not be victims: above anybody's."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that go together or not at all."""

    code: int
    name: str
    """The gang's, for people."""
    core: tuple[PodRecord, ...]
    surplus: tuple[PodRecord, ...]

    @property
    def members(self) -> tuple[PodRecord, ...]:
        return self.core + self.surplus


@dataclass(frozen=True, slots=True)
class Standing:
    """An outermost gang as it was when it was last looked at."""

    declared: tuple[Gang | None, ...]
    """Itself and its parts: another value, and it has to be looked at again."""
    absent: int
    """How many members are being evicted, or have succeeded."""
    priority: int | None
    """None where nobody has declared it: then each pod has its own."""
    units: tuple[Unit, ...]
    rows: frozenset[int]


MOST_TOUCHED = 1 << 12
"""When more gangs than that were touched since room was last made for somebody, all that are known are looked at."""


class GangUnits:
    """All units of the running pods; `refresh` before reading."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self.units: dict[int, Unit] = {}
        """By code."""
        self.core_of = np.full(0, ALONE, np.int64)
        """By slot: the unit whose core a pod belongs to."""
        self.surplus_of = np.full(0, ALONE, np.int64)
        """By slot: the unit that takes a pod with it if it goes."""
        self._standings: dict[GangKey, Standing] = {}
        """By the key of the outermost gang."""
        self._on_row: dict[int, frozenset[GangKey]] = {}
        """row -> the outermost gangs that had pods there"""
        self._version = -1
        self._touched = cluster.gangs.watch_few(MOST_TOUCHED)
        self._free_codes: list[int] = []

    def cores(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The units whose core some pods belong to, ALONE where they go by themselves."""
        return self.core_of[slots] if self.units else np.full(slots.shape, ALONE, np.int64)

    def surpluses(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The units that take some pods with them, ALONE where none does."""
        return self.surplus_of[slots] if self.units else np.full(slots.shape, ALONE, np.int64)

    def slots_of(self, pod_key: PodKey) -> NDArray[np.int64]:
        """The slots of all pods in the gang of one of them, and in those that it has to start after."""
        gangs = self._cluster.gangs
        gang = gangs.of(pod_key)
        needed = list[GangRecord]()
        while gang is not None and (root := gangs.root_of(gang)) not in needed:
            needed.append(root)
            gang = gangs.records.get(root.gang.after) if root.gang is not None else None
        members = (record for root in needed for part in gangs.parts_of(root) for record in part.members.values())
        return np.array([record.slot for record in members], np.int64)

    def priority_of(self, record: PodRecord) -> int:
        """What a pod counts for as a victim: its gang's priority, if it is in one; UNTOUCHABLE if it may be none."""
        gangs = self._cluster.gangs
        key = gangs.of_pod.get(record.key)
        if key is None:
            return record.priority if is_preemptible(record.pod) else UNTOUCHABLE
        standing = self._standings.get(gangs.root_of(gangs.records[key]).key)
        return record.priority if standing is None or standing.priority is None else standing.priority

    def refresh(self, rows: Iterable[int] | None) -> set[int]:
        """Follow what happened on some rows, or anywhere (None); return those whose pods count for another priority."""
        gangs = self._cluster.gangs
        changed = set[GangKey]()
        if self._version != gangs.version:
            self._version = gangs.version
            touched = self._take_touched()
            changed |= {key for key in touched if not self._is_as_known(key, self._standings[key])}
        if rows is None:
            rows, changed = set(self._cluster.pods.on_row) | set(self._on_row), changed | set(self._standings)
        if gangs or self._on_row:
            # Who belongs together may be another question now, for everybody in a gang that changed.
            known_rows = (self._standings[key].rows for key in changed if key in self._standings)
            for row in {*rows, *itertools.chain.from_iterable(known_rows)}:
                changed |= self._on_row.pop(row, frozenset())
                now = frozenset(self._roots(record.key for record in self._cluster.pods.on(row)))
                if now:
                    changed |= now
                    self._on_row[row] = now
        return self._look_again(sorted(changed)) if changed else set()

    def _take_touched(self) -> set[GangKey]:
        """The outermost gangs that are known and may be others now: touched, around one that is, or inside it."""
        gangs = self._cluster.gangs
        found = set[GangKey]()
        inside, are_many = list(self._touched), self._touched.are_many
        self._touched.clear()
        if are_many:
            return set(self._standings)
        for key in inside:
            record = gangs.records.get(key)
            found |= {key} if record is None else {key, gangs.root_of(record).key}
            inside += gangs.children.get(key, ())
        return found & self._standings.keys()

    def _roots(self, pods: Iterable[PodKey]) -> set[GangKey]:
        gangs = self._cluster.gangs
        keys = {gangs.of_pod[pod] for pod in pods if pod in gangs.of_pod}
        return {gangs.root_of(gangs.records[key]).key for key in keys}

    def _is_as_known(self, root: GangKey, known: Standing) -> bool:
        gangs = self._cluster.gangs
        record = gangs.records.get(root)
        if record is None or record.gang is not known.declared[0]:
            return False
        if known.absent != _absent(gangs.parts_of(record)):
            return False
        if record.gang is not None and record.gang.parent in gangs.records:
            return False  # it is a part of another by now
        return not (root in gangs.children or len(known.declared) > 1) or self._declared(record) == known.declared

    def _declared(self, root: GangRecord) -> tuple[Gang | None, ...]:
        return (root.gang, *(part.gang for part in self._cluster.gangs.parts_of(root) if part is not root))

    def _look_again(self, roots: list[GangKey]) -> set[int]:
        """Look at some gangs again; return the rows of those whose priority is another now."""
        self._make_room()
        before = {root: self._standings.pop(root, None) for root in roots}
        # All are forgotten before any is noted again: a slot may have gone from a pod of one to a pod of another.
        for standing in before.values():
            for unit in standing.units if standing is not None else ():
                self.core_of[[record.slot for record in unit.core]] = ALONE
                self.surplus_of[[record.slot for record in unit.surplus]] = ALONE
                del self.units[unit.code]
                self._free_codes.append(unit.code)
        rows = set[int]()
        for root, old in before.items():
            standing = self._look(root)
            if standing is not None:
                self._standings[root] = standing
                if old is None or old.priority != standing.priority:
                    rows |= standing.rows
        return rows

    def _make_room(self) -> None:
        missing = self._cluster.pods.capacity - len(self.core_of)
        if missing > 0:
            more = np.full(missing, ALONE, np.int64)
            self.core_of = np.concatenate([self.core_of, more])
            self.surplus_of = np.concatenate([self.surplus_of, more])

    def _look(self, root: GangKey) -> Standing | None:
        """An outermost gang as it is; None if it has no pod that runs, or is a part of another."""
        gangs = self._cluster.gangs
        record = gangs.records.get(root)
        if record is None or gangs.root_of(record) is not record:
            return None
        parts = list(gangs.parts_of(record))
        bound = [member for part in parts for member in part.members.values() if member.row != UNBOUND]
        if not bound:
            return None
        return Standing(
            self._declared(record),
            _absent(parts),
            _priority(record, parts, bound),
            tuple(self._units(record, parts)),
            frozenset(member.row for member in bound),
        )

    def _units(self, root: GangRecord, parts: list[GangRecord]) -> Iterator[Unit]:
        if root.gang is None:
            return
        along: list[PodRecord] = []
        dispensable = list[GangRecord]()
        for inside in self._dispensable(root):
            leaves = list(self._cluster.gangs.parts_of(inside))
            unit = self._unit(inside.gang or root.gang, leaves)
            if unit is not None:
                yield unit
            along += [record for part in leaves for record in _staying(part)]
            dispensable += leaves
        main = self._unit(root.gang, [part for part in parts if part not in dispensable], along)
        if main is not None:
            yield main

    def _dispensable(self, gang: GangRecord) -> list[GangRecord]:
        """The gangs inside a gang that it can do without, the last come; also those inside the ones that it needs."""
        if gang.gang is None or not gang.gang.of_gangs or gang.gang.restarts_whole:
            return []
        inside = self._cluster.gangs.inside(gang)
        whole = [part for part in inside if self._cluster.gangs.is_whole(part)]
        more_than_needed = len(whole) - gang.gang.minimum
        spare = whole[-more_than_needed:] if more_than_needed > 0 else []
        return spare + [found for part in inside if part not in spare for found in self._dispensable(part)]

    def _unit(self, gang: Gang, parts: list[GangRecord], along: Sequence[PodRecord] = ()) -> Unit | None:
        """The unit that some parts make up; `along` are members of units that go with it, or without it."""
        core: list[PodRecord] = []
        surplus: list[PodRecord] = []
        for part in parts:
            staying = _staying(part)
            free = [] if gang.restarts_whole else part.surplus(staying)
            names = {record.key for record in free}
            surplus += free
            core += [record for record in staying if record.key not in names]
        if not core:
            return None
        code = self._free_codes.pop() if self._free_codes else len(self.units)
        self.core_of[[record.slot for record in core]] = code
        # The surplus of a unit that goes along goes with that unit already.
        following = [record.slot for record in along if self.surplus_of[record.slot] == ALONE]
        self.surplus_of[[*(record.slot for record in surplus), *following]] = code
        unit = self.units[code] = Unit(code, gang.name, tuple(core), (*surplus, *along))
        return unit


def _staying(part: GangRecord) -> list[PodRecord]:
    return [record for record in part.bound() if not record.shape.terminating]


def _absent(parts: Iterable[GangRecord]) -> int:
    return sum(part.count_leaving() + len(part.done) for part in parts)


def _priority(root: GangRecord, parts: list[GangRecord], bound: list[PodRecord]) -> int | None:
    """What all of a gang count for, since they go together; None where nobody has declared it.

    Never less than what it preempts with: else two would evict each other by turns.
    """
    if root.gang is None:
        return None
    if not root.gang.preemptible or not all(is_preemptible(record.pod) for record in bound):
        return UNTOUCHABLE
    if root.gang.priority is not None:
        return root.gang.priority
    return max(record.priority for part in parts for record in part.members.values())
