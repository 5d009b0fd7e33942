"""One story told to two schedulers: whatever happens, both must decide the same, cycle by cycle."""

from dataclasses import dataclass
from typing import Any

from mooring.assembly import Assembly, assemble
from mooring.config.scheduler import parse_config
from mooring.engine.cycle import Scheduler
from mooring.engine.plugin import Plugin
from mooring.model.decisions import Decision, Wait
from mooring.model.events import Event, NodeSeen, ObjectSeen
from mooring.testing.builders import make_config
from mooring.testing.random_clusters import World


@dataclass(frozen=True)
class Outcome:
    """What a cycle decided, and how things stand after it, in comparable form."""

    decided: tuple[Decision, ...]
    waiting: frozenset[str]
    placed: dict[str, str]
    fingerprint: dict[str, Any]


def assembled(profile: dict[str, Any] | None, *plugins: type[Plugin]) -> Assembly:
    return assemble(parse_config(make_config(profile), "profile") if profile else None, extra_plugins=plugins)


def outcome(scheduler: Scheduler, decisions: list[Decision]) -> Outcome:
    decided = tuple(decision for decision in decisions if not isinstance(decision, Wait))
    records = scheduler.cluster.pods.records.values()
    return Outcome(
        decided,
        frozenset(entry.record.key for parked in scheduler.queue.parked() for entry in parked.entries),
        {record.key: record.node_name for record in records},
        without_empty_columns(scheduler.cluster.nodes.fingerprint()),
    )


def without_empty_columns(fingerprint: dict[str, Any]) -> dict[str, Any]:
    """A column is made when someone first asks for it, so that one scheduler may have more empty ones than another."""
    columns = {name: values for name, values in fingerprint["columns"].items() if any(values)}
    return fingerprint | {"columns": columns}


def waits(decisions: list[Decision]) -> set[Wait]:
    return {decision for decision in decisions if isinstance(decision, Wait)}


class Story:
    """A world, the scheduler that computes everything from nothing, and the one that keeps its answers."""

    def __init__(self, world: World, assembly: Assembly, other: Assembly | None = None) -> None:
        self.world = world
        self.plain = assembly.new_scheduler(cached=False)
        self.fast = (other or assembled_again(assembly)).new_scheduler()
        self.told: list[list[Event]] = []
        self.now = 0.0
        self.tell([*map(ObjectSeen, world.related), *map(NodeSeen, world.nodes.values())])

    def tell(self, events: list[Event]) -> None:
        self.told.append(events)
        self.plain.handle(*events)
        self.fast.handle(*events)

    def cycle(self, at_most: int = 2**31) -> tuple[Outcome, list[Decision]]:
        """Let both decide; fail where they differ."""
        self.now += 1.0
        decisions = self.plain.cycle(self.now, at_most=at_most)
        fast_decisions = self.fast.cycle(self.now, at_most=at_most)
        expected, found = outcome(self.plain, decisions), outcome(self.fast, fast_decisions)
        assert found.decided == expected.decided, self._differ(expected, found)
        assert found.placed == expected.placed, f"pods stand elsewhere after cycle {self.now:g}"
        assert found.waiting == expected.waiting, (
            f"other pods wait after cycle {self.now:g}: {sorted(found.waiting ^ expected.waiting)}"
        )
        assert found.fingerprint == expected.fingerprint, f"the columns differ after cycle {self.now:g}"
        unexplained = waits(fast_decisions) - waits(decisions)
        assert not unexplained, f"said of pods that wait, with caches only: {unexplained}"
        gone = self.world.carry_out(decisions)
        if gone:
            self.tell(gone)
        return expected, decisions

    def _differ(self, expected: Outcome, found: Outcome) -> str:
        for index, (want, have) in enumerate(zip(expected.decided, found.decided, strict=False)):
            if want != have:
                return f"cycle {self.now:g}, decision {index}: with caches {have}, from nothing {want}"
        short = min(len(expected.decided), len(found.decided))
        who, rest = "with caches", found.decided[short:]
        if len(expected.decided) > short:
            who, rest = "from nothing", expected.decided[short:]
        return f"cycle {self.now:g}: only {who}: {list(rest)}"


def assembled_again(assembly: Assembly) -> Assembly:
    """The same configuration, with plugin objects of its own: nothing that one scheduler remembers serves another."""
    return assemble(assembly.config)
