"""What actions have to remember between cycles: what they said, and since when they have seen something.

How gangs fare that got nodes, when which workload was preempted, how GPUs were told to be cut, and which decisions the
world refused. All but the refusals, which only the cluster writes, are on the undo log. At the end, what actions keep
that follows from the state, and may be forgotten.
"""

from collections.abc import Callable, Hashable, ItemsView, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, ParamSpec, Self, TypeVar

from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.model.decisions import Instance
from mooring.model.events import Failed
from mooring.model.keys import GangKey
from mooring.model.memory import moment
from mooring.state.undo import UndoLog

Value = TypeVar("Value")

Cuts = Mapping[int, tuple[Instance, ...]]
"""The instances of each GPU, by its index."""


@dataclass(frozen=True, slots=True)
class _Told:
    uid: str
    cuts: Cuts = field(default_factory=dict)


class PartitionsTold:
    """By node; a node that is made anew knows nothing of what the one before was told."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self._by_node: dict[str, _Told] = {}

    def cuts(self, node: str, uid: str) -> Cuts:
        """What a node was told."""
        told = self._by_node.get(node)
        return told.cuts if told is not None and told.uid == uid else {}

    def tell(self, node: str, uid: str, cuts: Cuts) -> None:
        """Note what a node is told."""
        if self._by_node.get(node) != _Told(uid, cuts):
            self._set(node, _Told(uid, cuts))

    def forget(self, node: str) -> None:
        """The node is gone, or could not be told."""
        if node in self._by_node:
            self._set(node, None)

    def _set(self, node: str, told: _Told | None) -> None:
        self._log.note(self._set, node, self._by_node.get(node))
        if told is None:
            self._by_node.pop(node, None)
        else:
            self._by_node[node] = told


class GangStarts:
    """How gangs of pods fare that got nodes, by key; only the action that keeps gangs whole writes it."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self.short_since: dict[GangKey, float] = {}
        """When it was first seen without all that it needs."""
        self.starting_since: dict[GangKey, float] = {}
        """When it was first seen whole with members that the world has not confirmed."""
        self.ran: dict[GangKey, bool] = {}
        """Those that have been whole in the world's eyes, too."""
        self.recalled: dict[GangKey, float] = {}
        """Since when gangs are short, as the scheduler before this one has it: a restart does not begin their time
        anew."""

    def is_short(self, key: GangKey, now: float) -> float:
        """Note that a gang lacks something; return since when."""
        since = self.short_since.get(key)
        if since is None:
            since = min(now, self.recalled.get(key, now))
            self._set(self.recalled, key, None)
            self._set(self.short_since, key, since)
        return since

    def is_complete(self, key: GangKey) -> None:
        """Note that a gang lacks nothing."""
        self._set(self.short_since, key, None)

    def is_starting(self, key: GangKey, now: float) -> float:
        """Note that a gang is whole, and the world has not confirmed all of it; return since when."""
        if key not in self.starting_since:
            self._set(self.starting_since, key, now)
        return self.starting_since[key]

    def runs(self, key: GangKey) -> None:
        """Note that the world has confirmed a whole gang."""
        self._set(self.starting_since, key, None)
        self._set(self.ran, key, True)

    def forget(self, key: GangKey) -> None:
        """The gang is gone, or has no nodes any more."""
        self._set(self.short_since, key, None)
        self._set(self.starting_since, key, None)
        self._set(self.ran, key, None)

    def recall(self, short_since: Mapping[str, datetime]) -> None:
        """Let gangs that are short have been so since then."""
        self.recalled = {GangKey(key): since.timestamp() for key, since in short_since.items()}

    def forget_recalled(self) -> None:
        """Forget what was recalled of gangs that are not short now."""
        for key in list(self.recalled):
            self._set(self.recalled, key, None)

    def _set(self, records: dict[GangKey, Value], key: GangKey, value: Value | None) -> None:
        before = records.get(key)
        if before == value:
            return
        self._log.note(self._set, records, key, before)
        if value is None:
            records.pop(key, None)
        else:
            records[key] = value


class Preemptions:
    """When which workload was preempted, once for each decision; only the action that preempts writes it."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self._times: dict[str, tuple[float, ...]] = {}

    def note(self, workload: str, now: float) -> None:
        """Note that a workload is preempted now."""
        self._set(workload, (*self._times.get(workload, ()), now))

    def forget_until(self, then: float) -> None:
        """Give up what is too long ago to matter."""
        for workload, times in list(self._times.items()):
            if times[0] <= then:
                self._set(workload, tuple(time for time in times if time > then))

    def _set(self, workload: str, times: tuple[float, ...]) -> None:
        self._log.note(self._set, workload, self._times.get(workload, ()))
        if times:
            self._times[workload] = times
        else:
            self._times.pop(workload, None)

    def remembered(self) -> dict[str, list[datetime]]:
        return {workload: [moment(time) for time in times] for workload, times in sorted(self._times.items())}

    def recall(self, preemptions: Mapping[str, list[datetime]]) -> None:
        """Count what was noted before a restart."""
        self._times = {
            key: tuple(sorted(time.timestamp() for time in times)) for key, times in preemptions.items() if times
        }

    def spared(self, args: PreemptionCostArgs, now: float) -> dict[str, float]:
        """The workloads that were preempted often enough, and until when they are spared."""
        most = args.most_preemptions_per_workload
        if not most:
            return {}
        found = {}
        for workload, times in self._times.items():
            recent = [time for time in times if time > now - args.window_seconds]
            if len(recent) >= most:
                found[workload] = recent[-most] + args.window_seconds
        return found


class Moves:
    """When a pod of which controller was last moved to which node; only the action that rebalances writes it."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self._times: dict[tuple[str, str], float] = {}

    def note(self, owner: str, node: str, now: float) -> None:
        """Note that a pod of a controller moves to a node now."""
        self._set((owner, node), now)

    def last(self, owner: str, node: str) -> float | None:
        """When a pod of a controller was last moved to a node."""
        return self._times.get((owner, node))

    def forget_until(self, then: float) -> None:
        """Give up what is too long ago to matter."""
        for key in [key for key, time in self._times.items() if time <= then]:
            self._set(key, None)

    def _set(self, key: tuple[str, str], time: float | None) -> None:
        self._log.note(self._set, key, self._times.get(key))
        if time is None:
            self._times.pop(key, None)
        else:
            self._times[key] = time


class OverloadedNodes:
    """How often in a row nodes were measured to be overloaded; only the action that rebalances writes it."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self._times: dict[tuple[str, str], int] = {}

    def times(self, kind: str, node: str) -> int:
        """How often a node was found so in a row, for one kind of load."""
        return self._times.get((kind, node), 0)

    def note(self, kind: str, node: str, times: int) -> None:
        """Note how often it was; 0 forgets it."""
        key = (kind, node)
        before = self._times.get(key, 0)
        if before == times:
            return
        self._log.note(self.note, kind, node, before)
        if times:
            self._times[key] = times
        else:
            del self._times[key]


MOST_KEPT = 4096
"""Older ones are forgotten: an action reads the log in every cycle."""


class RefusedDecisions:
    """A log that each reader follows by its own position; only the cluster writes to it."""

    def __init__(self) -> None:
        self._failed: list[Failed] = []
        self._start = 0

    def note(self, failed: Failed) -> None:
        if len(self._failed) >= MOST_KEPT:
            kept = MOST_KEPT // 2
            self._start += len(self._failed) - kept
            del self._failed[:-kept]
        self._failed.append(failed)

    @property
    def position(self) -> int:
        """One past the last entry, counted from the beginning."""
        return self._start + len(self._failed)

    def since(self, position: int) -> Iterator[Failed]:
        """What was refused since a position."""
        return iter(self._failed[max(0, position - self._start) :])


@dataclass(frozen=True, slots=True)
class Renewal:
    """The pods of a controller that are made anew one after the other."""

    first: float
    """When the first of them was evicted."""
    last: float
    replicas: int
    """How many pods the controller had then."""


class Renewals:
    """Which controllers' pods are being made anew to have other amounts; only the action that resizes writes it."""

    def __init__(self, log: UndoLog) -> None:
        self._log = log
        self._by_target: dict[tuple[str, str, str], Renewal] = {}

    def of(self, target: tuple[str, str, str]) -> Renewal | None:
        """What is known of a controller, by namespace, kind and name."""
        return self._by_target.get(target)

    def set(self, target: tuple[str, str, str], found: Renewal | None) -> None:
        self._log.note(self.set, target, self._by_target.get(target))
        if found is None:
            self._by_target.pop(target, None)
        else:
            self._by_target[target] = found

    def forget_until(self, then: float) -> None:
        """Give up what is too long ago to matter."""
        for target in [target for target, found in self._by_target.items() if found.last <= then]:
            self.set(target, None)


# What is derived from the state and kept only because finding it again would cost more: the one form of a cache.
# Whatever keeps answers by key, or has to know whether something changed since it last looked, does so with these. Both
# may be emptied between two cycles, and nothing is decided otherwise: actions that are made anew begin with empty ones.

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")


class Derived(Generic[K, V]):
    """Values by key, found when they are first asked for. With `most`, the one that was put first makes room."""

    __slots__ = ("_most", "_values", "_version")

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._values: dict[K, V] = {}
        self._version: object = None

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def at(self, version: object) -> Self:
        """The same, emptied if the values were found at another version of what they follow from."""
        if version != self._version:
            self._values.clear()
            self._version = version
        return self

    def renew(self, version: object) -> None:
        """Note that what the values follow from has another version, and says the same as before."""
        self._version = version

    def of(self, key: K, find: Callable[P, V], *args: P.args, **kwargs: P.kwargs) -> V:
        """The value of a key; where it is not known, what `find` returns."""
        found = self._values.get(key)
        if found is None and key not in self._values:
            found = find(*args, **kwargs)
            self.put(key, found)
        return found  # type: ignore[return-value]  # None only where it was found

    def get(self, key: K) -> V | None:
        """The value of a key, if it is known."""
        return self._values.get(key)

    def items(self) -> ItemsView[K, V]:
        """All that are known."""
        return self._values.items()

    def put(self, key: K, value: V) -> V:
        """Let a key have a value, as the latest."""
        values = self._values
        values.pop(key, None)
        if self._most is not None and len(values) >= self._most:
            del values[next(iter(values))]
        values[key] = value
        return value

    def forget(self) -> None:
        """Empty it."""
        self._values.clear()


class Seen:
    """The version of something at which it was last looked at."""

    __slots__ = ("_version",)

    def __init__(self) -> None:
        self._version: object = None

    def is_news(self, version: object) -> bool:
        """Whether the version is another than at the last look; this is a look."""
        if version == self._version:
            return False
        self._version = version
        return True

    def is_at(self, version: object) -> bool:
        """Whether the last look was at this version; this is none."""
        return version == self._version

    def forget(self) -> None:
        """Let everything be news."""
        self._version = None
