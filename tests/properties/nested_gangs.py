"""Gangs of gangs, up to three levels deep, in a random world; and what must hold of them after every cycle."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gang_checks import Watch, is_whole
from gang_stories import GangStory
from gang_worlds import GangWorld, Kind, random_kind, random_node

from mooring.model.events import Event, GangSeen, PodSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.keys import NO_GANG, GangKey, PodKey
from mooring.testing.random_clusters import Choose, one_in, one_of

OUTER_KIND = "CompositePodGroup.scheduling.k8s.io"


@dataclass
class NestedWorld(GangWorld):
    """As GangWorld, but gangs come as trees."""

    outer: dict[GangKey, Gang] = field(default_factory=dict)
    """By key, the gangs of gangs; they stay as they were declared."""

    def new_gang(self) -> list[Event]:
        if self.kinds and one_in(self.choose, 3):
            return self._missing_members()
        return list(self._new_tree(f"tree-{len(self.outer)}", NO_GANG, depth=1 + self.choose(2)))

    def _new_tree(self, name: str, parent: GangKey, depth: int) -> Iterator[Event]:
        """A gang, with gangs inside it; those of pods at the leaves."""
        if depth == 0:
            yield from self._new_leaf(name, parent)
            return
        inside = 1 + self.choose(3)
        key = gang_key(OUTER_KIND, "default", name)
        priority = None if parent else one_of(self.choose, (None, None, 5))
        minimum = 1 + self.choose(inside)
        gang = Gang(key, f"default/{name}", minimum, of_gangs=True, parent=parent, priority=priority)
        self.outer[key] = gang
        yield GangSeen(gang)
        for number in range(inside):
            yield from self._new_tree(f"{name}-{number}", key, depth - 1)

    def _new_leaf(self, name: str, parent: GangKey) -> Iterator[Event]:
        kind = random_kind(self.choose, name, most=3)
        gang = replace(
            kind.gang, parent=parent, priority=None, topology_request=None, roles=(), minimum=len(kind.members)
        )
        self.kinds[gang.key] = Kind(gang, kind.members)
        self.gangs[gang.key] = gang
        self._come(kind.members)
        yield GangSeen(gang)
        yield from map(PodSeen, kind.members)

    def is_whole(self, key: GangKey) -> bool:
        """Whether enough of a gang runs, or has succeeded."""
        if key not in self.outer:
            gang = self.gangs.get(key)
            return gang is not None and is_whole(gang, [*self.bound(key), *self.finished(key)])
        inside = [gang.key for gang in (*self.outer.values(), *self.gangs.values()) if gang.parent == key]
        return sum(self.is_whole(found) for found in inside) >= self.outer[key].minimum


class NestedWatch(Watch):
    """Whoever of a gang is bound makes it whole, and all that it is a part of, or comes to what is whole."""

    world: NestedWorld

    def _check_start(self, key: str, new: set[PodKey]) -> None:
        gang: Gang | None = self.world.gangs.get(key)
        assert gang is not None, f"{sorted(new)} were bound, and nobody declares {key}"
        while gang is not None:
            assert self.world.is_whole(gang.key), f"{gang.name} was started in part, with {sorted(new)}"
            gang = self.world.outer.get(gang.parent)

    def _check_timeout(self, key: str, now: float) -> None:
        """When a part is late depends on what it is a part of: this is checked of gangs by themselves."""


class NestedStory(GangStory):
    """A story of trees."""

    def _new_world(self, choose: Choose, nodes: int) -> NestedWorld:
        return NestedWorld(choose, {f"node-{i}": random_node(choose, f"node-{i}") for i in range(nodes)})

    def _new_watch(self, world: GangWorld) -> Watch:
        return NestedWatch(world)
