"""Whom disruption budgets protect, and how many pods they let go."""

import numpy as np
import pytest
from preemption_builders import make_budget, make_gang, make_member, make_running

from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.events import GangSeen, ObjectSeen, PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.state.budgets import split_one_by_one
from mooring.state.cluster import Cluster
from mooring.state.running import RunningPods
from mooring.testing.builders import make_cluster, make_node, make_scheduler

HOURS = 100_000.0

DB = {"app": "db"}


def running(*budgets: PodDisruptionBudget, replicas: int = 4) -> tuple[Cluster, RunningPods]:
    pods = [make_running(f"db-{index}", "a", labels=DB) for index in range(replicas)]
    cluster = make_cluster(nodes=[make_node("a")], pods=pods, related=budgets)
    found = RunningPods(cluster)
    found.refresh()
    return cluster, found


@pytest.mark.parametrize(
    ("budget", "allowed"),
    [
        pytest.param(make_budget("b", labels=DB, allowed=3), 3, id="as the status says"),
        pytest.param(make_budget("b", labels=DB, min_available=3), 1, id="all but so many"),
        pytest.param(make_budget("b", labels=DB, min_available=9), 0, id="fewer than there should be"),
        pytest.param(make_budget("b", labels=DB, min_available="30%"), 2, id="all but a share, rounded up"),
        pytest.param(make_budget("b", labels=DB, max_unavailable=1), 1, id="so many"),
        pytest.param(make_budget("b", labels=DB, max_unavailable="30%"), 2, id="a share, rounded up"),
    ],
)
def test_how_many_a_budget_lets_go(budget: PodDisruptionBudget, allowed: int) -> None:
    _, found = running(budget)

    assert found.allowed_disruptions().tolist() == [allowed]


def test_pods_on_their_way_out_do_not_count_as_there() -> None:
    cluster, found = running(make_budget("b", labels=DB, min_available=3))
    cluster.observe(PodSeen(make_running("db-0", "a", labels=DB, terminating=True)))
    found.refresh()

    assert found.allowed_disruptions().tolist() == [0]


def test_an_eviction_that_was_decided_counts_until_the_budget_is_seen_anew() -> None:
    cluster, found = running(make_budget("b", labels=DB, allowed=2))
    pod = cluster.pods.records[PodKey("default/db-0")].pod
    cluster.mark_leaving(pod.key)
    assert found.allowed_disruptions().tolist() == [1]

    cluster.observe(ObjectSeen(make_budget("b", labels=DB, allowed=1)))
    found.refresh()

    assert found.allowed_disruptions().tolist() == [1]


def test_what_an_undone_eviction_spent_is_given_back() -> None:
    cluster, found = running(make_budget("b", labels=DB, allowed=2), make_budget("c", labels=DB, min_available=3))

    with cluster.what_if():
        cluster.mark_leaving(PodKey("default/db-0"))
        assert found.allowed_disruptions().tolist() == [1, 0]

    assert found.allowed_disruptions().tolist() == [2, 1]


def test_an_eviction_that_failed_is_given_back() -> None:
    cluster, found = running(make_budget("b", labels=DB, allowed=2))
    cluster.mark_leaving(PodKey("default/db-0"))

    cluster.keep_running(PodKey("default/db-0"))

    assert found.allowed_disruptions().tolist() == [2]


def test_a_gang_that_is_released_spends_its_budgets() -> None:
    """Every eviction spends, whatever it is for."""
    members = [make_member(f"train-{index}", "train", labels=DB, node="a") for index in range(2)]
    scheduler = make_scheduler(nodes=[make_node("a")], pods=members, related=[make_budget("b", labels=DB, allowed=9)])
    scheduler.handle(GangSeen(make_gang("train", 2)))
    scheduler.cycle(0.0)
    scheduler.handle(PodLost(members[0].key))
    scheduler.cycle(1.0)

    released = scheduler.cycle(HOURS)

    assert [type(decision).__name__ for decision in released] == ["Evict"]
    assert scheduler.cluster.budgets.allowed().tolist() == [8]


def test_many_budgets_cost_what_happens_to_few_of_them() -> None:
    budgets = [make_budget(f"b-{index}", labels={"app": f"app-{index}"}, min_available=0) for index in range(20_000)]
    pods = [make_running(f"pod-{index}", "a", labels={"app": f"app-{index}"}) for index in range(2_000)]
    cluster = make_cluster(nodes=[make_node("a")], pods=pods, related=budgets)
    cluster.budgets.allowed()
    worked_out = list[int]()
    work_out = cluster.budgets._work_out

    def counted(index: int) -> int:
        worked_out.append(index)
        return work_out(index)

    cluster.budgets._work_out = counted  # type: ignore[method-assign]
    cluster.mark_leaving(PodKey("default/pod-7"))

    assert int(cluster.budgets.allowed().sum()) == 1_999
    assert len(worked_out) == 1


@pytest.mark.parametrize(
    "budget",
    [
        pytest.param(make_budget("b", labels={}, allowed=0), id="an empty selector"),
        pytest.param(make_budget("b", labels=None, allowed=0), id="no selector"),
        pytest.param(make_budget("b", labels=DB, allowed=0, namespace="other"), id="another namespace"),
        pytest.param(make_budget("b", labels=DB, allowed=0, disrupted=("db-0",)), id="evicted already"),
    ],
)
def test_whom_a_budget_does_not_protect(budget: PodDisruptionBudget) -> None:
    cluster, found = running(budget, replicas=1)

    assert found.budgets.sets.values[found.budgets.set_of(cluster.pods.records[PodKey("default/db-0")].pod)] == ()


def test_a_pod_that_breaks_one_budget_takes_nothing_from_the_next() -> None:
    assert split_one_by_one([(0, 1), (1,), (1,)], np.array([0, 1])) == [True, False, True]
