"""What helps a gang that lacks room, a workload behind a quota, and who is in the way there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]
GANGS = Path(__file__).parents[2] / "examples" / "gangs"


def explained(mooring: Call, name: str, *arguments: str | Path) -> dict[str, Any]:
    outcome = mooring("explain", name, "-q", "-o", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


# Gangs.


@pytest.mark.parametrize(("folder", "name"), [("waits-whole", "train"), ("two-gangs", "second")])
def test_a_gang_that_lacks_room_starts_without_those_it_names(
    mooring: Call, write: Call, folder: str, name: str
) -> None:
    file = GANGS / folder / "1-cluster.yaml"
    gang = explained(mooring, name, "-f", file)["gang"]
    ended = "apiVersion: v1\nkind: Pod\nmetadata: {namespace: %s, name: %s}\nstatus: {phase: Succeeded}\n"
    keys = [leaver["pod"].partition("/") for leaver in gang["startsWithout"]]
    step = write("---\n".join(ended % (namespace, pod) for namespace, _, pod in keys), "gone.yaml")

    outcome = mooring("schedule", "-q", "-o", "json", "-f", file, "--then", step)

    assert gang["lacks"] == {"nvidia.com/gpu": 4}
    placed = json.loads(outcome.out)["steps"][1]["result"]["placements"]
    assert len([found for found in placed if found["pod"].startswith(name)]) == gang["minimum"]


def test_a_gang_that_can_never_fit_is_told_so_and_nothing_else(mooring: Call) -> None:
    out = mooring("explain", "insists", "-q", "-f", GANGS / "topology").out
    gang = explained(mooring, "insists", "-f", GANGS / "topology")["gang"]

    never = "gang research/insists: largest rack holds 32 of 48 members"
    assert f"it can never fit, even on an empty cluster: {never}" in out.splitlines()
    assert (gang["neverFits"], "startsWithout" in gang) == (never, False)


def test_room_for_one_member_is_no_advice_for_a_gang(mooring: Call, write: Call) -> None:
    text = (GANGS / "two-gangs" / "1-cluster.yaml").read_text().replace('gpu: "4"', 'gpu: "3"')

    found = explained(mooring, "second", "-f", write(text))

    assert (found["feasible"], found["remedies"]) == (0, [])
    assert found["gang"]["startsWithout"]


# Quota.

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 32, memory: 64Gi, pods: 50}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: f}
"""
QUEUE = """
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: %(name)s}
spec:
  cohort: all
  namespaceSelector: {}
  queueingStrategy: %(strategy)s
  preemption: {reclaimWithinCohort: LowerPriority}
  resourceGroups:
    - coveredResources: [cpu]
      flavors: [{name: f, resources: [{name: cpu, nominalQuota: %(quota)s}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: %(name)s, namespace: x}
spec: {clusterQueue: %(name)s}
"""
JOB = """
---
apiVersion: batch/v1
kind: Job
metadata:
  name: %(name)s
  namespace: x
  labels: {kueue.x-k8s.io/queue-name: %(queue)s}
  creationTimestamp: "2026-03-01T00:0%(minute)s:00Z"
spec:
  parallelism: %(pods)s
  completions: %(pods)s
  template: {spec: {restartPolicy: Never, containers: [{name: m, image: i, resources: {requests: {cpu: 1}}}]}}
"""


def queue(name: str, quota: int, strategy: str = "BestEffortFIFO") -> str:
    return QUEUE % {"name": name, "quota": quota, "strategy": strategy}


def job(name: str, queue: str, pods: int, minute: int = 0) -> str:
    return JOB % {"name": name, "queue": queue, "pods": pods, "minute": minute}


QUEUES = CLUSTER + queue("a", 4, "StrictFIFO") + queue("b", 4) + queue("c", 0)


@pytest.fixture
def story(write: Call) -> list[str | Path]:
    """One queue has borrowed what the first in line of another misses; a third asks for what is left."""
    more = write(job("owner", "a", 4, minute=1) + job("small", "c", 1, minute=2), "more.yaml")
    return ["-f", write(QUEUES + job("borrower", "b", 6)), "--then", more]


def test_a_pod_behind_a_quota_is_sent_to_where_its_queue_is_shown(mooring: Call, story: list[str | Path]) -> None:
    found = explained(mooring, "owner", *story)

    hint = "mooring queues --queue x/a shows the workloads before it, and those that would have to give back"
    assert found["hint"] == hint
    assert found["remedies"] == []
    assert mooring("queues", "-q", *story, *found["hint"].split()[2:4]).code == 0


def test_the_head_of_another_queue_that_quota_is_kept_for_is_named(mooring: Call, story: list[str | Path]) -> None:
    (_, second) = json.loads(mooring("queues", "-q", "-o", "json", *story).out)["steps"]

    waiting = {queue["name"]: queue["waitingWorkloads"] for queue in second["result"]["queues"]}
    (small,) = waiting["c"]
    assert small["outlook"] == (
        "nobody has to give anything back: there is quota for it, but it is kept for x Job/owner of queue a, "
        "first in line there and still short of some"
    )


def test_each_workload_says_what_it_borrows_itself(mooring: Call, write: Call) -> None:
    text = QUEUES + job("first", "b", 3) + job("second", "b", 3, minute=1)

    admitted = json.loads(mooring("schedule", "-q", "-o", "json", "-f", write(text)).out)["admitted"]

    borrowed = [(found["owner"], found["borrowed"]) for found in admitted]
    assert borrowed == [("Job/first", {}), ("Job/second", {"cpu": 2})]


def test_a_group_of_pods_that_is_not_complete_says_how_many_are_there(mooring: Call, write: Call) -> None:
    member = """
apiVersion: v1
kind: Pod
metadata:
  name: leader
  labels: {kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/pod-group-name: train}
  annotations: {kueue.x-k8s.io/pod-group-total-count: "3"}
spec: {containers: [{name: c, image: i}]}
"""
    outcome = mooring("schedule", "-q", "-f", write(member))

    assert "1 pod: 'train' group has fewer runnable pods than expected: 1 of 3\n" in outcome.out
