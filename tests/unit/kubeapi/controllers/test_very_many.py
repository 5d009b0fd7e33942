"""Objects that want very many pods: controllers make a few at a time, and no more than fit; what is refused waits."""

import asyncio
import time
from typing import Any

import pytest
from worlds import World, template

from mooring.kubeapi.controllers.controller import Controller, Key
from mooring.kubeapi.controllers.daemon_sets import DaemonSets
from mooring.kubeapi.controllers.garbage_collector import GarbageCollector
from mooring.kubeapi.controllers.job_indexes import parse_indexes
from mooring.kubeapi.controllers.job_sets import JobSets
from mooring.kubeapi.controllers.jobs import Jobs
from mooring.kubeapi.controllers.leader_worker_sets import LeaderWorkerSets
from mooring.kubeapi.controllers.namespace_contents import ServiceAccounts
from mooring.kubeapi.controllers.namespaces import Namespaces
from mooring.kubeapi.controllers.replica_sets import ReplicaSets
from mooring.kubeapi.controllers.slices import MOST_PODS, SLICE
from mooring.kubeapi.controllers.stateful_sets import StatefulSets
from mooring.kubeapi.controllers.volcano_jobs import VolcanoJobs
from mooring.kubeapi.requests import NoAdmission, Request
from mooring.kubeapi.status import forbidden

MANY = 2**31 - 1
SELECTOR = {"matchLabels": {"app": "web"}}
JOB = {"template": template(restartPolicy="Never")}
SETS: dict[str, tuple[type[Controller], str, dict[str, Any]]] = {
    "ReplicaSet": (ReplicaSets, "replicasets.apps", {"replicas": MANY, "selector": SELECTOR, "template": template()}),
    "StatefulSet": (
        StatefulSets,
        "statefulsets.apps",
        {"replicas": MANY, "podManagementPolicy": "Parallel", "selector": SELECTOR, "template": template()},
    ),
    "Job": (Jobs, "jobs.batch", {"parallelism": MANY, "completions": MANY, **JOB}),
    "indexed Job": (
        Jobs,
        "jobs.batch",
        {"parallelism": 100_000, "completions": 100_000, "completionMode": "Indexed", **JOB},
    ),
}
GANGS: dict[str, tuple[type[Controller], str, dict[str, Any]]] = {
    "JobSet": (
        JobSets,
        "jobsets.jobset.x-k8s.io",
        {"replicatedJobs": [{"name": "w", "replicas": MANY, "template": {"spec": JOB}}]},
    ),
    "VolcanoJob": (
        VolcanoJobs,
        "jobs.batch.volcano.sh",
        {"minAvailable": 1, "tasks": [{"name": "t", "replicas": MANY, "template": template()}]},
    ),
    "LeaderWorkerSet": (
        LeaderWorkerSets,
        "leaderworkersets.leaderworkerset.x-k8s.io",
        {"replicas": MANY, "leaderWorkerTemplate": {"size": MANY, "workerTemplate": template()}},
    ),
}


def a_world(kind: type[Controller]) -> tuple[World, Controller]:
    world = World(kind)
    controller = next(each for each in world.controllers if isinstance(each, kind))
    world.run()
    return world, controller


@pytest.mark.parametrize("name", SETS)
def test_one_look_makes_a_slice_of_the_pods(name: str) -> None:
    kind, resource, spec = SETS[name]
    world, controller = a_world(kind)
    world.create(resource, {"metadata": {"name": "x", "labels": {"app": "web"}}, "spec": spec})

    counts = []
    for _ in range(3):
        controller.sync(("default", "x"))
        counts.append(len(world.api.list("pods")))

    assert counts == [SLICE, 2 * SLICE, 3 * SLICE]


@pytest.mark.parametrize("name", ["ReplicaSet", "StatefulSet", "Job"])
def test_no_more_pods_are_made_than_fit_and_an_event_says_so(name: str) -> None:
    kind, resource, spec = SETS[name]
    world, controller = a_world(kind)
    world.create(resource, {"metadata": {"name": "x", "labels": {"app": "web"}}, "spec": spec})

    controller.sync(("default", "x"))

    told = [event["message"] for event in world.api.list("events") if event["reason"] == "TooMany"]
    assert len(told) == 1
    assert told[0].endswith(f"wants {MANY}; this control plane makes at most {MOST_PODS} of one object")


@pytest.mark.parametrize("name", GANGS)
def test_a_gang_that_is_too_large_is_not_made_at_all(name: str) -> None:
    kind, resource, spec = GANGS[name]
    world, controller = a_world(kind)
    world.create(resource, {"metadata": {"name": "x"}, "spec": spec})

    controller.sync(("default", "x"))

    assert world.api.list("pods") == world.api.list("jobs.batch") == []
    assert [event["reason"] for event in world.api.list("events")].count("TooMany") == 1


@pytest.mark.parametrize("name", GANGS)
def test_a_gang_of_some_hundreds_is_made_in_slices(name: str) -> None:
    kind, resource, spec = GANGS[name]
    world, _ = a_world(kind)
    text = str(spec).replace(str(MANY), "10" if name == "LeaderWorkerSet" else "105")
    world.create(resource, {"metadata": {"name": "x"}, "spec": eval(text)})

    world.run()

    made = len(world.api.list("jobs.batch" if name == "JobSet" else "pods"))
    assert made == (100 if name == "LeaderWorkerSet" else 105)


def test_indexes_of_a_status_are_no_more_than_the_job_has() -> None:
    assert parse_indexes(f"0-{MANY}", 5) == {0, 1, 2, 3, 4}


class NoPods(NoAdmission):
    """A quota that leaves no pod."""

    def validate(self, request: Request) -> None:
        if request.resource.key == "pods" and request.operation == "CREATE":
            raise forbidden("", "pods", request.name, "exceeded quota: q")


@pytest.mark.parametrize(
    ("kind", "resource", "spec"),
    [
        (DaemonSets, "daemonsets.apps", {"selector": SELECTOR, "template": template()}),
        (ReplicaSets, "replicasets.apps", {"replicas": 400, "selector": SELECTOR, "template": template()}),
        (Jobs, "jobs.batch", {"parallelism": 400, "completions": 400, **JOB}),
    ],
    ids=["DaemonSet", "ReplicaSet", "Job"],
)
def test_a_quota_that_leaves_no_pod_is_tried_later_and_later(
    kind: type[Controller], resource: str, spec: dict[str, Any]
) -> None:
    world = World(kind, nodes=20)
    world.api.admission = NoPods()
    world.create(resource, {"metadata": {"name": "x"}, "spec": spec})

    world.run(120)

    told = [event for event in world.api.list("events") if event["reason"] == "FailedCreate"]
    assert 5 < sum(event["count"] for event in told) < 25  # it was one for each node and second


def test_pods_of_a_job_that_end_together_are_counted_in_slices() -> None:
    world, controller = a_world(Jobs)
    count = 2 * SLICE + 50
    world.create("jobs.batch", {"metadata": {"name": "x"}, "spec": {"parallelism": count, "completions": count, **JOB}})
    for _ in range(3):
        controller.sync(("default", "x"))
    for pod in world.api.list("pods"):
        world.api.update("pods", {**pod, "status": {"phase": "Succeeded"}}, subresource="status")

    counts = []
    for _ in range(3):
        controller.sync(("default", "x"))
        counts.append(world.api.get("jobs.batch", "default", "x")["status"].get("succeeded"))

    assert counts == [SLICE, 2 * SLICE, count]
    assert len(world.api.list("pods")) == count
    world.run()
    conditions = world.api.get("jobs.batch", "default", "x")["status"]["conditions"]
    assert [one["type"] for one in conditions] == ["SuccessCriteriaMet", "Complete"]


def test_a_failure_policy_counts_also_in_a_slice_that_is_not_the_last() -> None:
    world, controller = a_world(Jobs)
    count = 2 * SLICE
    policy = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]}
    spec = {"parallelism": count, "completions": count, "backoffLimit": 10**6, "podFailurePolicy": policy, **JOB}
    world.create("jobs.batch", {"metadata": {"name": "x"}, "spec": spec})
    for _ in range(2):
        controller.sync(("default", "x"))
    for number, pod in enumerate(world.api.list("pods")):
        ended = {"name": "main", "state": {"terminated": {"exitCode": 3 if number == 0 else 1}}}
        status = {"phase": "Failed", "containerStatuses": [ended]}
        world.api.update("pods", {**pod, "status": status}, subresource="status")

    world.run()

    conditions = world.api.get("jobs.batch", "default", "x")["status"]["conditions"]
    assert [(one["type"], one["reason"]) for one in conditions] == [
        ("FailureTarget", "PodFailurePolicy"),
        ("Failed", "PodFailurePolicy"),
    ]


def test_a_namespace_is_emptied_in_slices() -> None:
    world, controller = a_world(Namespaces)
    world.create("namespaces", {"metadata": {"name": "full"}, "spec": {"finalizers": ["kubernetes"]}}, "")
    for number in range(2 * SLICE + 50):
        world.create("configmaps", {"metadata": {"name": f"c{number}"}}, "full")
    world.api.delete("namespaces", None, "full")

    counts = []
    for _ in range(3):
        controller.sync(("", "full"))
        counts.append(len(world.api.list("configmaps", "full")))

    assert counts == [SLICE + 50, 50, 0]
    world.run(5)
    assert world.api.find("namespaces", None, "full") is None


def test_the_pods_of_an_orphaning_owner_are_let_go_in_slices() -> None:
    world, controller = a_world(GarbageCollector)
    owner = world.create("replicasets.apps", {"metadata": {"name": "x"}, "spec": {}})
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": owner["metadata"]["uid"]}
    for number in range(SLICE + 50):
        about = {"name": f"c{number}", "ownerReferences": [reference]}
        world.create("configmaps", {"metadata": about})
    world.api.delete("replicasets.apps", "default", "x", propagation="Orphan")

    controller.sync(("", owner["metadata"]["uid"]))
    owned = sum("ownerReferences" in each["metadata"] for each in world.api.list("configmaps"))
    world.run()

    assert owned == 50
    assert world.api.find("replicasets.apps", "default", "x") is None
    assert len(world.api.list("configmaps")) == SLICE + 50


class Busy(Controller):
    """Has always something to do, and takes its time."""

    name = "busy"

    def sync(self, key: Key) -> None:
        time.sleep(0.05)
        self.enqueue(key)


def test_a_key_that_takes_long_leaves_the_loop_to_requests() -> None:
    async def turns_of_the_loop() -> float:
        world = World(Jobs)
        world.run()
        runner = world.controllers[0].context.runner
        runner.attach(asyncio.get_running_loop())
        Busy(world.controllers[0].context).enqueue(("", "x"))
        await asyncio.sleep(0.1)
        start = time.monotonic()
        for _ in range(40):  # as many as a request over TLS may need, and more
            await asyncio.sleep(0)
        runner.stop()
        return time.monotonic() - start

    assert asyncio.run(turns_of_the_loop()) < 1.0  # it was 40 times as long as one look at the key


def test_the_account_of_a_namespace_does_not_wait_behind_other_work() -> None:
    """Pods that are created right after their namespace wait for it, and not for long."""
    world = World(ServiceAccounts)
    world.run()
    context = world.controllers[0].context
    for number in range(100):
        Busy(context).enqueue(("", f"x{number}"))

    world.api.create("namespaces", {"metadata": {"name": "team"}})
    context.runner.run_until_idle(most=1)

    assert world.api.find("serviceaccounts", "team", "default") is not None
