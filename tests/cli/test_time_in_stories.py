"""Time in stories: what time it is, pods that end by themselves, taints that drive pods away, notices."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]
TEAMS = Path(__file__).parents[2] / "examples" / "tenants" / "two-teams"
POLICIES = TEAMS.parent / "policies.yaml"

NODES = """
apiVersion: v1
kind: Node
metadata: {name: "n-{i}", labels: {host: "n-{i}"}, annotations: {mooring.dev/replicas: "2"}}
status: {allocatable: {cpu: 4, memory: 16Gi, pods: 20}}
"""
POD = """
---
apiVersion: v1
kind: Pod
metadata: {name: %s%s}
spec: {%scontainers: [{name: w, image: x, resources: {requests: {cpu: %s}}}]}
"""
NOTHING = "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n"


def pod(name: str, *, cpu: str = "1", meta: str = "", spec: str = "") -> str:
    return POD % (name, f", {meta}" if meta else "", f"{spec}, " if spec else "", cpu)


def lasting(duration: str) -> str:
    return f"annotations: {{mooring.dev/duration: {duration}}}"


@pytest.fixture
def tell(mooring: Call, write: Call) -> Call:
    def steps(*texts: str, after: str = "1m", options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        files = [write(text, f"{number}.yaml") for number, text in enumerate(texts)]
        then = [argument for file in files[1:] for argument in ("--then", f"{after}:{file}")]
        outcome = mooring("schedule", "-q", "-o", "json", "-f", files[0], *then, *options)
        assert (outcome.code, outcome.err) == (0, "")
        found: list[dict[str, Any]] = json.loads(outcome.out)["steps"]
        return found

    return steps


def placed(step: dict[str, Any]) -> dict[str, str]:
    return {found["pod"]: found["node"] for found in step["result"]["placements"]}


# What time it is.


def test_each_step_says_what_time_it_is(tell: Call) -> None:
    steps = tell(NODES, NOTHING, NOTHING, after="90m", options=("--now", "2026-03-02T22:00:00+01:00"))

    assert [step["now"] for step in steps] == ["2026-03-02T21:00:00Z", "2026-03-02T22:30:00Z", "2026-03-03T00:00:00Z"]


def test_time_begins_with_the_last_moment_that_the_manifests_speak_of(mooring: Call, write: Call) -> None:
    text = NODES + pod("p", meta='creationTimestamp: "2026-03-02T12:00:00Z"')

    outcome = mooring("schedule", "-q", "-f", write(text), "--then", f"10m:{write(NOTHING, 'nothing.yaml')}")

    headings = [line.partition(": ")[0] for line in outcome.out.splitlines() if line.startswith("STEP")]
    assert headings == ["STEP 1, at first, 2026-03-02T12:00:00Z", "STEP 2, 10m later, 2026-03-02T12:10:00Z"]


def test_a_job_and_a_workload_speak_of_moments_too(mooring: Call, write: Call) -> None:
    job = """
---
apiVersion: batch/v1
kind: Job
metadata: {name: j, creationTimestamp: "2026-03-02T08:50:00Z"}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: w, image: x}]}}}
"""

    outcome = mooring("schedule", "-q", "-f", write(NODES + job), "--then", f"10m:{write(NOTHING, 'nothing.yaml')}")

    assert "STEP 2, 10m later, 2026-03-02T09:00:00Z: " in outcome.out


@pytest.mark.parametrize("text", ["noon", "2026-03-02", "2026-03-02T12:00:00", "2026-13-02T12:00:00Z"])
def test_a_time_that_is_none_is_refused_in_one_line(mooring: Call, write: Call, text: str) -> None:
    outcome = mooring("schedule", "-f", write(NODES), "--now", text)

    expected = f"error: --now: expected a time such as 2026-03-02T12:00:00Z, found {text!r}\n"
    assert (outcome.code, outcome.err) == (2, expected)


# Windows and notices.


def test_what_a_window_gives_depends_on_the_time(mooring: Call) -> None:
    def free(now: str) -> list[float]:
        command = ("queues", "-q", "-o", "json", "-f", TEAMS / "1-cluster.yaml", "--config", POLICIES, "--now", now)
        queues = {queue["name"]: queue for queue in json.loads(mooring(*command).out)["queues"]}
        return [found["available"] for found in queues["research"]["quotas"]]

    assert free("2026-03-03T02:00:00+01:00") == [10]
    assert free("2026-03-03T12:00:00+01:00") == [2]


def test_whoever_will_lose_quota_is_told_so_in_the_table_and_as_data(mooring: Call, write: Call) -> None:
    config = write(POLICIES.read_text().replace("evict: IfWanted", "evict: Always"), "policies.yaml")
    steps = ["--then", f"10m:{TEAMS / '2-research-borrows.yaml'}", "--then", f"7h40m:{TEAMS / '1-cluster.yaml'}"]
    command = ["schedule", "-q", "-f", TEAMS / "1-cluster.yaml", *steps, "--config", config]
    command += ["--now", "2026-03-03T00:00:00+01:00"]

    night, evening, morning = json.loads(mooring(*command, "-o", "json").out)["steps"]
    table = mooring(*command).out

    assert (night["result"]["notices"], evening["result"]["notices"]) == ([], [])
    told = morning["result"]["notices"]
    assert [(notice["owner"], notice["at"]) for notice in told] == [("Job/finetune", "2026-03-03T07:00:00Z")]
    assert f"research Job/finetune at 2026-03-03T07:00:00Z: {told[0]['message']}" in table.splitlines()


# Pods that end by themselves.


def test_a_pod_with_a_duration_ends_by_itself_and_makes_room_at_that_time(tell: Call) -> None:
    first = NODES + pod("a", cpu="4", meta=lasting("3m")) + pod("b", cpu="4", meta=lasting("10m")) + pod("c", cpu="3")

    begin, middle, end = tell(first, NOTHING, NOTHING, after="5m")

    assert sorted(placed(begin)) == ["a", "b"]
    assert [found["pod"] for found in begin["result"]["waiting"]] == ["c"]
    assert middle["result"]["ended"] == [
        {
            "pod": "a",
            "namespace": "default",
            "node": placed(begin)["a"],
            "phase": "Succeeded",
            "at": "1970-01-01T00:03:00Z",
        }
    ]
    assert placed(middle) == {"c": placed(begin)["a"]}
    assert [(found["pod"], found["at"]) for found in end["result"]["ended"]] == [("b", "1970-01-01T00:10:00Z")]


@pytest.mark.parametrize("duration", ["never", '"lognormal(2m, 0.8)"'])
def test_a_pod_whose_end_nobody_knows_stays(tell: Call, duration: str) -> None:
    begin, end = tell(NODES + pod("a", meta=lasting(duration)), NOTHING, after="24h")

    assert set(placed(begin)) == {"a"}
    assert end["result"].get("ended", []) == []


def test_a_pod_that_ran_before_ends_as_long_after_its_start(tell: Call) -> None:
    first = (
        NODES
        + pod("a", meta=lasting("1h"), spec="nodeName: n-0").rstrip()
        + ('\nstatus: {phase: Running, startTime: "2026-03-02T11:30:00Z"}\n')
    )

    _, before, after = tell(first, NOTHING, NOTHING, after="20m", options=("--now", "2026-03-02T12:00:00Z"))

    assert before["result"]["ended"] == []
    assert [found["at"] for found in after["result"]["ended"]] == ["2026-03-02T12:30:00Z"]


def test_a_pod_that_reaches_its_deadline_has_failed(tell: Call) -> None:
    _, second = tell(NODES + pod("a", spec="activeDeadlineSeconds: 30"), NOTHING)

    assert [(found["pod"], found["phase"]) for found in second["result"]["ended"]] == [("a", "Failed")]


# Taints.

TAINTED = """
apiVersion: v1
kind: Node
metadata: {name: n-0, labels: {host: n-0}}
spec: {taints: [{key: %s, effect: NoExecute}]}
status: {allocatable: {cpu: 4, memory: 16Gi, pods: 20}}
"""
STAYS = "nodeName: n-0, tolerations: [{key: maintenance, operator: Exists}]"
LEAVES = "nodeName: n-0, tolerations: [{key: maintenance, operator: Exists, effect: NoExecute, tolerationSeconds: 90}]"


def test_a_taint_that_forbids_execution_evicts_those_who_do_not_tolerate_it(tell: Call) -> None:
    first = NODES + pod("bare", spec="nodeName: n-0") + pod("stays", spec=STAYS) + pod("leaves", spec=LEAVES)

    _, at_once, later, still = tell(first, TAINTED % "maintenance", NOTHING, NOTHING)

    lost = [[(found["pod"], found["taint"]) for found in step["result"]["lost"]] for step in (at_once, later, still)]
    assert lost == [[("bare", "maintenance:NoExecute")], [], [("leaves", "maintenance:NoExecute")]]
    assert still["result"]["summary"]["alreadyBound"] == 1


def test_whoever_was_placed_here_and_is_driven_away_looks_for_another_node(tell: Call) -> None:
    first = NODES + pod("p", spec="nodeSelector: {host: n-0}") + pod("q", cpu="3")
    moved = NODES.replace('{host: "n-{i}"}', "{host: n-0}")

    begin, tainted = tell(first, moved + "---" + TAINTED % "broken")

    assert placed(begin)["p"] == "n-0"
    assert [(found["pod"], found["comesBack"]) for found in tainted["result"]["lost"]] == [("p", True)]
    assert placed(tainted) == {"p": "n-1"}


def test_the_taint_of_an_unreachable_node_is_tolerated_for_five_minutes(tell: Call) -> None:
    first = NODES + pod("p", spec="nodeName: n-0")

    steps = tell(first, TAINTED % "node.kubernetes.io/unreachable", NOTHING, NOTHING, after="2m")

    assert [len(step["result"]["lost"]) for step in steps] == [0, 0, 0, 0]
    (*_, last) = tell(first, TAINTED % "node.kubernetes.io/unreachable", NOTHING, after="5m")
    assert [found["taint"] for found in last["result"]["lost"]] == ["node.kubernetes.io/unreachable:NoExecute"]


# What a step may say, and what it is called.


def test_a_pod_of_a_workload_succeeds_without_a_spec(tell: Call) -> None:
    job = """
---
apiVersion: batch/v1
kind: Job
metadata: {name: t}
spec:
  parallelism: 2
  completions: 2
  template: {spec: {restartPolicy: Never, containers: [{name: w, image: x, resources: {requests: {cpu: 1}}}]}}
"""
    begin, _ = tell(NODES + job, NOTHING)
    name = sorted(placed(begin))[0]

    _, done = tell(
        NODES + job, f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nstatus: {{phase: Succeeded}}\n"
    )

    assert (done["result"]["placements"], done["result"]["waiting"]) == ([], [])
    assert done["result"]["summary"]["alreadyBound"] == 1


APACHE = """\
# Copyright 2026 The Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
"""
FOUNDATION = """\
#
# Licensed to the Example Foundation under one or more agreements.
# See the NOTICE file for who holds which rights.
#
#      http://www.example.org/licenses/LICENSE-2.0
#
"""


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (APACHE, ""),
        (FOUNDATION, ""),
        ("# SPDX-License-Identifier: Apache-2.0\n", ""),
        ("# SPDX-License-Identifier: MIT\n# A node is lost.\n", "A node is lost."),
        (APACHE + "\n# A node\n# is lost.\n\n", "A node is lost."),
        ("# A node is lost.\n#\n# Nobody minds.\n", "A node is lost. Nobody minds."),
    ],
)
def test_a_licence_header_is_no_caption(tell: Call, header: str, said: str) -> None:
    _, step = tell(NODES, header + NOTHING)

    assert step["said"] == said


# Pods that are made anew are others.


def test_a_preemptor_whose_victims_come_back_is_bound_and_nobody_vanishes(tell: Call) -> None:
    gang = """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 2}
---
apiVersion: v1
kind: Pod
metadata: {name: "g-{i}", annotations: {mooring.dev/replicas: "2", scheduling.k8s.io/group-name: g}}
spec: {containers: [{name: w, image: x, resources: {requests: {cpu: 2}}}]}
"""
    urgent = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
""" + pod("urgent", cpu="3", spec="priorityClassName: high, nodeSelector: {host: n-1}")

    _, second = tell(NODES + gang, urgent)

    assert placed(second) == {"urgent": "n-1", "g-0": "n-0", "g-1": "n-0"}


def test_a_pod_that_is_named_again_stays_where_it_is(tell: Call) -> None:
    begin, labelled = tell(NODES + pod("p"), pod("p", meta="labels: {app: web}"))

    assert list(placed(begin)) == ["p"]
    assert (labelled["result"]["placements"], labelled["result"]["summary"]["alreadyBound"]) == ([], 1)


def test_a_pod_that_is_evicted_as_time_passes_and_then_deleted_is_shown_all_the_same(tell: Call) -> None:
    """It was a traceback: the eviction was decided, and the pod was no longer in the manifests."""
    high = "\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 9\n"
    full = pod("full", cpu="4", spec="nodeName: n-0, priorityClassName: high")
    ends = pod("ends", cpu="2", meta=lasting("5s"), spec="priorityClassName: high")
    urgent = pod("urgent", cpu="4", spec="priorityClassName: high")
    deleted = 'apiVersion: v1\nkind: Pod\nmetadata: {name: weak, deletionTimestamp: "1970-01-01T00:01:00Z"}\n'

    first, second = tell(NODES + high + full + ends + urgent + pod("weak", cpu="2"), deleted, after="20s")

    assert (sorted(placed(first)), sorted(placed(second))) == (["ends", "weak"], ["urgent"])
    assert [(found["pod"], found["preemptor"]) for found in second["result"]["evicted"]] == [("weak", "default/urgent")]


TAINTED_DEVICE = """
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n-0}
spec:
  driver: gpu.example.com
  nodeName: n-0
  pool: {name: n-0, generation: 1, resourceSliceCount: 1}
  devices: [{name: g0, taints: [{key: bad, value: x, effect: NoExecute}]}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec:
  spec:
    devices:
      requests:
      - name: r
        exactly:
          deviceClassName: gpu
          tolerations: [{key: bad, operator: Exists, effect: NoExecute, tolerationSeconds: 25}]
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims: [{name: g, resourceClaimTemplateName: gpu}]
  containers: [{name: m, image: i, resources: {claims: [{name: g}]}}]
"""


def test_a_tainted_device_is_tolerated_anew_by_each_pod_that_gets_it(tell: Call) -> None:
    _, later = tell(NODES + TAINTED_DEVICE, NOTHING)

    # Driven away after 25 s and after 50 s of the minute, each time made anew and placed again.
    assert [(found["pod"], found["comesBack"]) for found in later["result"]["lost"]] == [("p", True)] * 2
    assert placed(later) == {"p": "n-0"}
