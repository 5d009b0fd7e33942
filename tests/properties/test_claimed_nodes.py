"""Several schedulers on the same nodes: whatever is late, lost or dead, no node is filled twice.

The same stories, told of protocols that are broken on purpose, must end badly: else they would show nothing.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

import pytest
from claims_world import Faults, Party, VirtualLoop, World, cpu_of, virtual_clocks
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.assembly import assemble
from mooring.drivers.live.sharing import node_claims
from mooring.drivers.live.sharing.node_claims import Claim, NodeClaims
from mooring.drivers.live.sharing.sharing import Decided, Sharing
from mooring.engine.cycle import Scheduler

CPU, NODES = 4, 2
TROUBLE_SECONDS, PEACE_SECONDS = 200.0, 500.0
APART_SECONDS = (20.0, 260.0)
"""How long a scheduler is cut off: shorter and longer than it takes until others count it among the gone."""
PARTINGS = 2
MOST_STORIES = 40
"""So many stories are told at most of a protocol that is broken; most of them end with the first few."""


def new_scheduler(number: int) -> Scheduler:
    return assemble(None).under((f"mooring-{number}",)).new_scheduler(seed=number)


def drawn_faults(draw: random.Random) -> Faults:
    """Some kinds of faults, one of them frequent, others rare."""
    names = ("refused", "lost", "broken", "late", "slow", "broken_watch", "stalled_watch")
    return Faults(**{name: draw.choice((0.0, 0.0, 0.02, 0.05)) for name in names} | {draw.choice(names): 0.3})


class Story:
    """Some schedulers, and pods that come and go; what happens to them is drawn."""

    def __init__(self, seed: int, parties: int, same_pods: bool) -> None:
        self.draw = random.Random(seed)
        self.world = World(seed, drawn_faults(self.draw), {f"n{i}": CPU for i in range(NODES)})
        self._names = [f"mooring-{0 if same_pods else i}" for i in range(parties)]
        self.parties = [Party(self.world, f"party-{i}", 0 if same_pods else i, new_scheduler) for i in range(parties)]
        self._number = 0
        for party in self.parties:
            party.start()

    def come(self) -> None:
        """More pods than there is room for."""
        for _ in range(self.draw.randint(1, 8)):
            self.world.create_pod(f"p{self._number}", self.draw.choice((1, 1, 2)), self.draw.choice(self._names))
            self._number += 1

    def go(self, spared: frozenset[str] = frozenset()) -> None:
        """A third of them."""
        names = sorted(self.world.pods.keys() - spared)
        for name in self.draw.sample(names, len(names) // 3):
            self.world.delete_pod(name)

    def check(self) -> None:
        for party in self.parties:
            party.check()

    async def end(self) -> World:
        """Everything is well again, for long enough to finish what was begun."""
        self.world.faults, self.world.cut_off = Faults(), set()
        if not self.world.complaints:
            await asyncio.sleep(PEACE_SECONDS)
            self.check()
        for party in self.parties:
            await party.kill()
        return self.world


async def play(seed: int, parties: int, same_pods: bool) -> World:
    """Pods come and go, schedulers die and come back, are cut off and heard of again; then everything is well."""
    story = Story(seed, parties, same_pods)
    draw, world, loop = story.draw, story.world, asyncio.get_running_loop()
    while loop.time() < TROUBLE_SECONDS and not world.complaints:
        story.come()
        await asyncio.sleep(draw.expovariate(0.2))
        match draw.randint(0, 9):
            case 0:
                party = draw.choice(story.parties)
                await party.kill()
                await asyncio.sleep(draw.uniform(0.0, 5.0))
                party.start()
            case 1:
                world.cut_off ^= {f"party-{draw.randrange(parties)}"}
        story.go()
        story.check()
    return await story.end()


async def play_apart(seed: int, parties: int, same_pods: bool) -> World:
    """Again and again a scheduler is cut off just when it is about to bind, while the others go on."""
    story = Story(seed, parties, same_pods)
    draw, world, loop = story.draw, story.world, asyncio.get_running_loop()
    for _ in range(PARTINGS):
        alone = f"party-{draw.randrange(parties)}"
        claimed = frozenset[str]()
        while not claimed:
            if draw.random() < 0.02:
                story.come()
                story.go()
            await asyncio.sleep(0.01)
            if world.unbound_claims_of(alone):
                await asyncio.sleep(draw.uniform(0.0, 0.08))  # it hears of that, and sends its binds
                claimed = world.unbound_claims_of(alone)
        world.cut_off = {alone}
        until = loop.time() + draw.uniform(*APART_SECONDS)
        while loop.time() < until and not world.complaints:
            story.come()
            await asyncio.sleep(draw.uniform(2.0, 10.0))
            story.go(claimed)
            story.check()
        story.come()
        world.cut_off = set()
        await asyncio.sleep(draw.uniform(30.0, 60.0))
    return await story.end()


Play = Callable[[int, int, bool], Awaitable[World]]
PLAYS: Sequence[Play] = (play, play_apart)


def told(story: Play, seed: int, parties: int, same_pods: bool) -> World:
    """How a story ends, in a time of its own."""
    random.seed(seed)
    loop = VirtualLoop()

    async def run() -> World:
        return await story(seed, parties, same_pods)

    with virtual_clocks(loop):
        try:
            return loop.run_until_complete(run())
        finally:
            left = asyncio.all_tasks(loop)  # requests that are on their way
            for task in left:
                task.cancel()
            if left:  # a plain gather would look for the loop of this thread, which is another one
                loop.run_until_complete(asyncio.wait(left))
            loop.close()


@pytest.mark.parametrize("story", PLAYS)
@given(seed=st.integers(0, 2**32), parties=st.integers(2, 4), same_pods=st.booleans())
@examples(6)
def test_no_node_is_filled_twice_whatever_is_late_lost_or_dead(
    story: Play, seed: int, parties: int, same_pods: bool
) -> None:
    world = told(story, seed, parties, same_pods)
    assert world.complaints == []
    waiting = [cpu_of(pod) for pod in world.pods.values() if not pod["spec"].get("nodeName")]
    most = max(CPU - world.used()[name] for name in world.capacity)
    assert all(cpu > most for cpu in waiting), "somebody waits and would fit"
    assert sum(world.binds.values()) > 10
    assert world.claims is not None
    assert world.claims["data"].keys() == {"horizon"}, "claims stay behind"


# Protocols that are broken on purpose, each in one of the things that the argument of decision 0019 rests on.


def _bind_whatever_became_of_the_claim(self: NodeClaims, claim: Claim) -> bool:
    return True


def binds_after_its_claims_were_taken_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeClaims, "may_bind", _bind_whatever_became_of_the_claim)


def takes_the_silent_for_gone_while_their_binds_are_under_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(node_claims, "FORGOTTEN_SECONDS", 20.0)


def takes_claims_out_before_their_pods_are_seen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeClaims, "_settled", lambda self: dict.fromkeys(self._mine, frozenset()))


def asks_nobody_to_have_seen_the_pods_whose_claims_are_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeClaims, "_horizon_with", lambda self, left: 0)


def does_not_look_again_at_what_others_claimed(patch: pytest.MonkeyPatch) -> None:
    def nobody(self: Sharing) -> list[Decided]:
        return []

    patch.setattr(Sharing, "_late", nobody)


def writes_onto_what_it_has_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    write = NodeClaims.write

    async def read_and_write(self: NodeClaims, claims: Sequence[Claim]) -> bool:
        await self.read()
        return await write(self, claims)

    patch.setattr(NodeClaims, "write", read_and_write)


@pytest.mark.parametrize(
    ("broken", "story"),
    [
        (binds_after_its_claims_were_taken_out, play_apart),
        (takes_the_silent_for_gone_while_their_binds_are_under_way, play_apart),
        (takes_claims_out_before_their_pods_are_seen, play),
        (asks_nobody_to_have_seen_the_pods_whose_claims_are_out, play),
        (does_not_look_again_at_what_others_claimed, play),
        (writes_onto_what_it_has_not_looked_at, play),
    ],
)
def test_a_protocol_that_is_broken_fills_nodes_twice(
    broken: Callable[[pytest.MonkeyPatch], None], story: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert any(told(story, seed, 2 + seed % 3, bool(seed % 2)).complaints for seed in range(MOST_STORIES))
