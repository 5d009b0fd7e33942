"""What happens in virtual time: jobs arrive and end, nodes fail and come back, quotas change."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scenario_parts import cluster, cluster_queue, job, node

from mooring.report.simulation.results import Run

Simulate = Callable[..., Run]


def times(run: Run) -> dict[str, tuple[float, float]]:
    """By job: when it started and ended."""
    jobs = run.jobs
    return {
        name.removeprefix("default/"): (started, ended)
        for name, started, ended in zip(jobs.job, jobs.started.tolist(), jobs.ended.tolist(), strict=True)
    }


def stays(run: Run) -> list[tuple[str, str, float, float, str]]:
    """Which job was where, from when to when, and how that ended."""
    found = run.stays
    return [
        (run.jobs.job[job].removeprefix("default/"), run.nodes.node[node], bound, ended, outcome)
        for job, node, bound, ended, outcome in zip(
            found.job, found.node, found.bound.tolist(), found.ended.tolist(), found.outcome, strict=True
        )
    ]


def test_a_job_that_finds_no_room_starts_when_the_one_before_it_ends(run: Simulate) -> None:
    found = run(horizon="200s", cluster=cluster(), work=[job("a"), job("b", at="10s", duration="50s")])

    assert times(found) == {"a-0": (0.0, 100.0), "b-0": (100.0, 150.0)}
    assert found.jobs.state.tolist() == ["Finished", "Finished"]


def test_what_is_not_done_at_the_end_is_said_to_run_or_to_wait(run: Simulate) -> None:
    found = run(horizon="60s", cluster=cluster(), work=[job("a"), job("b", at="10s")])

    assert found.jobs.state.tolist() == ["Running", "Waiting"]
    assert found.stays.outcome.tolist() == ["Running"]


def test_pods_that_fall_on_one_moment_are_decided_on_in_one_cycle(run: Simulate) -> None:
    work = [job("a", at=["5s"] * 4, cpu=1), job("b", at=["5s"] * 4, cpu=1)]

    found = run(horizon="50s", cluster=cluster(), work=work)

    assert found.stays.bound.tolist() == [5.0] * 8
    assert found.totals.cycles == 2  # the first is at the start


def test_with_an_interval_decisions_wait_for_its_next_moment(run: Simulate) -> None:
    work = [job("a", at=["1s", "2s"], duration="7s", cpu=1)]

    found = run(horizon="100s", interval="10s", start="2026-03-01T00:00:00Z", cluster=cluster(), work=work)

    assert found.stays.bound.tolist() == [10.0, 10.0]
    assert found.stays.ended.tolist() == [17.0, 17.0]


def test_a_preempted_job_goes_on_from_its_last_checkpoint(run: Simulate) -> None:
    low = job("low", checkpoints={"interval": "30s"})

    found = run(horizon="300s", cluster=cluster(), work=[low, job("high", at="70s", duration="20s", priority=10)])

    assert stays(found) == [
        ("low-0", "n", 0.0, 70.0, "Evicted"),
        ("high-0", "n", 70.0, 90.0, "Finished"),
        ("low-0", "n", 90.0, 130.0, "Finished"),
    ]
    assert found.jobs.lost.tolist() == [10.0, 0.0]
    assert found.jobs.evictions.tolist() == [1, 0]
    assert found.totals.preemptions == 1


def test_without_checkpoints_all_work_is_lost(run: Simulate) -> None:
    found = run(horizon="300s", cluster=cluster(), work=[job("low"), job("high", "70s", "20s", priority=10)])

    assert times(found)["low-0"] == (0.0, 190.0)
    assert found.jobs.lost.tolist() == [70.0, 0.0]


def test_a_job_that_saves_when_it_is_evicted_loses_nothing(run: Simulate) -> None:
    low = job("low", checkpoints={"onEviction": True})

    found = run(horizon="300s", cluster=cluster(), work=[low, job("high", "70s", "20s", priority=10)])

    assert times(found)["low-0"] == (0.0, 120.0)
    assert found.jobs.lost.tolist() == [0.0, 0.0]


def test_pods_of_a_failed_node_are_given_up_when_their_tolerations_end(run: Simulate) -> None:
    found = run(
        horizon="1000s",
        cluster=cluster(node("a"), node("b")),
        work=[job("train")],
        changes=[
            {"at": "0s", "cordon": {"names": ["b"]}},
            {"at": "50s", "fail": {"names": ["a"]}, "uncordon": {"names": ["b"]}},
        ],
    )

    # Found out after 40 s, tolerated for 300 s.
    assert stays(found) == [("train-0", "a", 0.0, 390.0, "NodeLost"), ("train-0", "b", 390.0, 490.0, "Finished")]
    assert found.jobs.lost.tolist() == [50.0]
    assert found.totals.used[0] == (50 + 100) * 8


def test_nothing_runs_on_a_dead_node_that_nobody_has_missed_yet(run: Simulate) -> None:
    found = run(
        horizon="1000s",
        cluster=cluster(node("a")),
        work=[job("train", at="60s")],
        changes=[{"at": "50s", "fail": {}}, {"at": "500s", "repair": {}}],
    )

    # Bound before the node was missed, given up after 300 s, and started when it was repaired.
    assert stays(found) == [("train-0", "a", 60.0, 390.0, "NodeLost"), ("train-0", "a", 500.0, 600.0, "Finished")]
    assert found.jobs.lost.tolist() == [0.0]
    assert np.isnan(found.stays.started[0])


def test_nodes_fail_and_are_repaired_as_their_distributions_say(run: Simulate) -> None:
    faults = {"nodeFailures": [{"every": "100s", "repair": "50s"}]}

    found = run(horizon="320s", cluster=cluster(), work=[], faults=faults)

    changes = found.node_changes
    assert list(zip(changes.time.tolist(), changes.state, strict=True)) == [
        (0.0, "Up"),
        (100.0, "Down"),
        (150.0, "Up"),
        (250.0, "Down"),
        (300.0, "Up"),
    ]
    assert found.totals.node_seconds_up == 320 - 100


def test_spot_nodes_are_reclaimed_after_notice_and_come_back(run: Simulate) -> None:
    faults = {"spotReclaims": [{"nodes": {"pool": "spot"}, "every": "100s", "notice": "20s", "back": "30s"}]}

    found = run(
        horizon="250s",
        cluster=cluster(node("a", labels={"pool": "spot"})),
        work=[job("early", duration="200s"), job("late", at="110s", duration="5s", cpu=0)],
        faults=faults,
    )

    assert stays(found)[0] == ("early-0", "a", 0.0, 120.0, "NodeLost")
    assert found.stays.bound.tolist() == [0.0, 150.0, 150.0]
    changes = found.node_changes
    assert list(zip(changes.time.tolist(), changes.state, strict=True)) == [
        (0.0, "Up"),
        (100.0, "Cordoned"),
        (120.0, "Down"),
        (150.0, "Up"),
        (250.0, "Cordoned"),
    ]


def test_a_cordoned_node_takes_nothing_new(run: Simulate) -> None:
    found = run(
        horizon="300s",
        cluster=cluster(),
        work=[job("a", duration="30s", cpu=1), job("b", at="20s", duration="30s", cpu=1)],
        changes=[{"at": "10s", "cordon": {"names": ["n"]}}, {"at": "100s", "uncordon": {"names": ["n"]}}],
    )

    assert times(found) == {"a-0": (0.0, 30.0), "b-0": (100.0, 130.0)}


def test_a_job_starts_when_its_queue_gets_more_quota(run: Simulate) -> None:
    found = run(
        horizon="300s",
        cluster=cluster(node(), *cluster_queue("team", 2)),
        work=[job("a", queue="team", cpu=4)],
        changes=[{"at": "100s", "objects": cluster_queue("team", 8)[1:2]}],
    )

    assert times(found) == {"a-0": (100.0, 200.0)}
    assert found.jobs.queue.tolist() == ["default/team"]


def test_a_node_that_is_applied_later_is_there_from_then_on(run: Simulate) -> None:
    found = run(
        horizon="300s",
        cluster=cluster(node(cpu=4)),
        work=[job("a")],
        changes=[{"at": "100s", "objects": [node("large")]}],
    )

    assert stays(found) == [("a-0", "large", 100.0, 200.0, "Finished")]
    assert found.totals.node_seconds_up == 300 + 200


def test_who_waits_for_others_to_be_ready_is_admitted_as_soon_as_they_are(run: Simulate) -> None:
    kueue = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "kind": "Configuration",
        "waitForPodsReady": {"enable": True, "blockAdmission": True},
    }

    found = run(
        policy="one-by-one",
        horizon="300s",
        cluster=cluster(node(), *cluster_queue("team", 8)),
        work=[job("a", at=["0s", "0s"], cpu=4, queue="team")],
        policies=[{"name": "one-by-one", "settings": [kueue]}],
    )

    assert times(found) == {"a-0": (0.0, 100.0), "a-1": (0.0, 100.0)}


def test_a_queue_takes_back_what_it_lent_and_the_work_lost_is_counted(run: Simulate) -> None:
    lends = {"cohortName": "all", "preemption": {"reclaimWithinCohort": "Any"}}
    found = run(
        horizon="300s",
        cluster=cluster(node(), *cluster_queue("a", 4, **lends), *cluster_queue("b", 4, **lends)[1:]),
        work=[job("borrows", queue="a"), job("returns", at="30s", duration="50s", cpu=4, queue="b")],
    )

    assert times(found)["returns-0"] == (30.0, 80.0)
    assert found.jobs.evictions.tolist() == [1, 0]
    assert found.jobs.lost.tolist() == [30.0, 0.0]
    assert times(found)["borrows-0"] == (0.0, 180.0)  # it starts anew when the other has ended


@pytest.mark.parametrize("form", ["PodGroup", "VolcanoJob"])
def test_a_gang_starts_whole_or_not_at_all(run: Simulate, form: str) -> None:
    gang = {**job("gang", at="10s", cpu=6, pods=2), "as": form}

    found = run(horizon="300s", cluster=cluster(node("a"), node("b")), work=[job("single", cpu=4), gang])

    assert times(found)["gang-0"] == (100.0, 200.0)
    assert [stay[2] for stay in stays(found)] == [0.0, 100.0, 100.0]


def test_start_up_is_allocated_but_not_used(run: Simulate) -> None:
    found = run(horizon="100s", cluster=cluster(timings={"start": "20s"}), work=[job("a", duration="50s")])

    assert times(found) == {"a-0": (20.0, 70.0)}
    cpu = found.totals.resource.index("cpu")
    assert (found.totals.allocated[cpu], found.totals.used[cpu]) == (70 * 8, 50 * 8)
    assert found.jobs.ideal.tolist() == [70.0]


def test_a_pod_that_is_slow_to_stop_keeps_its_room_until_then(run: Simulate) -> None:
    low = job("low", annotations={"mooring.dev/stop-delay": "15s"})

    found = run(horizon="300s", cluster=cluster(), work=[low, job("high", "50s", "20s", priority=10)])

    assert stays(found)[:2] == [("low-0", "n", 0.0, 65.0, "Evicted"), ("high-0", "n", 65.0, 85.0, "Finished")]


def test_a_job_that_fails_is_tried_again_and_given_up(run: Simulate) -> None:
    fails = job("fails", duration="10s", annotations={"mooring.dev/exit-code": "1"})

    found = run(horizon="2000s", cluster=cluster(), work=[fails])

    assert found.jobs.state.tolist() == ["Failed"]
    # Ten seconds after the first failure, then twice as long each time, six times at the most.
    assert found.stays.bound.tolist() == [0.0, 20.0, 50.0, 100.0, 190.0, 360.0, 690.0]
    assert found.jobs.ended.tolist() == [700.0]


def test_manifests_arrive_under_new_names_each_time(run: Simulate) -> None:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "$(name)"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "main",
                    "image": "busybox",
                    "command": ["sleep", "40"],
                    "resources": {"requests": {"cpu": "8"}},
                }
            ],
        },
    }

    found = run(horizon="200s", cluster=cluster(), work=[{"name": "nightly", "at": ["5s", "10s"], "objects": [pod]}])

    assert times(found) == {"nightly-0": (5.0, 45.0), "nightly-1": (45.0, 85.0)}


def test_work_is_read_against_the_cluster_of_its_own_moment(run: Simulate) -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "$(name)", "annotations": {"mooring.dev/duration": "40s"}},
        "spec": {
            "priorityClassName": "high",
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "8"}}}],
        },
    }

    found = run(
        horizon="300s",
        cluster=cluster(),
        work=[job("low"), {"name": "urgent", "at": ["20s"], "objects": [pod]}],
        changes=[{"at": "20s", "objects": [high]}],
    )

    assert times(found) == {"low-0": (0.0, 160.0), "urgent-0": (20.0, 60.0)}


def test_a_job_makes_pods_until_all_its_completions_are_there(run: Simulate) -> None:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "4"}}}
    document = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "$(name)"},
        "spec": {
            "parallelism": 2,
            "completions": 3,
            "template": {
                "metadata": {"annotations": {"mooring.dev/duration": "10s"}},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }

    found = run(horizon="200s", cluster=cluster(), work=[{"name": "work", "at": ["0s"], "objects": [document]}])

    assert found.stays.bound.tolist() == [0.0, 0.0, 10.0]
    assert times(found) == {"work-0": (0.0, 20.0)}


def test_what_shrinks_in_place_leaves_room_for_what_waits(run: Simulate) -> None:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "6"}}}
    template = {
        "metadata": {"annotations": {"mooring.dev/duration": "100s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    document = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "$(name)"},
        "spec": {"template": template},
    }
    amounts = {"cpu": "2"}
    recommended = {"containerName": "main", "target": amounts, "lowerBound": amounts, "upperBound": amounts}
    autoscaler = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "idle"},
        "spec": {
            "targetRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "idle-0"},
            "updatePolicy": {"updateMode": "InPlace", "minReplicas": 1},
        },
        "status": {"recommendation": {"containerRecommendations": [recommended]}},
    }

    found = run(
        horizon="300s",
        cluster=cluster(),
        work=[{"name": "idle", "at": ["0s"], "objects": [document]}, job("b", at="10s", cpu=6, duration="50s")],
        changes=[{"at": "30s", "objects": [autoscaler]}],
    )

    assert times(found)["idle-0"] == (0.0, 100.0)
    assert times(found)["b-0"][0] == pytest.approx(30.0, abs=20.0)
