"""`--then`: nodes vanish, pods are deleted or done, durations are mistyped."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: "n-{i}", annotations: {mooring.dev/replicas: "3"}}
status: {allocatable: {cpu: 32, memory: 256Gi, pods: 110, nvidia.com/gpu: 4}}
---
apiVersion: v1
kind: Pod
metadata: {name: old, namespace: a}
spec: {nodeName: n-1, containers: [{name: w, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: t, namespace: a, annotations: {mooring.dev/gang: "true"}}
spec:
  parallelism: 7
  completions: 7
  template: {spec: {restartPolicy: Never, containers: [{name: w, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}
"""
GONE = """
apiVersion: v1
kind: %s
metadata: {name: %s, namespace: %s, deletionTimestamp: "2026-03-02T12:00:00Z"}
"""
DONE = """
apiVersion: v1
kind: Pod
metadata: {name: t-d8smg, namespace: a, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: t, controller: true}]}
spec: {containers: [{name: w, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}
status: {phase: Succeeded}
"""


def steps(mooring: Call, write: Call, *texts: str) -> list[dict[str, Any]]:
    files = [write(text, f"{number}.yaml") for number, text in enumerate([CLUSTER, *texts])]
    then = [argument for file in files[1:] for argument in ("--then", file)]
    outcome = mooring("schedule", "-q", "-o", "json", "-f", files[0], *then)
    assert (outcome.code, outcome.err) == (0, "")
    return [step["result"] for step in json.loads(outcome.out)["steps"]]


def test_the_pods_of_a_node_that_vanishes_are_placed_anew_or_gone(mooring: Call, write: Call) -> None:
    first, second = steps(mooring, write, GONE % ("Node", "n-1", "default"))

    there = sorted(found["pod"] for found in first["placements"] if found["node"] == "n-1")
    assert sorted(found["pod"] for found in second["placements"]) == there
    assert {found["node"] for found in second["placements"]} <= {"n-0", "n-2"}
    lost = {found["pod"]: found["comesBack"] for found in second["lost"]}
    assert lost == {"old": False, **dict.fromkeys(there, True)}
    assert (second["summary"]["alreadyBound"], second["summary"]["lost"]) == (7 - len(there), len(there) + 1)


def test_the_table_names_those_that_are_lost(mooring: Call, write: Call) -> None:
    files = write(CLUSTER), write(GONE % ("Node", "n-1", "default"), "gone.yaml")

    lines = mooring("schedule", "-q", "-f", files[0], "--then", files[1]).out.splitlines()

    start = lines.index("LOST")
    assert lines[start + 1].endswith("lost with node n-1, back in the queue")
    assert lines[start + 3 : start + 5] == [
        "1 pod: lost with node n-1 for good: no controller makes another",
        "    a/old",
    ]


def test_a_pod_with_a_controller_comes_back_though_others_had_placed_it(mooring: Call, write: Call) -> None:
    ran = DONE.replace("Succeeded", "Running").replace("spec: {", "spec: {nodeName: n-1, ")
    _, running, lost = steps(mooring, write, ran, GONE % ("Node", "n-1", "default"))

    assert "t-d8smg" not in {found["pod"] for found in running["placements"]}
    assert "t-d8smg" in {found["pod"] for found in lost["placements"]}


def test_a_deleted_pod_of_a_workload_is_made_and_placed_anew(mooring: Call, write: Call) -> None:
    _, second = steps(mooring, write, GONE % ("Pod", "t-d8smg", "a"))

    assert [found["pod"] for found in second["placements"]] == ["t-d8smg"]
    assert second["summary"]["alreadyBound"] == 7


RESTARTS = """
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: v, namespace: a}
spec:
  minAvailable: 2
  schedulerName: default-scheduler
  policies: [{event: PodEvicted, action: RestartJob}]
  tasks:
    - name: w
      replicas: 2
      template: {spec: {containers: [{name: w, image: x, resources: {limits: {nvidia.com/gpu: 1}}}]}}
"""


def test_a_gang_that_restarts_whole_sees_its_loss_before_the_pod_is_made_anew(mooring: Call, write: Call) -> None:
    cluster = CLUSTER.partition("---")[0] + RESTARTS
    files = write(cluster), write(GONE % ("Pod", "v-w-0", "a"), "gone.yaml")

    outcome = mooring("schedule", "-q", "-o", "json", "-f", files[0], "--then", files[1])

    second = json.loads(outcome.out)["steps"][1]["result"]
    assert [found["pod"] for found in second["evicted"]] == ["v-w-1"]
    assert sorted(found["pod"] for found in second["placements"]) == ["v-w-0", "v-w-1"]
    found = json.loads(mooring("explain", "v-w-1", "-q", "-o", "json", "-f", files[0], "--then", files[1]).out)
    assert (found["state"], found["message"]) == (
        "placed",
        "it was evicted and placed again: gang a/v restarts as a whole: 1 of 2 members missing",
    )


def test_one_pod_that_succeeds_leaves_its_siblings_alone(mooring: Call, write: Call) -> None:
    _, second = steps(mooring, write, DONE)

    assert (second["placements"], second["waiting"], second["evicted"]) == ([], [], [])
    assert second["summary"]["alreadyBound"] == 7


def test_a_deletion_that_matches_nothing_is_refused_in_one_line(mooring: Call, write: Call) -> None:
    cluster, gone = write(CLUSTER), write(GONE % ("Pod", "t-9", "a"), "gone.yaml")

    outcome = mooring("schedule", "-q", "-f", cluster, "--then", gone)

    assert outcome.code == 2
    assert outcome.err == (
        f"error: {gone}: document 1 (Pod a/t-9): metadata.name: "
        "expected the name of a Pod that is there, to delete it, found a/t-9\n"
    )


@pytest.mark.parametrize("duration", ["-5m", "5x", "10", "1h5", "5M"])
def test_a_bad_duration_is_spoken_of_as_one(mooring: Call, write: Call, duration: str) -> None:
    file = write(CLUSTER)

    outcome = mooring("schedule", "-f", file, "--then", f"{duration}:{file}")

    expected = "expected a duration such as 90s or 10m before the colon"
    assert (outcome.code, outcome.err) == (2, f"error: --then: {expected}, found {duration!r}\n")


def test_a_pod_is_explained_as_things_stand_after_the_last_step(mooring: Call, write: Call) -> None:
    files = write(CLUSTER), write(GONE % ("Node", "n-1", "default"), "gone.yaml")
    first, second = steps(mooring, write, GONE % ("Node", "n-1", "default"))
    node_of = {found["pod"]: found["node"] for found in (*first["placements"], *second["placements"])}
    moved = {found["pod"] for found in second["placements"]}

    for name in ("old", *node_of):
        outcome = mooring("explain", f"a/{name}", "-q", "-o", "json", "-f", files[0], "--then", files[1])
        found = json.loads(outcome.out)
        if name == "old":
            assert (found["state"], found["message"]) == ("lost", "its node n-1 is gone, and nobody makes it anew")
        else:
            assert (found["state"], found["node"]) == ("placed" if name in moved else "running", node_of[name])


def test_what_follows_a_path_with_a_colon_is_still_a_file(mooring: Call, write: Call, tmp_path: Path) -> None:
    outcome = mooring("schedule", "-f", write(CLUSTER), "--then", f"{tmp_path}:x.yaml")

    assert (outcome.code, "expected a readable file" in outcome.err) == (2, True)
