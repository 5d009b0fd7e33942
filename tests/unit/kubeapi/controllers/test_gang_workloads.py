"""Volcano Jobs, JobSets and LeaderWorkerSets."""

from typing import Any

import pytest
from worlds import Object, World, template

from mooring.kubeapi.controllers.garbage_collector import GarbageCollector
from mooring.kubeapi.controllers.job_sets import JobSets
from mooring.kubeapi.controllers.jobs import Jobs
from mooring.kubeapi.controllers.leader_worker_sets import LeaderWorkerSets
from mooring.kubeapi.controllers.volcano_jobs import VolcanoJobs


def make_world() -> World:
    return World(VolcanoJobs, JobSets, LeaderWorkerSets, Jobs, GarbageCollector)


def lasting(duration: str, **annotations: str) -> Object:
    made = template(restartPolicy="Never")
    made["metadata"]["annotations"] = {"mooring.dev/duration": duration, **annotations}
    return made


def volcano_job(*tasks: Object, **spec: Any) -> Object:
    return {"metadata": {"name": "mpi"}, "spec": {"minAvailable": 3, "tasks": list(tasks), **spec}}


def task(name: str, replicas: int, made: Object, **fields: Any) -> Object:
    return {"name": name, "replicas": replicas, "template": made, **fields}


def test_a_volcano_job_makes_its_tasks_runs_and_completes() -> None:
    world = make_world()
    world.create("jobs.batch.volcano.sh", volcano_job(task("ps", 1, lasting("20s")), task("worker", 2, lasting("10s"))))

    world.run(5)
    during = world.get("jobs.batch.volcano.sh", "mpi")["status"]
    names = sorted(world.phases())
    world.run(30)

    assert names == ["mpi-ps-0", "mpi-worker-0", "mpi-worker-1"]
    assert (during["state"]["phase"], during["running"]) == ("Running", 3)
    assert world.get("jobs.batch.volcano.sh", "mpi")["status"]["state"]["phase"] == "Completed"
    (group,) = world.api.list("podgroups.scheduling.volcano.sh")
    assert group["spec"]["minMember"] == 3


def test_a_policy_restarts_a_volcano_job_until_it_has_done_so_often_enough() -> None:
    world = make_world()
    failing = lasting("5s", **{"mooring.dev/exit-code": "1"})
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    world.create(
        "jobs.batch.volcano.sh",
        volcano_job(task("worker", 2, failing), minAvailable=2, policies=policies, maxRetry=2),
    )

    world.run(60)

    status = world.get("jobs.batch.volcano.sh", "mpi")["status"]
    assert (status["state"]["phase"], status["retryCount"], status["version"]) == ("Failed", 2, 2)


def test_a_task_may_end_its_volcano_job() -> None:
    world = make_world()
    policies = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    master = task("master", 1, lasting("10s"), policies=policies)
    world.create("jobs.batch.volcano.sh", volcano_job(master, task("worker", 2, lasting("1h"))))

    world.run(60)

    assert world.get("jobs.batch.volcano.sh", "mpi")["status"]["state"]["phase"] == "Completed"
    assert "Running" not in world.phases().values()


def job_set(*replicated: Object, **spec: Any) -> Object:
    return {"metadata": {"name": "train"}, "spec": {"replicatedJobs": list(replicated), **spec}}


def replicated_job(name: str, made: Object, replicas: int = 1, **spec: Any) -> Object:
    job = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": made, **spec}
    return {"name": name, "replicas": replicas, "template": {"spec": job}}


def conditions(world: World, resource: str, name: str) -> dict[str, str]:
    found = world.get(resource, name)["status"].get("conditions") or ()
    return {one["type"]: one["reason"] for one in found if one["status"] == "True"}


def test_a_job_set_runs_all_its_jobs() -> None:
    world = make_world()
    world.create(
        "jobsets.jobset.x-k8s.io",
        job_set(replicated_job("leader", lasting("10s")), replicated_job("worker", lasting("20s"), replicas=2)),
    )

    world.run(5)
    names = [job["metadata"]["name"] for job in world.api.list("jobs.batch")]
    pods = len(world.phases())
    world.run(30)

    assert (names, pods) == (["train-leader-0", "train-worker-0", "train-worker-1"], 6)
    assert conditions(world, "jobsets.jobset.x-k8s.io", "train") == {"Completed": "AllJobsCompleted"}
    assert world.get("services", "train")["spec"]["clusterIP"] == "None"


def test_a_job_set_starts_in_order_where_asked() -> None:
    world = make_world()
    slow = lasting("60s", **{"mooring.dev/ready-delay": "10s"})
    policy = {"startupPolicyOrder": "InOrder"}
    world.create(
        "jobsets.jobset.x-k8s.io",
        job_set(replicated_job("leader", slow), replicated_job("worker", lasting("1m")), startupPolicy=policy),
    )

    world.run(5)
    before = [job["metadata"]["name"] for job in world.api.list("jobs.batch")]
    world.run(10)

    assert before == ["train-leader-0"]
    assert len(world.api.list("jobs.batch")) == 2


def test_a_job_set_that_fails_starts_all_over_and_then_gives_up() -> None:
    world = make_world()
    failing = lasting("5s", **{"mooring.dev/exit-code": "1"})
    world.create(
        "jobsets.jobset.x-k8s.io",
        job_set(
            replicated_job("bad", failing), replicated_job("good", lasting("1h")), failurePolicy={"maxRestarts": 2}
        ),
    )

    world.run(90)

    assert world.get("jobsets.jobset.x-k8s.io", "train")["status"]["restarts"] == 2
    assert conditions(world, "jobsets.jobset.x-k8s.io", "train") == {"Failed": "ReachedMaxRestarts"}


def job_set_with_a_failing_rank(strategy: str, restart_policy: str, **annotations: str) -> Object:
    """Four ranks, of which the pod of index 1 of each Job fails once, after ten seconds of its first run."""
    made = template(restartPolicy=restart_policy)
    said = {"mooring.dev/duration": "1h", "mooring.dev/fail-once": "1@10s", "mooring.dev/start-delay": "5s"}
    made["metadata"]["annotations"] = {**said, **annotations}
    policy = {"maxRestarts": 3, "restartStrategy": strategy}
    return job_set(replicated_job("worker", made, completionMode="Indexed", backoffLimit=100), failurePolicy=policy)


def container_restarts(world: World) -> list[int]:
    statuses = (pod["status"].get("containerStatuses") or [{}] for pod in world.api.list("pods"))
    return [found[0].get("restartCount", -1) for found in statuses]


def test_a_failed_rank_restarts_in_place_and_its_gang_with_it() -> None:
    world = make_world()
    world.create("jobsets.jobset.x-k8s.io", job_set_with_a_failing_rank("InPlaceRestart", "OnFailure"))
    world.run(10)
    before = {pod["metadata"]["uid"] for pod in world.api.list("pods")}
    world.run(10)

    found = world.api.list("pods")
    status = world.get("jobsets.jobset.x-k8s.io", "train")["status"]
    assert {pod["metadata"]["uid"] for pod in found} == before
    assert container_restarts(world) == [1, 1]
    assert set(world.phases().values()) == {"Running"}
    assert (status["currentInPlaceRestartAttempt"], status["restarts"]) == (1, 0)
    world.run(600)
    assert container_restarts(world) == [1, 1]


def test_a_gang_that_restarts_in_place_too_often_fails() -> None:
    world = make_world()
    failing = job_set_with_a_failing_rank("InPlaceRestart", "OnFailure", **{"mooring.dev/exit-code": "1"})
    for replicated in failing["spec"]["replicatedJobs"]:
        replicated["template"]["spec"]["template"]["metadata"]["annotations"]["mooring.dev/duration"] = "20s"
    world.create("jobsets.jobset.x-k8s.io", failing)

    world.run(3600)

    assert conditions(world, "jobsets.jobset.x-k8s.io", "train") == {"Failed": "ReachedMaxRestarts"}


def test_a_rank_that_is_made_anew_joins_its_gang_where_that_is() -> None:
    world = make_world()
    world.create("jobsets.jobset.x-k8s.io", job_set_with_a_failing_rank("InPlaceRestart", "Never"))
    world.run(10)
    before = {pod["metadata"]["uid"] for pod in world.api.list("pods")}
    world.run(15)

    found = [pod for pod in world.api.list("pods") if pod["status"]["phase"] == "Running"]
    assert len(before & {pod["metadata"]["uid"] for pod in found}) == 1
    attempts = {pod["metadata"]["annotations"]["jobset.sigs.k8s.io/in-place-restart-attempt"] for pod in found}
    assert attempts == {"1"}


@pytest.mark.parametrize(("strategy", "made_early"), [("Recreate", True), ("BlockingRecreate", False)])
def test_jobs_are_made_anew_when_all_of_the_last_attempt_are_gone_where_asked(strategy: str, made_early: bool) -> None:
    world = make_world()
    quick, slow = lasting("10s", **{"mooring.dev/exit-code": "1"}), lasting("1h", **{"mooring.dev/stop-delay": "20s"})
    for each in (quick, slow):
        each["spec"]["terminationGracePeriodSeconds"] = 30
    policy = {"maxRestarts": 3, "restartStrategy": strategy}
    replicated = [replicated_job("quick", quick), replicated_job("slow", slow)]
    world.create("jobsets.jobset.x-k8s.io", job_set(*replicated, failurePolicy=policy))

    world.run(15)

    def attempts() -> dict[str, str]:
        found = (job["metadata"] for job in world.api.list("jobs.batch"))
        return {one["name"]: one["labels"]["jobset.sigs.k8s.io/restart-attempt"] for one in found}

    assert (attempts().get("train-quick-0") == "1") == made_early
    assert attempts()["train-slow-0"] == "0"
    world.run(22)
    assert attempts()["train-slow-0"] != "0"


def test_a_suspended_job_set_waits() -> None:
    world = make_world()
    world.create("jobsets.jobset.x-k8s.io", job_set(replicated_job("worker", lasting("1h")), suspend=True))
    world.run(5)
    before = world.phases()

    world.change("jobsets.jobset.x-k8s.io", "train", lambda found: found["spec"].update(suspend=False))
    world.run(5)

    assert before == {}
    assert list(world.phases().values()) == ["Running", "Running"]


def leader_worker_set(replicas: int = 2, size: int = 3, **spec: Any) -> Object:
    inner = {"size": size, "workerTemplate": template(), **spec.pop("leaderWorkerTemplate", {})}
    return {
        "metadata": {"name": "serve", "generation": 1},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": inner, **spec},
    }


def test_a_leader_worker_set_has_groups_of_a_leader_and_workers() -> None:
    world = make_world()
    world.create("leaderworkersets.leaderworkerset.x-k8s.io", leader_worker_set())

    world.run(2)

    assert sorted(world.phases()) == ["serve-0", "serve-0-1", "serve-0-2", "serve-1", "serve-1-1", "serve-1-2"]
    assert conditions(world, "leaderworkersets.leaderworkerset.x-k8s.io", "serve") == {"Available": "AllGroupsReady"}


def test_a_group_that_loses_a_member_is_made_anew_as_a_whole() -> None:
    world = make_world()
    world.create("leaderworkersets.leaderworkerset.x-k8s.io", leader_worker_set(replicas=2))
    world.run(2)
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.api.list("pods")}

    world.api.delete("pods", "default", "serve-1-2")
    world.run(5)

    after = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.api.list("pods")}
    assert {name for name in after if after[name] == before[name]} == {"serve-0", "serve-0-1", "serve-0-2"}
    assert sorted(after) == sorted(before)


def test_workers_may_wait_for_their_leader() -> None:
    world = make_world()
    slow = template()
    slow["metadata"]["annotations"] = {"mooring.dev/ready-delay": "10s"}
    world.create(
        "leaderworkersets.leaderworkerset.x-k8s.io",
        leader_worker_set(1, startupPolicy="LeaderReady", leaderWorkerTemplate={"leaderTemplate": slow}),
    )

    world.run(5)
    before = sorted(world.phases())
    world.run(10)

    assert before == ["serve-0"]
    assert sorted(world.phases()) == ["serve-0", "serve-0-1", "serve-0-2"]


def test_a_new_template_renews_one_group_after_the_other() -> None:
    world = make_world()
    slow = template()
    slow["metadata"]["annotations"] = {"mooring.dev/ready-delay": "10s"}
    world.create(
        "leaderworkersets.leaderworkerset.x-k8s.io", leader_worker_set(leaderWorkerTemplate={"workerTemplate": slow})
    )
    world.run(20)

    def set_image(found: Object) -> None:
        found["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] = "busybox:2"

    world.change("leaderworkersets.leaderworkerset.x-k8s.io", "serve", set_image)
    world.run(5)
    images = {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in world.api.list("pods")}
    world.run(30)

    assert {name for name, image in images.items() if image == "busybox:2"} == {"serve-1", "serve-1-1", "serve-1-2"}
    assert {pod["spec"]["containers"][0]["image"] for pod in world.api.list("pods")} == {"busybox:2"}
