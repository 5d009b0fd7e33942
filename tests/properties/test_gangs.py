"""What holds of gangs, whatever happens: whole or absent, in their place, and nobody waits without need."""

from typing import Any

from drawing import choices
from gang_stories import GangStory, no_preemption
from gang_worlds import random_gang_world, random_kind
from hypothesis import given
from hypothesis import strategies as st
from nested_gangs import NestedStory

from mooring.model.decisions import Bind
from mooring.model.events import GangSeen, PodSeen
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_profile, make_scheduler
from mooring.testing.random_clusters import Choose, seeded

STEPS = st.lists(st.integers(1, 4), min_size=1, max_size=6)
PROFILES = st.sampled_from([no_preemption(), make_profile()])
NEVER_RESERVES = {"GangScheduling": {"reserveAfterSeconds": -1}}


@given(choose=choices(), nodes=st.integers(1, 6), steps=STEPS, profile=PROFILES)
def test_gangs_are_whole_or_absent_and_where_they_have_to_be(
    choose: Choose, nodes: int, steps: list[int], profile: dict[str, Any]
) -> None:
    story = GangStory(choose, nodes, profile)

    for events in steps:
        story.go_on(events)


@given(seed=st.integers(0, 1_000_000), profile=PROFILES)
def test_long_stories_too(seed: int, profile: dict[str, Any]) -> None:
    choose = seeded(seed)
    story = GangStory(choose, 2 + choose(5), profile)

    for _ in range(12):
        story.go_on(1 + choose(4))


@given(seed=st.integers(0, 1_000_000), profile=PROFILES)
def test_gangs_of_gangs_are_whole_or_absent_on_every_level(seed: int, profile: dict[str, Any]) -> None:
    choose = seeded(seed)
    story = NestedStory(choose, 2 + choose(5), profile)

    for _ in range(12):
        story.go_on(1 + choose(4))


@given(seed=st.integers(0, 1_000_000), cached=st.booleans(), profile=PROFILES)
def test_two_runs_decide_the_same_and_so_does_one_that_keeps_no_answers(
    seed: int, cached: bool, profile: dict[str, Any]
) -> None:
    told = []
    for keeps_answers in (True, cached):
        choose = seeded(seed)
        story = GangStory(choose, 2 + choose(5), profile, cached=keeps_answers)
        told.append([story.go_on(1 + choose(4)) for _ in range(6)])

    assert told[0] == told[1]


@given(seed=st.integers(0, 1_000_000), may_preempt=st.booleans())
def test_no_gang_waits_that_would_fit(seed: int, may_preempt: bool) -> None:
    """So two gangs never hold what the other needs, and what could help one is known to bring it back."""
    choose = seeded(seed)
    profile = make_profile(args=NEVER_RESERVES) if may_preempt else no_preemption(**NEVER_RESERVES)
    story = GangStory(choose, 2 + choose(5), profile)

    for _ in range(8):
        story.go_on(1 + choose(4))

        cluster, queue = story.scheduler.cluster, story.scheduler.queue
        placer = story.scheduler.actions[place_index(story)].gangs  # type: ignore[attr-defined]
        waiting = [parked.gang for parked in queue.parked() if parked.gang is not None]
        fitting = [gang.name for gang in waiting if not placer.place_message(cluster, gang)]
        assert not fitting, f"{fitting} wait after cycle {story.now:g}, and would fit"


def place_index(story: GangStory) -> int:
    names = [type(action).__name__ for action in story.scheduler.actions]
    return names.index("Place")


@given(seed=st.integers(0, 1_000_000), count=st.integers(1, 4))
def test_a_gang_that_is_refused_leaves_everything_as_it_was(seed: int, count: int) -> None:
    choose = seeded(seed)
    world = random_gang_world(choose, nodes=1 + choose(5))
    scheduler = make_scheduler(profile=no_preemption(), nodes=world.nodes.values())
    kinds = [random_kind(choose, f"gang-{i}", most=9) for i in range(count)]
    for kind in kinds:
        scheduler.handle(GangSeen(kind.gang), *map(PodSeen, kind.members))
        before = fingerprint(scheduler.cluster)
        decisions = scheduler.cycle(1.0)
        if not any(isinstance(found, Bind) for found in decisions):
            after = fingerprint(scheduler.cluster)
            assert after["columns"] == before["columns"]
            assert after["on_row"] == before["on_row"]
            members = {pod.key for pod in kind.members}
            assert not any(scheduler.cluster.pods.records[key].node_name for key in members)


def fingerprint(cluster: Cluster) -> dict[str, Any]:
    """What runs where; columns that nobody has asked for yet are as good as empty ones."""
    columns = {name: values for name, values in cluster.nodes.fingerprint()["columns"].items() if any(values)}
    return {"columns": columns, "on_row": {row: set(slots) for row, slots in cluster.pods.on_row.items()}}
