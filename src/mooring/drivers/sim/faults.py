"""What goes wrong by chance and what changes as planned: each notes in the agenda what happens next."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mooring.drivers.sim.machines import Machine
from mooring.drivers.sim.submissions import Given, Submissions, put_documents
from mooring.drivers.sim.world import World
from mooring.model.api.nodes import Node
from mooring.model.events import Event, NodeLost, NodeSeen
from mooring.model.kubelet.distributions import NEVER, Distribution, draw
from mooring.model.loading.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Chosen:
    """Nodes by name, by labels, or both; all, if neither is said."""

    names: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)

    def has(self, node: Node) -> bool:
        own = node.metadata.labels or {}
        if self.names and node.metadata.name not in self.names:
            return False
        return all(own.get(label) == value for label, value in self.labels.items())

    def of(self, world: World) -> Iterator[Machine]:
        yield from (machine for machine in world.machines.values() if self.has(machine.node))


@dataclass(frozen=True, slots=True)
class Failures:
    """Nodes fail, each for itself, and are repaired."""

    nodes: Chosen
    every: Distribution
    repair: Distribution

    def begin(self, world: World, seed: int) -> None:
        for machine in self.nodes.of(world):
            self._note(world, seed, machine, 0)

    def _note(self, world: World, seed: int, machine: Machine, number: int) -> None:
        works = self.every.at(draw(seed, "failure", machine.name, number))

        def fail(_: object) -> None:
            world.fail(machine)
            down = self.repair.at(draw(seed, "repair", machine.name, number))
            world.agenda.note(world.now + down, repair)

        def repair(_: object) -> None:
            world.repair(machine)
            self._note(world, seed, machine, number + 1)

        world.agenda.note(world.now + works, fail)


@dataclass(frozen=True, slots=True)
class Reclaims:
    """Nodes are taken away by whoever lent them, with notice, and may come back."""

    nodes: Chosen
    every: Distribution
    notice: float
    back: Distribution = NEVER

    def begin(self, world: World, seed: int) -> None:
        for machine in self.nodes.of(world):
            self._note(world, seed, machine, 0)

    def _note(self, world: World, seed: int, machine: Machine, number: int) -> None:
        lent = self.every.at(draw(seed, "reclaim", machine.name, number))

        def warn(_: object) -> None:
            world.cordon(machine, is_cordoned=True)
            world.agenda.note(world.now + self.notice, take)

        def take(_: object) -> None:
            world.take_away(machine)
            away = self.back.at(draw(seed, "back", machine.name, number))
            world.agenda.note(world.now + away, come)

        def come(_: object) -> None:
            world.bring_back(machine)
            self._note(world, seed, machine, number + 1)

        world.agenda.note(world.now + lent, warn)


@dataclass(frozen=True, slots=True)
class Change:
    """What happens at a given time: objects are applied, nodes cordoned, broken or repaired."""

    at: float
    """Seconds since the start."""
    given: tuple[Given, ...] = ()
    cordon: Chosen | None = None
    uncordon: Chosen | None = None
    fail: Chosen | None = None
    repair: Chosen | None = None

    @property
    def names(self) -> frozenset[str]:
        """All nodes that it names."""
        acts = (self.cordon, self.uncordon, self.fail, self.repair)
        return frozenset().union(*(chosen.names for chosen in acts if chosen is not None))

    def note(self, world: World, catalog: Catalog, submissions: Submissions) -> None:
        def happen(_: object) -> None:
            for event in self.apply(catalog):
                self._tell(world, event)
            submissions.forget()
            acts: list[tuple[Chosen | None, Callable[[Machine], None]]] = [
                (self.cordon, lambda machine: world.cordon(machine, is_cordoned=True)),
                (self.uncordon, lambda machine: world.cordon(machine, is_cordoned=False)),
                (self.fail, world.fail),
                (self.repair, world.repair),
            ]
            for chosen, act in acts:
                for machine in list(chosen.of(world)) if chosen is not None else ():
                    act(machine)

        world.agenda.note(world.now + self.at, happen)

    def apply(self, catalog: Catalog) -> list[Event]:
        """Put its objects into the catalog, or take them out of it; return what changes by that."""
        gone = [each for each in self.given if each[0]["metadata"].get("deletionTimestamp")]
        identities = list(put_documents(catalog, gone))  # so that defaults fill in the namespace
        for identity in identities:
            catalog.remove(*identity)
        list(put_documents(catalog, [each for each in self.given if each not in gone]))
        return catalog.changes()

    def _tell(self, world: World, event: Event) -> None:
        match event:
            case NodeSeen(node):
                world.see_node(node)
            case NodeLost(name):
                world.take_away(world.machines[name])
            case _:
                world.tell(event)
