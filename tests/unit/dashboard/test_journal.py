"""Any moment is put together again exactly as it was."""

from hypothesis import given
from hypothesis import strategies as st

from mooring.dashboard.journal import Journal, Key, Value

KEYS = [("pod", name) for name in "abcd"] + [("node", name) for name in "xy"]
NOTES = st.lists(
    st.tuples(
        st.floats(0.0, 3.0),
        st.dictionaries(st.sampled_from(KEYS), st.none() | st.tuples(st.integers(0, 3)), max_size=4),
    ),
    min_size=1,
    max_size=25,
)


def play(notes: list[tuple[float, dict[Key, Value | None]]], journal: Journal) -> list[tuple[float, dict[Key, Value]]]:
    """Note everything, and remember at each time what there was."""
    now: dict[Key, Value] = {}
    was, at = [], 100.0
    for pause, values in notes:
        at += pause
        journal.note(at, values)
        now = {key: value for key, value in {**now, **values}.items() if value is not None}
        was.append((at, now))
    return was


@given(NOTES)
def test_every_moment_is_as_it_was(notes: list[tuple[float, dict[Key, Value | None]]]) -> None:
    journal = Journal()
    was = play(notes, journal)

    last = dict(was)  # of several notes at one time, the last one counts
    assert {at: journal.at(at) for at in last} == last
    for (before, old), (after, new) in zip(last.items(), list(last.items())[1:], strict=False):
        assert journal.at((before + after) / 2 if before < after else after) in (old, new)
        different = {found.key: (found.before, found.after) for found in journal.between(before, after)}
        assert different == {key: (old.get(key), new.get(key)) for key in {*old, *new} if old.get(key) != new.get(key)}


@given(NOTES, st.integers(1, 6))
def test_what_is_kept_is_exact_however_little_it_is(
    notes: list[tuple[float, dict[Key, Value | None]]], most: int
) -> None:
    journal = Journal(most)
    last = dict(play(notes, journal))

    assert journal.begins is not None and journal.ends is not None
    for at, expected in last.items():
        if at >= journal.begins:
            assert journal.at(at) == expected
    assert journal.moments(3)[-1] == journal.ends
    assert len(journal.moments(3)) <= 3


def test_a_clock_that_is_set_back_does_not_bring_moments_out_of_order() -> None:
    journal = Journal()
    journal.note(10.0, {("pod", "a"): ("n",)})
    journal.note(20.0, {("pod", "b"): ("n",)})
    journal.note(15.0, {("pod", "a"): None})

    assert journal.ends == 20.0
    assert journal.at(12.0) == {("pod", "a"): ("n",)}
    assert journal.at(20.0) == {("pod", "b"): ("n",)}
