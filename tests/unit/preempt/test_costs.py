"""What preemption may cost besides priorities: lost work, pods that have just begun, workloads that are hit often."""

from typing import Any

import pytest
from preemption_builders import chosen, make_budget, make_running, search, seconds

from mooring.actions.preempt.pods.search import InVain, VictimSearch
from mooring.assembly import assemble
from mooring.config.preemption_cost import PreemptionCostArgs
from mooring.config.scheduler import parse_config
from mooring.engine.cycle import Scheduler
from mooring.errors import ConfigError
from mooring.model.api.pods import Pod
from mooring.model.decisions import Evict, Wait
from mooring.model.events import PodLost, PodSeen
from mooring.model.memory import Memory, moment
from mooring.state.cluster import Cluster
from mooring.testing.builders import (
    make_cluster,
    make_config,
    make_node,
    make_owner,
    make_pod,
    make_profile,
    make_scheduler,
    written_down,
)

LEAST_LOST = PreemptionCostArgs(least_work_lost=True)
URGENT = make_pod("pod", cpu=2, priority=10)
TWO_NODES = (make_node("a", cpu=2), make_node("b", cpu=2))


def costs(**args: Any) -> dict[str, Any]:
    return make_profile(args={"PreemptionCost": args})


# Lost work.


def test_whoever_loses_the_least_work_goes() -> None:
    saved = {"mooring.dev/last-checkpoint": "2026-01-01T08:50:00Z"}
    pods = [
        make_running("saved", "a", cpu=2, started="01:00", annotations=saved),
        make_running("young", "b", cpu=2, started="08:00"),
    ]
    cluster = make_cluster(nodes=TWO_NODES, pods=pods)

    assert chosen(search(cluster, URGENT, at="09:00", costs=LEAST_LOST)) == ("a", ["saved"])
    assert chosen(search(cluster, URGENT, at="09:00")) == ("b", ["young"])


def test_lost_work_counts_for_less_than_priority_and_more_than_the_number_of_victims() -> None:
    pods = [
        make_running("low", "a", cpu=2, priority=0, started="01:00"),
        make_running("high", "b", cpu=2, priority=5, started="08:00"),
        make_running("one", "c", cpu=1, priority=0, started="08:30"),
        make_running("other", "c", cpu=1, priority=0, started="08:30"),
    ]
    cluster = make_cluster(nodes=[*TWO_NODES, make_node("c", cpu=2)], pods=pods)

    assert chosen(search(cluster, URGENT, at="09:00")) == ("a", ["low"])
    assert chosen(search(cluster, URGENT, at="09:00", costs=LEAST_LOST)) == ("c", ["one", "other"])


def test_a_broken_budget_counts_for_more_than_lost_work() -> None:
    pods = [
        make_running("old", "a", cpu=2, started="01:00"),
        make_running("young", "b", cpu=2, started="08:00", labels={"app": "db"}),
    ]
    budget = make_budget("db", labels={"app": "db"}, allowed=0)
    cluster = make_cluster(nodes=TWO_NODES, pods=pods, related=[budget])

    assert chosen(search(cluster, URGENT, at="09:00", costs=LEAST_LOST)) == ("a", ["old"])


def test_of_one_node_those_stay_that_would_lose_the_most() -> None:
    saved = {"mooring.dev/last-checkpoint": "2026-01-01T08:59:00Z"}
    pods = [
        make_running("saved", "a", cpu=1, started="01:00", annotations=saved),
        make_running("unsaved", "a", cpu=1, started="02:00"),
    ]
    cluster = make_cluster(nodes=[make_node("a", cpu=2)], pods=pods)
    pod = make_pod("pod", cpu=1, priority=10)

    assert chosen(search(cluster, pod, at="09:00")) == ("a", ["unsaved"])
    assert chosen(search(cluster, pod, at="09:00", costs=LEAST_LOST)) == ("a", ["saved"])


def test_a_checkpoint_that_nobody_can_read_counts_for_nothing() -> None:
    unreadable = {"mooring.dev/last-checkpoint": "yesterday"}
    pods = [
        make_running("old", "a", cpu=2, started="01:00", annotations=unreadable),
        make_running("young", "b", cpu=2, started="08:00"),
    ]
    cluster = make_cluster(nodes=TWO_NODES, pods=pods)

    assert chosen(search(cluster, URGENT, at="09:00", costs=LEAST_LOST)) == ("b", ["young"])


def test_a_new_checkpoint_is_seen() -> None:
    pods = [make_running("x", "a", cpu=2, started="01:00"), make_running("y", "b", cpu=2, started="02:00")]
    cluster = make_cluster(nodes=TWO_NODES, pods=pods)
    using = VictimSearch(cluster, with_costs=True)
    assert chosen(search(cluster, URGENT, using, at="09:00", costs=LEAST_LOST)) == ("b", ["y"])

    saved = {"mooring.dev/last-checkpoint": "2026-01-01T03:00:00Z"}
    cluster.observe(PodSeen(make_running("x", "a", cpu=2, started="01:00", annotations=saved)))

    assert chosen(search(cluster, URGENT, using, at="09:00", costs=LEAST_LOST)) == ("a", ["x"])


# Pods that have just begun.


def test_a_pod_that_has_just_begun_is_no_victim() -> None:
    pods = [
        make_running("young", "a", cpu=2, started="08:58"),
        make_running("old", "b", cpu=2, priority=5, started="01:00"),
    ]
    cluster = make_cluster(nodes=TWO_NODES, pods=pods)
    an_hour = PreemptionCostArgs(minimum_runtime_seconds=3600)

    assert chosen(search(cluster, URGENT, at="09:00", costs=an_hour)) == ("b", ["old"])
    assert chosen(search(cluster, URGENT, at="10:00", costs=an_hour)) == ("a", ["young"])


def test_who_has_not_started_is_a_victim_at_once() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=2)], pods=[make_running("placed", "a", cpu=2)])

    found = search(cluster, URGENT, at="09:00", costs=PreemptionCostArgs(minimum_runtime_seconds=3600))

    assert chosen(found) == ("a", ["placed"])


def test_a_priority_class_may_have_a_minimum_of_its_own() -> None:
    pods = [
        make_running("batch", "a", cpu=2, started="08:50", spec={"priorityClassName": "batch"}),
        make_running("other", "b", cpu=2, started="08:50"),
    ]
    cluster = make_cluster(nodes=TWO_NODES, pods=pods)
    args = PreemptionCostArgs(minimum_runtime_seconds=60, minimum_runtime_seconds_by_priority_class={"batch": 3600})

    assert chosen(search(cluster, URGENT, at="09:00", costs=args)) == ("b", ["other"])


def test_it_is_said_for_how_long_victims_are_protected() -> None:
    pods = [
        make_running("young", "a", cpu=2, started="08:58"),
        make_running("younger", "b", cpu=2, started="08:59"),
        make_running("equal", "c", cpu=2, priority=10, started="01:00"),
    ]
    cluster = make_cluster(nodes=[*TWO_NODES, make_node("c", cpu=2)], pods=pods)

    found = search(cluster, URGENT, at="09:00", costs=PreemptionCostArgs(minimum_runtime_seconds=240))

    message = (
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 victims are protected for another 120s."
    )
    assert found == InVain(message, 120)


def test_a_pod_is_tried_again_when_the_protection_ends() -> None:
    scheduler = make_scheduler(
        nodes=[make_node("a", cpu=2)],
        pods=[make_running("young", "a", cpu=2, started="09:00"), make_pod("urgent", cpu=2, priority=10)],
        profile=costs(minimumRuntimeSeconds=120),
    )
    start = seconds("09:00")

    assert [type(found) for found in scheduler.cycle(start + 20)] == [Wait]
    assert scheduler.cycle(start + 60) == []
    evicted = [found.pod for found in scheduler.cycle(start + 120) if isinstance(found, Evict)]

    assert evicted == ["default/young"]


def test_without_a_clock_the_moment_is_that_of_the_latest_start() -> None:
    pods = [
        make_running("young", "a", cpu=2, started="08:58"),
        make_running("old", "b", cpu=2, priority=5, started="01:00"),
        make_running("latest", "c", cpu=2, priority=50, started="09:00"),
    ]
    scheduler = make_scheduler(
        nodes=[*TWO_NODES, make_node("c", cpu=2)],
        pods=[*pods, make_pod("urgent", cpu=2, priority=10)],
        profile=costs(minimumRuntimeSeconds=240),
    )

    assert [found.pod for found in scheduler.cycle(0.0) if isinstance(found, Evict)] == ["default/old"]


# Workloads that are hit often.


def make_web() -> Pod:
    return make_running("web", "a", cpu=2, owner=make_owner("web"))


def make_db() -> Pod:
    return make_running("db", "b", cpu=2, owner=make_owner("db"), priority=5)


def evicted_each_time(scheduler: Scheduler, moments: list[float]) -> list[list[str]]:
    """Whom one more urgent pod evicts at each moment, all victims coming back in between."""
    found = []
    for number, now in enumerate(moments):
        name = f"urgent-{number}"
        scheduler.handle(PodSeen(make_pod(name, cpu=2, priority=10)))
        evicted = [decision.pod for decision in scheduler.cycle(now) if isinstance(decision, Evict)]
        found.append(evicted)
        scheduler.handle(PodLost(f"default/{name}"))
        for key in evicted:
            victim = make_web() if key.endswith("web") else make_db()
            victim.metadata.uid = f"come-back-{number}"
            scheduler.handle(PodLost(key), PodSeen(victim))
    return found


def two_workloads(profile: dict[str, Any] | None) -> Scheduler:
    return make_scheduler(nodes=TWO_NODES, pods=[make_web(), make_db()], profile=profile)


def test_a_workload_that_was_preempted_often_is_spared_for_a_while() -> None:
    profile = costs(mostPreemptionsPerWorkload=2, windowSeconds=100)
    web, db = ["default/web"], ["default/db"]

    assert evicted_each_time(two_workloads(None), [10, 20, 30, 111]) == [web, web, web, web]
    assert evicted_each_time(two_workloads(profile), [10, 20, 30, 111]) == [web, web, db, web]


def test_preemptions_count_after_a_restart() -> None:
    profile = costs(mostPreemptionsPerWorkload=2, windowSeconds=100)
    before, after, forgetful = (two_workloads(profile) for _ in range(3))
    evicted_each_time(before, [10, 20])

    remembered = written_down(before.remembered())
    assert remembered == Memory(preemptions={"ReplicaSet/default/web": [moment(10), moment(20)]})
    after.recall(remembered)

    assert evicted_each_time(after, [30, 111]) == [["default/db"], ["default/web"]]
    assert evicted_each_time(forgetful, [30]) == [["default/web"]]
    unlimited = two_workloads(None)
    unlimited.recall(remembered)
    unlimited.cycle(30)
    assert unlimited.remembered() == Memory()


def test_one_decision_counts_once_however_many_pods_go() -> None:
    preemptions = Cluster().preemptions
    args = PreemptionCostArgs(most_preemptions_per_workload=2, window_seconds=50)
    preemptions.note("Job/default/train", 10.0)
    preemptions.note("Job/default/train", 30.0)

    assert preemptions.spared(args, 40.0) == {"Job/default/train": 60.0}
    assert preemptions.spared(args, 60.0) == {}


# Configuration.


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param(
            {"minimumRuntimeSeconds": -1},
            "file: profiles[0].pluginConfig[0].args.minimumRuntimeSeconds: "
            "expected a whole number of at least 0, found -1",
            id="less than nothing",
        ),
        pytest.param(
            {"minimumRuntimeSecondsByPriorityClass": {"batch": -5}},
            "file: profiles[0].pluginConfig[0].args.minimumRuntimeSecondsByPriorityClass.batch: "
            "expected a whole number of at least 0, found -5",
            id="less than nothing for a class",
        ),
        pytest.param(
            {"windowSeconds": 0},
            "file: profiles[0].pluginConfig[0].args.windowSeconds: expected a whole number above 0, found 0",
            id="no window",
        ),
        pytest.param(
            {"leastWorkLose": True},
            "file: profiles[0].pluginConfig[0].args.leastWorkLose: "
            'expected a known key (did you mean leastWorkLost?), found "leastWorkLose"',
            id="a key that nobody reads",
        ),
    ],
)
def test_bad_arguments_are_said_to_be_so(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        assemble(parse_config(make_config(costs(**args)), "file"), source="file")

    assert str(raised.value) == message
