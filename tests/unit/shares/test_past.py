"""Past use: what was held for how long, and how soon it is forgotten."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.actions.shares.past import DecayedUse, read_use, write_use
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.volcano.division import PROPORTION
from mooring.model.memory import Memory
from mooring.testing.builders import written_down
from mooring.testing.share_builders import amounts, fill, make_share_job, make_share_queue, make_sharing

GPU = "nvidia.com/gpu"
HOUR = 3600.0
TOTAL = np.array([10])


def held(*values: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64).reshape(-1, 1)


def make_past(queues: int = 2) -> DecayedUse:
    past = DecayedUse(queues, 1, HOUR, 1.0)
    past.observe(0.0, held(*[0] * queues), TOTAL)
    return past


def test_steady_use_is_its_part_of_the_cluster_however_long_it_lasted() -> None:
    past = make_past()

    for hours in (1, 2, 10, 1000):
        past.observe(hours * HOUR, held(2, 5), TOTAL)
        assert past.past.used.ravel().tolist() == pytest.approx([0.2, 0.5])


def test_after_a_half_life_what_was_before_counts_half() -> None:
    """One queue had everything until a half-life ago, the other since: 1/2 of it against 1 - 1/2."""
    past = make_past()
    past.observe(1000 * HOUR, held(10, 0), TOTAL)

    past.observe(1001 * HOUR, held(0, 10), TOTAL)
    assert past.past.used.ravel().tolist() == pytest.approx([0.5, 0.5])

    past.observe(1002 * HOUR, held(0, 10), TOTAL)
    assert past.past.used.ravel().tolist() == pytest.approx([0.25, 0.75])


def test_it_does_not_matter_how_often_one_looks() -> None:
    often, seldom = make_past(), make_past()

    for minute in range(1, 121):
        often.observe(minute * 60.0, held(3, 1), TOTAL)
    seldom.observe(2 * HOUR, held(3, 1), TOTAL)

    assert often.past.used == pytest.approx(seldom.past.used)


def test_time_that_stands_still_or_goes_back_counts_nothing() -> None:
    past = make_past()
    past.observe(HOUR, held(5, 0), TOTAL)
    before = past.past.used.tolist()

    past.observe(HOUR, held(9, 9), TOTAL)
    past.observe(HOUR / 2, held(9, 9), TOTAL)

    assert past.past.used.tolist() == before


def test_a_cluster_without_a_past_has_no_use() -> None:
    assert DecayedUse(2, 3, HOUR, 1.0).past.used.tolist() == [[0.0] * 3] * 2


def test_whoever_had_the_cluster_yesterday_deserves_less_today() -> None:
    queues = [make_share_queue("yesterday"), make_share_queue("today")]
    settings = ShareSettings(PROPORTION, half_life_seconds=HOUR, k_value=0.5)
    job = make_share_job("big", "yesterday", members=12)
    sharing = make_sharing(queues, [job], total=amounts(gpu=12), settings=settings)
    fill(sharing)
    sharing.start_cycle(100 * HOUR)
    sharing.remove("big")
    for name in ("yesterday", "today"):
        sharing.add(make_share_job(name, name, members=12))

    sharing.start_cycle(100 * HOUR)

    # W = 1/2; U = 1 and 0; so the weights are 1/2 - 1/4 and 1/2 + 1/4.
    assert sharing.report("yesterday").deserved == {GPU: 3}
    assert sharing.report("today").deserved == {GPU: 9}

    for hours in range(101, 200):
        sharing.start_cycle(hours * HOUR)
    assert sharing.report("yesterday").deserved == {GPU: 6}


def test_the_past_is_kept_when_a_new_resource_turns_up() -> None:
    settings = ShareSettings(PROPORTION, half_life_seconds=HOUR)
    queues = [make_share_queue("a"), make_share_queue("b")]
    sharing = make_sharing(queues, [make_share_job("a", "a", members=8)], total=amounts(gpu=8), settings=settings)
    fill(sharing)
    sharing.start_cycle(HOUR)

    sharing.add(make_share_job("b", "b", members=8, request=amounts(cpu=1, gpu=1)))
    sharing.start_cycle(HOUR)

    # All of the past was a's: its weight is max(0, 1/2 + 1/2 - 1).
    assert sharing.report("a").deserved == {GPU: 0, "cpu": 0}
    assert sharing.report("b").deserved == {GPU: 8, "cpu": 0}


@given(
    before=st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 12)), max_size=5),
    away=st.floats(0, 1e6),
)
def test_what_is_written_down_counts_on_as_if_there_had_been_no_restart(
    before: list[tuple[float, int]], away: float
) -> None:
    """What was held went on being held while nobody looked."""
    queues = [make_share_queue("a"), make_share_queue("b")]
    settings = ShareSettings(PROPORTION, half_life_seconds=HOUR, k_value=0.5)
    sharing = make_sharing(queues, [], total=amounts(gpu=12), settings=settings)
    now = 0.0
    for seconds, members in before:
        sharing.forget("job")
        if members:
            sharing.add(make_share_job("job", "a", members=members))
        fill(sharing)
        now += seconds
        sharing.pass_time(now)
    use = sharing.past_use()
    restarted = make_sharing(queues, [], total=amounts(gpu=12), settings=settings)
    if use is not None:
        memory = written_down(Memory(shared_queues={"Volcano": write_use(use)}))
        restarted.resume(read_use(memory.shared_queues["Volcano"]), now + away)
    sharing.pass_time(now + away)

    for name in ("a", "b"):
        sharing.forget("job")
        sharing.add(make_share_job(name, name, members=12))
        restarted.add(make_share_job(name, name, members=12))
    for name in ("a", "b"):
        found, expected = restarted.report(name).deserved[GPU], sharing.report(name).deserved[GPU]
        assert abs(found - expected) <= 1  # whole devices, of amounts that may be next to one half


def test_nothing_is_written_down_where_nobody_looks_back() -> None:
    sharing = make_sharing([make_share_queue("a")], [], total=amounts(gpu=12))
    sharing.start_cycle(HOUR)
    assert sharing.past_use() is None
