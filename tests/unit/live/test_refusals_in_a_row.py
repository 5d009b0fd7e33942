"""What is refused again and again waits longer and longer, and is forgotten in the end."""

from mooring.drivers.live.pods.refusals import FORGOTTEN_SECONDS, LONGEST_PENALTY, MOST_KEPT, Refusals


def test_the_first_refusal_costs_nothing_and_each_further_one_twice_as_much() -> None:
    refusals = Refusals()

    assert [refusals.note("pod", float(now)) for now in range(5)] == [0.0, 0.5, 1.0, 2.0, 4.0]
    assert refusals.note("other", 5.0) == 0.0
    assert max(refusals.note("pod", float(now)) for now in range(5, 30)) == LONGEST_PENALTY


def test_some_may_be_refused_more_often_before_they_wait() -> None:
    refusals = Refusals()

    assert [refusals.note("pod", 0.0, at_once=3) for _ in range(5)] == [0.0, 0.0, 0.0, 0.5, 1.0]


def test_who_was_bound_or_long_not_refused_begins_anew() -> None:
    refusals = Refusals()
    refusals.note("pod", 0.0)
    refusals.forget("pod")
    assert refusals.note("pod", 1.0) == 0.0
    assert refusals.note("pod", 1.0 + FORGOTTEN_SECONDS) == 0.0


def test_no_more_are_kept_in_mind_than_a_stated_number() -> None:
    refusals = Refusals()
    for number in range(2 * MOST_KEPT):
        refusals.note(f"pod-{number}", float(number) / MOST_KEPT)

    assert len(refusals) == MOST_KEPT


def test_who_is_gone_is_not_kept_in_mind_for_longer_than_others() -> None:
    refusals = Refusals()
    for number in range(100):
        refusals.note(f"pod-{number}", number * FORGOTTEN_SECONDS / 10)

    assert len(refusals) == 10
