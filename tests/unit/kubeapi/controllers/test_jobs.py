from typing import Any

import pytest
from worlds import Object, World, template

from mooring.kubeapi.controllers.job_indexes import format_indexes, parse_indexes
from mooring.kubeapi.controllers.jobs import Jobs
from mooring.kubeapi.controllers.ttl_after_finished import TTLAfterFinished

ODD_FAILS = "if [ $(expr ${JOB_COMPLETION_INDEX} % 2) -ne 0 ]; then exit 1; else exit 0; fi"


def make_world() -> World:
    return World(Jobs, TTLAfterFinished)


def job(*command: str, restart_policy: str = "Never", **spec: Any) -> Object:
    return {
        "metadata": {"name": "train"},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "template": template(*command, restartPolicy=restart_policy),
            **spec,
        },
    }


def outcome(world: World) -> tuple[str, str]:
    conditions = world.get("jobs.batch", "train")["status"].get("conditions") or ()
    over = [(one["type"], one["reason"]) for one in conditions if one["type"] in ("Complete", "Failed")]
    return over[0] if over else ("", "")


def test_a_job_runs_until_enough_pods_have_succeeded() -> None:
    world = make_world()
    world.create("jobs.batch", job("sleep", "10", parallelism=2, completions=5))

    world.run(15)
    during = world.get("jobs.batch", "train")["status"]
    world.run(20)

    after = world.get("jobs.batch", "train")["status"]
    assert {key: during.get(key) for key in ("active", "ready", "succeeded")} == {
        "active": 2,
        "ready": 2,
        "succeeded": 2,
    }
    assert outcome(world) == ("Complete", "CompletionsReached")
    assert {key: after.get(key) for key in ("active", "ready", "succeeded", "failed")} == {
        "active": None,
        "ready": 0,
        "succeeded": 5,
        "failed": None,
    }
    assert all(
        "finalizers" not in pod["metadata"] or not pod["metadata"]["finalizers"] for pod in world.api.list("pods")
    )


def test_a_job_that_keeps_failing_waits_longer_each_time_and_gives_up() -> None:
    world = make_world()
    world.create("jobs.batch", job("false", backoffLimit=2))

    world.run(5)
    early = len(world.api.list("pods"))
    world.run(100)

    assert early == 1
    assert outcome(world) == ("Failed", "BackoffLimitExceeded")
    assert world.get("jobs.batch", "train")["status"]["failed"] == 3


def test_an_indexed_job_gives_each_pod_its_index() -> None:
    world = make_world()
    world.create("jobs.batch", job("true", completionMode="Indexed", completions=4, parallelism=2))

    world.run(10)

    assert world.get("jobs.batch", "train")["status"]["completedIndexes"] == "0-3"
    hostnames = sorted(pod["spec"]["hostname"] for pod in world.api.list("pods"))
    assert hostnames == ["train-0", "train-1", "train-2", "train-3"]


def test_all_indexes_run_though_some_fail_where_each_has_its_own_limit() -> None:
    world = make_world()
    indexed: Object = {"completionMode": "Indexed", "completions": 4, "parallelism": 2, "backoffLimitPerIndex": 1}
    world.create("jobs.batch", job("sh", "-c", ODD_FAILS, **indexed))

    world.run(120)

    status = world.get("jobs.batch", "train")["status"]
    assert outcome(world) == ("Failed", "FailedIndexes")
    assert (status["completedIndexes"], status["failedIndexes"], status["failed"]) == ("0,2", "1,3", 4)


def test_too_many_failed_indexes_end_a_job() -> None:
    world = make_world()
    indexed: Object = {
        "completionMode": "Indexed",
        "completions": 8,
        "parallelism": 8,
        "backoffLimitPerIndex": 0,
        "maxFailedIndexes": 2,
    }
    world.create("jobs.batch", job("sh", "-c", ODD_FAILS, **indexed))

    world.run(60)

    assert outcome(world) == ("Failed", "MaxFailedIndexesExceeded")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        pytest.param("FailJob", ("Failed", "PodFailurePolicy"), id="fail the job"),
        pytest.param("Count", ("Failed", "BackoffLimitExceeded"), id="count"),
        pytest.param("Ignore", ("", ""), id="ignore"),
    ],
)
def test_a_pod_failure_policy_decides_on_exit_codes(action: str, expected: tuple[str, str]) -> None:
    world = make_world()
    rule = {"action": action, "onExitCodes": {"operator": "In", "values": [42]}}
    world.create("jobs.batch", job("sh", "-c", "exit 42", backoffLimit=0, podFailurePolicy={"rules": [rule]}))

    world.run(100)

    assert outcome(world) == expected


def test_a_success_policy_ends_a_job_early() -> None:
    world = make_world()
    spec: Object = {
        "completionMode": "Indexed",
        "completions": 4,
        "parallelism": 4,
        "backoffLimit": 20,
        "successPolicy": {"rules": [{"succeededCount": 2}]},
    }
    world.create("jobs.batch", job("sh", "-c", ODD_FAILS, **spec))

    world.run(5)

    assert outcome(world) == ("Complete", "SuccessPolicy")


def test_a_suspended_job_has_no_pods_and_takes_up_again() -> None:
    world = make_world()
    world.create("jobs.batch", job("sleep", "60", suspend=True))
    world.run(5)
    before = world.phases(), world.get("jobs.batch", "train")["status"]["conditions"][0]["reason"]

    world.change("jobs.batch", "train", lambda found: found["spec"].update(suspend=False))
    world.run(5)
    running = list(world.phases().values())
    world.change("jobs.batch", "train", lambda found: found["spec"].update(suspend=True))
    world.run(40)

    assert before == ({}, "JobSuspended")
    assert running == ["Running"]
    assert world.phases() == {}
    assert "startTime" not in world.get("jobs.batch", "train")["status"]


def test_a_job_past_its_deadline_fails() -> None:
    world = make_world()
    world.create("jobs.batch", job("sleep", "600", activeDeadlineSeconds=10))

    world.run(9)
    before = outcome(world)
    world.run(10)

    assert before == ("", "")
    assert outcome(world) == ("Failed", "DeadlineExceeded")


def test_a_deleted_pod_is_replaced_at_once_or_when_it_has_ended() -> None:
    def pods_after_deletion(policy: str) -> int:
        world = make_world()
        slow = job("sleep", "600", podReplacementPolicy=policy)
        slow["spec"]["template"]["metadata"]["annotations"] = {"mooring.dev/stop-delay": "20s"}
        world.create("jobs.batch", slow)
        world.run(1)
        (pod,) = world.api.list("pods")
        world.api.delete("pods", "default", pod["metadata"]["name"])
        world.run(15)
        return len(world.api.list("pods"))

    assert [pods_after_deletion(policy) for policy in ("TerminatingOrFailed", "Failed")] == [2, 1]


def test_a_finished_job_goes_when_its_time_is_over() -> None:
    world = make_world()
    world.create("jobs.batch", job("true", ttlSecondsAfterFinished=30))

    world.run(20)
    before = len(world.api.list("jobs.batch"))
    world.run(20)

    left = world.api.list("jobs.batch")
    assert before == 1
    assert all("deletionTimestamp" in one["metadata"] for one in left)


def test_a_job_of_another_controller_is_left_alone() -> None:
    world = make_world()
    world.create("jobs.batch", job("true", managedBy="example.com/other"))

    world.run(10)

    assert world.phases() == {}


def test_restarts_in_place_count_against_the_limit() -> None:
    world = make_world()
    world.create("jobs.batch", job("false", restart_policy="OnFailure", backoffLimit=2))

    world.run(60)

    assert outcome(world) == ("Failed", "BackoffLimitExceeded")


def test_indexes_are_written_as_ranges() -> None:
    assert format_indexes({0, 1, 2, 5, 7, 8}) == "0-2,5,7,8"
    assert parse_indexes("0-2,5,7-8", 8) == {0, 1, 2, 5, 7}


def test_a_job_that_is_scheduled_as_a_gang_has_a_workload_and_a_pod_group() -> None:
    world = make_world()
    gang = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    world.create("jobs.batch", job("sleep", "60", parallelism=3, completions=3, scheduling=gang))
    world.run(1)

    def lower(found: Object) -> None:
        found["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {"minCount": 2}}}

    (group,) = world.api.list("podgroups.scheduling.k8s.io")
    groups = {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in world.api.list("pods")}
    world.change("jobs.batch", "train", lower)
    world.run(1)

    (workload,) = world.api.list("workloads.scheduling.k8s.io")
    (after,) = world.api.list("podgroups.scheduling.k8s.io")
    assert groups == {group["metadata"]["name"]}
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert after["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    assert workload["spec"]["podGroupTemplates"][0]["schedulingPolicy"] == {"gang": {"minCount": 2}}


def test_a_pod_that_its_job_no_longer_selects_is_let_go() -> None:
    world = World(Jobs)
    selector = {"matchLabels": {"app": "web"}}
    spec = {"parallelism": 2, "completions": 2, "selector": selector, "template": template("sleep", "1000")}
    world.create("jobs.batch", {"metadata": {"name": "j"}, "spec": spec})
    world.run(5)
    first = sorted(world.phases())[0]

    world.change("pods", first, lambda pod: pod["metadata"].pop("labels"))
    world.run(5)

    assert "ownerReferences" not in world.get("pods", first)["metadata"] or (
        world.get("pods", first)["metadata"]["ownerReferences"] == []
    )
    assert len(world.phases()) == 3


def test_two_indexes_in_a_row_are_no_range() -> None:
    assert format_indexes([0, 1]) == "0,1"
    assert format_indexes([0, 1, 2, 4, 5, 7]) == "0-2,4,5,7"
