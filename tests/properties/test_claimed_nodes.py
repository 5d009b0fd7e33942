"""Several schedulers on the same nodes: whatever is late, lost or dead, no node is filled twice."""

import asyncio
import random

from claims_world import Faults, Party, VirtualLoop, World, cpu_of, virtual_clocks
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.assembly import assemble
from mooring.engine.cycle import Scheduler

CPU, NODES = 4, 2
TROUBLE_SECONDS, PEACE_SECONDS = 200.0, 500.0


def new_scheduler(number: int) -> Scheduler:
    return assemble(None).under((f"mooring-{number}",)).new_scheduler(seed=number)


def drawn_faults(draw: random.Random) -> Faults:
    """Some kinds of faults, one of them frequent, others rare."""
    names = ("refused", "lost", "broken", "late", "slow", "broken_watch", "stalled_watch")
    return Faults(**{name: draw.choice((0.0, 0.0, 0.02, 0.05)) for name in names} | {draw.choice(names): 0.3})


async def play(seed: int, parties: int, same_pods: bool) -> World:
    """Pods come and go, schedulers die and come back, are cut off and heard of again; then everything is well."""
    draw = random.Random(seed)
    world = World(seed, drawn_faults(draw), {f"n{i}": CPU for i in range(NODES)})
    names = [f"mooring-{0 if same_pods else i}" for i in range(parties)]
    found = [Party(world, f"party-{i}", 0 if same_pods else i, new_scheduler) for i in range(parties)]
    for party in found:
        party.start()
    loop = asyncio.get_running_loop()
    number = 0
    while loop.time() < TROUBLE_SECONDS:
        for _ in range(draw.randint(1, 8)):
            world.create_pod(f"p{number}", draw.choice((1, 1, 2)), draw.choice(names))
            number += 1
        await asyncio.sleep(draw.expovariate(0.2))
        match draw.randint(0, 9):
            case 0:
                party = draw.choice(found)
                await party.kill()
                await asyncio.sleep(draw.uniform(0.0, 5.0))
                party.start()
            case 1:
                world.cut_off ^= {f"party-{draw.randrange(parties)}"}
        for name in draw.sample(sorted(world.pods), len(world.pods) // 3):
            world.delete_pod(name)
        for party in found:
            party.check()
    world.faults, world.cut_off = Faults(), set()
    await asyncio.sleep(PEACE_SECONDS)
    for party in found:
        party.check()
    for party in found:
        await party.kill()
    return world


@given(seed=st.integers(0, 2**32), parties=st.integers(2, 4), same_pods=st.booleans())
@settings(max_examples=12)
def test_no_node_is_filled_twice_whatever_is_late_lost_or_dead(seed: int, parties: int, same_pods: bool) -> None:
    random.seed(seed)
    loop = VirtualLoop()
    with virtual_clocks(loop):
        try:
            world = loop.run_until_complete(play(seed, parties, same_pods))
        finally:
            loop.close()
    assert world.complaints == []
    waiting = [cpu_of(pod) for pod in world.pods.values() if not pod["spec"].get("nodeName")]
    most = max(CPU - world.used()[name] for name in world.capacity)
    assert all(cpu > most for cpu in waiting), "somebody waits and would fit"
    assert sum(world.binds.values()) > 10
    assert world.claims is not None
    assert world.claims["data"].keys() == {"horizon"}, "claims stay behind"
