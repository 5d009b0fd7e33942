"""What is lost of idle GPUs, and what is kept of it: the same as from nothing, however it is found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.plugins import gpu_idle
from mooring.plugins.gpu_filling import Ints, compiled
from mooring.plugins.gpu_fragmentation import Fragmentation, TypicalPod, lost_one_by_one
from mooring.plugins.gpu_idle import Asked, states_after

MODELS = ("T4", "G2")
CLASSES = st.lists(
    st.builds(
        TypicalPod,
        cpu_milli=st.sampled_from((0, 1000, 4000)),
        gpu_milli=st.sampled_from((0, 200, 500, 1000)),
        gpu_count=st.integers(0, 2),
        gpu_models=st.sampled_from(((), ("T4",), ("T4", "G2"))),
        weight=st.floats(0.1, 9),
    ),
    min_size=1,
    max_size=5,
)
NODES = st.lists(
    st.tuples(
        st.integers(0, 9000),
        st.sampled_from(MODELS),
        st.lists(st.sampled_from((-1, 0, 100, 300, 500, 800, 1000)), min_size=3, max_size=3),
    ),
    min_size=1,
    max_size=6,
)


def columns(nodes: list[tuple[int, str, list[int]]]) -> tuple[Ints, Ints, list[str]]:
    """CPU, what is left of each card, and models."""
    cpu, models, left = zip(*nodes, strict=True)
    return np.array(cpu, np.int64), np.array(left, np.int64), list(models)


@given(CLASSES, NODES)
def test_loops_find_what_numpy_finds_to_the_last_bit(
    classes: list[TypicalPod], nodes: list[tuple[int, str, list[int]]]
) -> None:
    measure, (cpu, left, models) = Fragmentation(classes), columns(nodes)
    cards = np.maximum(-np.sort(-left, axis=1), 0)

    assert measure.lost_by(lost_one_by_one, cpu, cards, models).tolist() == measure.lost(cpu, cards, models).tolist()


@given(CLASSES, NODES)
def test_a_state_comes_to_the_same_whatever_it_is_asked_about_with(
    classes: list[TypicalPod], nodes: list[tuple[int, str, list[int]]]
) -> None:
    cpu, left, models = columns(nodes)
    together = Fragmentation(classes)

    alone = [float(Fragmentation(classes).of(cpu[[at]], left[[at]], [models[at]])[0]) for at in range(len(cpu))]

    assert together.of(cpu, left, models).tolist() == alone
    assert together.of(cpu[::-1], left[::-1], models[::-1]).tolist() == alone[::-1]


@given(CLASSES, NODES, st.sampled_from((100, 300, 1000)))
def test_a_pod_goes_to_the_card_on_which_least_is_lost(
    classes: list[TypicalPod], nodes: list[tuple[int, str, list[int]]], milli: int
) -> None:
    cpu, left, models = columns(nodes)
    left = np.sort(np.maximum(left, milli), axis=1)
    measure, asked = Fragmentation(classes), Asked(milli, 1, 500)

    found = [measure.drops(cpu, left, models, asked).tolist() for _ in ("new", "known")]

    before = Fragmentation(classes).of(cpu, left, models)
    after = []
    for card in range(left.shape[1]):
        taken = left.copy()
        taken[:, card] -= milli
        after.append(Fragmentation(classes).of(cpu - 500, taken, models))
    expected = np.max([before - each for each in after], axis=0)
    if milli == 1000:  # a whole one is the first that fits, and they are all alike
        expected = before - after[0]
    assert found == [expected.tolist()] * 2
    if milli < 1000:
        assert measure.drops_by_card(cpu, left, models, asked).max(axis=1).tolist() == expected.tolist()


def test_shares_are_taken_of_one_card_and_several_of_the_first_that_fit() -> None:
    state = (8000, 0, 100, 400, 400, 1000)

    assert states_after(state, Asked(300, 1, 1000)) == {
        400: (7000, 0, 100, 100, 400, 1000),
        1000: (7000, 0, 100, 400, 400, 700),
    }
    assert states_after(state, Asked(400, 2, 0)) == {0: (8000, 0, 0, 0, 100, 1000)}
    assert states_after(state, Asked(0, 0, 500)) == {0: (7500, 0, 100, 400, 400, 1000)}


def test_what_is_given_up_for_want_of_room_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_idle, "MOST_KEPT", 3)
    halves = Fragmentation([TypicalPod(cpu_milli=1000, gpu_milli=500, gpu_count=1)])
    cpu, left = np.full(6, 8000), np.array([[500 + 100 * at] for at in range(6)])

    found = [halves.drops(cpu, left, None, Asked(500, 1, 1000)).tolist() for _ in range(4)]

    assert found == [[0.0, -100.0, -200.0, -300.0, -400.0, 0.0]] * 4


def test_the_compiled_loops_find_the_same() -> None:
    pytest.importorskip("numba")
    measure = Fragmentation([TypicalPod(gpu_milli=500, gpu_count=1), TypicalPod(gpu_milli=1000, gpu_count=2, weight=2)])
    cpu, cards = np.array([9000, 4000]), np.array([[1000, 800, 300], [1000, 1000, 400]])
    loops = compiled(lost_one_by_one)

    assert loops is not None
    assert measure.lost_by(loops, cpu, cards, None).tolist() == measure.lost(cpu, cards, None).tolist()
