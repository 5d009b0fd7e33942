"""Whatever comes and goes: few move at a time, each finds a place before the next goes, and it all comes to rest."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Evict
from mooring.model.events import PodLost, PodSeen
from mooring.testing.builders import make_node, make_owner, make_pod, make_profile, make_scheduler

ROOM = 6
"""Cores of the pool's one node; the other has more than anybody needs."""
REST_CYCLES = 150
"""With half a minute each, longer than anybody is let be."""


def scheduler(most: int) -> Scheduler:
    pool = {"name": "r", "nodeLabels": {"pool": "r"}, "namespaces": ["team"], "movesBack": True}
    profile = make_profile(args={"NodePools": {"pools": [pool], "mostMovesAtATime": most}})
    profile["plugins"] = {"multiPoint": {"enabled": [{"name": "NodePools", "weight": 100}]}}
    nodes = [make_node("ours", cpu=ROOM, labels={"pool": "r"}), make_node("other", cpu=200)]
    return make_scheduler(nodes=nodes, profile=profile)


@dataclass
class World:
    """Controllers that make anew what is evicted, so many cycles later, and never more than they had."""

    found: Scheduler
    most: int
    delay: int
    now: float = 0.0
    made: int = 0
    pods: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    """By name: cores, the number of the set, and the node."""
    missing: list[tuple[int, int, int]] = field(default_factory=list)
    """Cores and set of pods that are to be made, and in how many cycles."""
    moves: int = 0

    def pod(self, name: str) -> Pod:
        cpu, number, node = self.pods[name]
        return make_pod(name, namespace="team", cpu=cpu, memory="1Mi", node=node, owner=make_owner(f"set-{number}"))

    def make(self, cpu: int, number: int) -> None:
        name = f"pod-{self.made}"
        self.made += 1
        self.pods[name] = (cpu, number, "")
        self.found.handle(PodSeen(self.pod(name)))

    def end(self, name: str) -> None:
        del self.pods[name]
        self.found.handle(PodLost(f"team/{name}"))

    def cycle(self) -> None:
        """Let half a minute pass."""
        self.now += 30
        waiting, self.missing = self.missing, []
        for cpu, number, cycles in waiting:
            if cycles:
                self.missing.append((cpu, number, cycles - 1))
            else:
                self.make(cpu, number)
        decisions = self.found.cycle(self.now)
        for bound in [decision for decision in decisions if isinstance(decision, Bind)]:
            name = bound.pod.removeprefix("team/")
            self.pods[name] = (*self.pods[name][:2], bound.node)
            self.found.handle(PodSeen(self.pod(name)))
        self.carry_out([decision for decision in decisions if isinstance(decision, Evict)])

    def carry_out(self, evicted: list[Evict]) -> None:
        assert len(evicted) <= self.most
        assert not evicted or not self.missing, "one went before what was to come in another's place had a place"
        for decision in evicted:
            name = decision.pod.removeprefix("team/")
            cpu, number, node = self.pods[name]
            assert (decision.successor, node) == ("ours", "other")
            self.end(name)
            self.missing.append((cpu, number, self.delay))
        self.moves += len(evicted)

    @property
    def free(self) -> int:
        return ROOM - sum(cpu for cpu, _, node in self.pods.values() if node == "ours")


@given(
    most=st.integers(1, 3),
    delay=st.integers(0, 2),
    steps=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=10),
)
def test_pods_that_spilled_over_come_to_rest_where_they_belong(
    most: int, delay: int, steps: list[tuple[int, int, int]]
) -> None:
    world = World(scheduler(most), most, delay)
    for cpu, number, ending in steps:
        if ending and world.pods:
            world.end(sorted(world.pods)[ending % len(world.pods)])
        world.make(cpu, number)
        world.cycle()

    for _ in range(REST_CYCLES):
        world.cycle()

    at_rest = world.moves
    world.cycle()
    assert (world.moves, world.missing) == (at_rest, [])
    assert [cpu for cpu, _, node in world.pods.values() if node == "other" and cpu <= world.free] == []
