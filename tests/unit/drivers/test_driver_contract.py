"""Every kind of decision that fails has an answer."""

from typing import get_args

import pytest

from mooring.drivers.driver import failure_of
from mooring.model.decisions import (
    Admit,
    Bind,
    Decision,
    Defer,
    Enqueue,
    Evict,
    KeepOut,
    Notice,
    Partition,
    Suspend,
    Wait,
)
from mooring.model.events import AdmitFailed, BindFailed, Event, EvictFailed, SuspendFailed

ANSWERS: list[tuple[Decision, Event | None]] = [
    (Bind("a/p", "n"), BindFailed("a/p", "why")),
    (Evict("a/p", "n", "a/q", "reason"), EvictFailed("a/p", "why")),
    (Admit("a/w", "queue", (), "message"), AdmitFailed("a/w", "why")),
    (Suspend("a/w", "reason", "message"), SuspendFailed("a/w", "why")),
    (Wait("a/p", "message"), None),
    (Notice("a/w", "message", 0.0), None),
    (Defer("a/w", "reason", "message"), None),
    (Enqueue("PodGroup.group/a/g"), None),
    (KeepOut("PodGroup.group/a/g", "message"), None),
    (Partition("node", 0, ()), None),
]


@pytest.mark.parametrize(("decision", "answer"), ANSWERS)
def test_a_decision_that_failed_comes_back_as_an_event(decision: Decision, answer: Event | None) -> None:
    assert failure_of(decision, "why") == answer


def test_no_kind_of_decision_is_forgotten() -> None:
    assert {type(decision) for decision, _ in ANSWERS} == set(get_args(Decision))
