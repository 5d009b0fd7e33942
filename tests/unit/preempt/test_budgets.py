"""Whom disruption budgets protect, and how many pods they let go."""

import numpy as np
import pytest
from preemption_builders import make_budget, make_running

from mooring.actions.preempt.budgets import split_one_by_one
from mooring.actions.preempt.running import RunningPods
from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.events import ObjectSeen, PodSeen
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_cluster, make_node

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
    found.budgets.spend(found.budgets.set_of(pod), pod.key)
    assert found.allowed_disruptions().tolist() == [1]

    cluster.observe(ObjectSeen(make_budget("b", labels=DB, allowed=1)))
    found.refresh()

    assert found.allowed_disruptions().tolist() == [1]


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
