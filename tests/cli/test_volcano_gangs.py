"""Gangs in Volcano's queues of which only some pods ask for anything, as people try them."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

Call = Callable[..., Any]

QUEUE = """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: ml}
spec: {weight: 1}"""


def node(cpus: int) -> str:
    return f"""
---
apiVersion: v1
kind: Node
metadata: {{name: n}}
status: {{allocatable: {{cpu: {cpus}, memory: 64Gi, pods: 110}}}}"""


def task(name: str, replicas: int, requests: str = "", spec: str = "", minimum: int | None = None) -> str:
    main = f"{{name: main, image: i, resources: {{requests: {{{requests}}}}}}}"
    least = "" if minimum is None else f"minAvailable: {minimum}, "
    pod = f"{{spec: {{{spec}restartPolicy: Never, containers: [{main}]}}}}"
    return f"\n  - {{name: {name}, replicas: {replicas}, {least}template: {pod}}}"


def job(name: str, minimum: int, *tasks: str) -> str:
    return f"""
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  schedulerName: volcano
  queue: ml
  minAvailable: {minimum}
  tasks:{"".join(tasks)}"""


def placed(mooring: Call, file: str) -> Counter[str]:
    """How many pods of each task of each job have a place."""
    outcome = mooring("schedule", "-q", "-o", "json", "-f", file, "--as", "volcano")
    assert (outcome.code, outcome.err) == (0, "")
    return Counter(found["pod"].rpartition("-")[0] for found in json.loads(outcome.out)["placements"])


def test_pods_without_requests_count_for_the_minimum_of_their_gang(mooring: Call, write: Call) -> None:
    launchers, workers = task("launcher", 4), task("worker", 3, "cpu: 3")
    file = write(node(4) + QUEUE + job("train", 5, launchers, workers))

    # One worker is enough beside four launchers; the others may come later.
    assert placed(mooring, file) == {"train-launcher": 4, "train-worker": 1}


def test_a_gang_that_is_whole_without_anything_starts_though_its_share_allows_no_more(
    mooring: Call, write: Call
) -> None:
    file = write(node(2) + QUEUE + job("train", 3, task("launcher", 4), task("worker", 3, "cpu: 3")))

    assert placed(mooring, file) == {"train-launcher": 4}


def test_a_gang_waits_for_those_of_its_members_that_ask_for_nothing(mooring: Call, write: Call) -> None:
    nowhere = task("launcher", 1, spec="nodeSelector: {disk: ssd}, ")
    file = write(node(8) + QUEUE + job("train", 3, nowhere, task("worker", 2, "cpu: 1")))

    outcome = mooring("schedule", "-f", file, "--as", "volcano")

    # Volcano would start the workers and leave them without their launcher.
    assert "3 pods: gang default/train: room for 0 of 1 launcher members, of 3 in all" in outcome.out


def test_if_no_node_takes_one_role_another_does_instead(mooring: Call, write: Call) -> None:
    large, small = task("large", 2, "cpu: 6"), task("small", 3, "cpu: 1")
    file = write(node(4) + QUEUE + job("train", 2, large, small))

    assert placed(mooring, file) == {"train-small": 3}


def test_members_take_turns_by_their_numbers_whatever_their_roles(mooring: Call, write: Call) -> None:
    large, small = task("large", 2, "cpu: 2"), task("small", 2, "cpu: 1")
    file = write(node(3) + QUEUE + job("train", 2, large, small))

    assert placed(mooring, file) == {"train-large": 1, "train-small": 1}


def test_a_minimum_of_a_role_is_for_all_of_its_pods(mooring: Call, write: Call) -> None:
    group = """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 3, minTaskMember: {a: 3}, queue: ml}"""
    members = "".join(
        f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: g-a-{number}
  annotations: {{scheduling.k8s.io/group-name: g, volcano.sh/task-spec: a}}
spec:
  schedulerName: volcano
  containers: [{{name: main, image: i, resources: {{requests: {{{requests}}}}}}}]"""
        for number, requests in enumerate(("cpu: 1", "cpu: 1", "cpu: 1", "", ""))
    )

    # One of the three that ask for a CPU is enough beside the two that ask for nothing.
    assert placed(mooring, write(node(1) + QUEUE + group + members)) == {"g-a": 3}


def test_explain_counts_what_a_gang_needs_as_volcano_does(mooring: Call, write: Call) -> None:
    held = "\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: other}\nspec: {nodeName: n, containers: [{name: c, "
    held += "image: i, resources: {requests: {cpu: 2}}}]}"
    file = write(node(4) + QUEUE + held + job("train", 5, task("launcher", 4), task("worker", 3, "cpu: 3")))

    said = mooring("explain", "-f", file, "--as", "volcano", "train-worker-0").out

    assert "waits: gang default/train: room for 0 of 1 worker members, of 5 in all" in said
    assert "no room for 1 member: 3 cpu in all" in said
    assert "can never fit" not in said


def test_what_is_backfilled_does_not_hide_why_the_others_wait(mooring: Call, write: Call) -> None:
    file = write(node(4) + QUEUE + job("train", 5, task("launcher", 2), task("worker", 6, "cpu: 1")))

    outcome = mooring("schedule", "-f", file, "--as", "volcano")

    assert "2 pods: queue ml deserves 4 cpu and holds 4; 1 more asked for" in outcome.out


def test_a_group_that_is_not_let_in_is_not_backfilled_either(mooring: Call, write: Call) -> None:
    group = """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 1, queue: ml, minResources: {cpu: 6}}
---
apiVersion: v1
kind: Pod
metadata: {name: g-a-0, annotations: {scheduling.k8s.io/group-name: g}}
spec: {schedulerName: volcano, containers: [{name: main, image: i}]}"""

    assert placed(mooring, write(node(4) + QUEUE + group)) == {}
    assert placed(mooring, write(node(8) + QUEUE + group)) == {"g-a": 1}
