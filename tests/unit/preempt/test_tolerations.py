"""Which pods tolerate preemption, by which priorities, and for how long."""

import pytest
from preemption_builders import chosen, make_running, search

from mooring.actions.preempt.pods.search import InVain
from mooring.actions.preempt.tolerations import (
    MINIMUM_PREEMPTABLE_PRIORITY,
    TOLERATION_SECONDS,
    Toleration,
    toleration_of,
)
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.model.api.meta import Condition, ObjectMeta
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PriorityClass
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_cluster, make_node, make_pod

HEED = PreemptionCostArgs(heed_tolerations=True)


def batch(minimum: str | None = "100", seconds: str | None = "3600") -> PriorityClass:
    given = {MINIMUM_PREEMPTABLE_PRIORITY: minimum, TOLERATION_SECONDS: seconds}
    annotations = {key: text for key, text in given.items() if text is not None}
    return PriorityClass(metadata=ObjectMeta(name="batch", annotations=annotations), value=5)


def of_batch(scheduled: str | None = "08:30") -> Pod:
    pod = make_running("victim", "a", cpu=2, priority=5, started="08:30", spec={"priorityClassName": "batch"})
    if scheduled:
        at = f"2026-01-01T{scheduled}:00Z"
        pod.status.conditions = [Condition(type="PodScheduled", status="True", last_transition_time=at)]
    return pod


def cluster_with(found: PriorityClass, pod: Pod) -> Cluster:
    return make_cluster(nodes=[make_node("a", cpu=2)], pods=[pod], related=[found])


@pytest.mark.parametrize(
    ("minimum", "seconds", "toleration"),
    [
        ("100", "60", Toleration(100, 60)),
        (None, "60", Toleration(6, 60)),
        ("-3", "-1", Toleration(-3, -1)),
        ("100", None, None),
        ("100", "0", None),
        ("much", "60", None),
        ("100", "1h", None),
        ("4294967296", "60", None),
        ("1_0", "60", None),
    ],
)
def test_annotations_say_what_is_tolerated(
    minimum: str | None, seconds: str | None, toleration: Toleration | None
) -> None:
    assert toleration_of(batch(minimum, seconds)) == toleration


@pytest.mark.parametrize(
    ("priority", "at", "goes"),
    [(10, "09:00", False), (99, "09:29", False), (10, "09:30", True), (100, "09:00", True)],
)
def test_a_pod_tolerates_lower_priorities_for_a_while(priority: int, at: str, goes: bool) -> None:
    found = search(cluster_with(batch(), of_batch()), make_pod("p", cpu=2, priority=priority), at=at, costs=HEED)

    assert (not isinstance(found, InVain)) is goes
    if goes:
        assert chosen(found) == ("a", ["victim"])


def test_a_negative_number_of_seconds_is_for_ever() -> None:
    cluster = cluster_with(batch(seconds="-1"), of_batch())

    found = search(cluster, make_pod("p", cpu=2, priority=10), at="23:00", costs=HEED)

    assert isinstance(found, InVain)
    assert found.message.endswith("1 victims tolerate preemption by this priority.")


def test_a_pod_that_is_not_known_to_be_scheduled_tolerates_it() -> None:
    cluster = cluster_with(batch(), of_batch(scheduled=None))

    assert isinstance(search(cluster, make_pod("p", cpu=2, priority=10), at="23:00", costs=HEED), InVain)


def test_without_the_policy_nothing_is_tolerated() -> None:
    cluster = cluster_with(batch(), of_batch())

    assert chosen(search(cluster, make_pod("p", cpu=2, priority=10), at="09:00")) == ("a", ["victim"])
