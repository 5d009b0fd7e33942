"""The arguments of Coscheduling, and the match policies of Koordinator, change what `mooring schedule` decides."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]

NODE = """
apiVersion: v1
kind: Node
metadata: {name: %s}
status: {allocatable: {cpu: "%d", memory: 8Gi, pods: "10"}}
"""
GANG = """
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train}
spec: {minMember: 3}
---
apiVersion: v1
kind: Pod
metadata: {name: "train-{i}", labels: {scheduling.x-k8s.io/pod-group: train}, annotations: {mooring.dev/replicas: "3"}}
spec: {containers: [{name: main, image: x, resources: {requests: {cpu: "1"}}}]}
"""
LATE = """
---
apiVersion: v1
kind: Pod
metadata: {name: late}
spec: {containers: [{name: main, image: x, resources: {requests: {cpu: "1"}}}]}
"""
LOST = """
apiVersion: v1
kind: Pod
metadata: {name: train-0, deletionTimestamp: "2026-03-02T12:00:00Z"}
"""
NOTHING = """
apiVersion: v1
kind: Namespace
metadata: {name: other}
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint: {enabled: [{name: Coscheduling}]}
      queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
    pluginConfig: [{name: Coscheduling, args: %s}]
"""


@pytest.fixture
def steps(mooring: Call, write: Callable[..., Path]) -> Callable[..., list[Any]]:
    """What is decided at each step, with these arguments of Coscheduling."""

    def decide(args: str, first: str, *then: tuple[str, str]) -> list[Any]:
        config = write(CONFIG % args, "config.yaml")
        later = [
            part
            for index, (delay, text) in enumerate(then)
            for part in ("--then", f"{delay}:{write(text, f'{index}.yaml')}")
        ]
        outcome = mooring("schedule", "-q", "--config", config, "-f", write(first), *later, "-o", "json")
        assert outcome.code == 0, outcome.err
        return [step["result"] for step in json.loads(outcome.out)["steps"]]

    return decide


def placed(result: Any) -> list[str]:
    return sorted(found["pod"] for found in result["placements"])


@pytest.mark.parametrize(
    ("args", "winner"),
    [("{}", ["train-0", "train-1", "train-2"]), ("{podGroupBackoffSeconds: 60}", ["late"])],
    ids=["no backoff", "a minute"],
)
def test_a_group_that_was_tried_in_vain_stays_behind_for_as_long_as_its_backoff_says(
    steps: Callable[..., list[Any]], args: str, winner: list[str]
) -> None:
    _, after = steps(args, NODE % ("a", 2) + GANG, ("30s", "---" + NODE % ("b", 1) + LATE))

    assert placed(after) == winner


@pytest.mark.parametrize(
    ("args", "evicted"),
    [("{}", 0), ("{permitWaitingTimeSeconds: 60}", 2), ("{defaultTimeout: 60s}", 2), ("{defaultTimeout: 10m}", 0)],
    ids=["five minutes", "a minute", "a minute in Koordinator's words", "ten minutes"],
)
def test_a_group_that_lost_a_member_has_as_long_as_permitted_to_get_it_back(
    steps: Callable[..., list[Any]], args: str, evicted: int
) -> None:
    _, _, after = steps(args, NODE % ("a", 3) + GANG, ("10s", LOST), ("2m", NOTHING))

    assert len(after.get("evicted", [])) == evicted


@pytest.mark.parametrize(
    ("policy", "names"),
    [("once-satisfied", ["train-1"]), ("waiting-and-running", [])],
)
def test_the_match_policy_decides_whether_a_lone_member_of_a_gang_that_ran_may_start(
    mooring: Call, write: Callable[..., Path], policy: str, names: list[str]
) -> None:
    pod = """
---
apiVersion: v1
kind: Pod
metadata:
  name: train-%d
  annotations:
    gang.scheduling.koordinator.sh/name: train
    gang.scheduling.koordinator.sh/min-available: "3"
    gang.scheduling.koordinator.sh/match-policy: %s
spec: {%s containers: [{name: main, image: x}]}
"""
    file = write(NODE % ("a", 4) + pod % (0, policy, "nodeName: a,") + pod % (1, policy, ""))

    assert placed(json.loads(mooring("schedule", "-q", "-f", file, "-o", "json").out)) == names


def test_arguments_that_cannot_be_are_refused(mooring: Call, write: Callable[..., Path]) -> None:
    file = write(NODE % ("a", 1))
    for args, problem in (
        ("{podGroupBackoffSeconds: -1}", "podGroupBackoffSeconds: expected 0 or more, found -1"),
        ("{defaultTimeout: long}", "defaultTimeout: expected a duration such as 90s, 10m or 1h30m, found long"),
    ):
        outcome = mooring("schedule", "-f", file, "--config", write(CONFIG % args, "config.yaml"))
        assert outcome.code == 2
        assert outcome.err.strip().endswith(problem)
