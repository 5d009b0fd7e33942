"""Actions and the queue are disposable: thrown away at any moment and made anew from the state, they decide the same.

That is what "only the state changes" means. What is left outside the state is derived from it, or local to one call.
"""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from whole_stories import Story

from mooring.engine.cycle import Scheduler


@given(seed=st.integers(0, 10**9), often=st.sampled_from((0.1, 0.5, 1.0)))
def test_actions_and_queue_thrown_away_in_the_middle_of_a_story_are_not_missed(seed: int, often: float) -> None:
    story, chance = Story(seed), Random(seed)

    def throw_away(scheduler: Scheduler) -> None:
        if chance.random() < often:
            scheduler.rebuild()

    assert story.tell(throw_away) == story.tell()


def test_in_these_stories_everything_happens() -> None:
    happened = Counter[str]()
    for seed in range(40):
        happened.update(type(decision).__name__ for _, decision in Story(seed).tell())

    kinds = ("Bind", "Evict", "Admit", "Suspend", "Enqueue", "Partition")
    missing = [kind for kind in kinds if happened[kind] < 5]
    assert not missing, f"{missing} hardly ever happen: {happened}"
