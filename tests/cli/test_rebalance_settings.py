"""Every setting of a RebalancePolicy changes what is told, or when."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "rebalance"
Call = Callable[..., Any]
STRATEGIES = (EXAMPLE / "policy.yaml").read_text().partition("---")[0]
CLUSTER = (EXAMPLE / "cluster.yaml").read_text()
PENDING = """
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: ml}
spec:
  schedulerName: gpu-scheduler
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  containers: [{name: c, image: x, resources: {requests: {nvidia.com/gpu: 8}, limits: {nvidia.com/gpu: 8}}}]
"""


def settings(strategies: str = STRATEGIES, **given: Any) -> str:
    lines = "".join(f"{name}: {json.dumps(value)}\n" for name, value in given.items())
    return f"{strategies}---\napiVersion: config.mooring.dev/v1alpha1\nkind: RebalancePolicy\n{lines}"


@pytest.fixture
def told(mooring: Call, write: Call) -> Callable[..., list[str]]:
    def plan(policy: str, cluster: str = CLUSTER) -> list[str]:
        outcome = mooring(
            *("rebalance", "-f", write(cluster), "--policy", write(policy, "policy.yaml")),
            *("--config", EXAMPLE / "scheduler.yaml", "--now", "2026-03-02T12:00:00Z", "-o", "json"),
        )
        assert outcome.code == 0, outcome.err
        return [step["pod"] for step in json.loads(outcome.out)["steps"]]

    return plan


ALL = ["cart-a", "cart-b", "web-a", "web-b", "serve-a", "serve-b"]


def test_a_run_moves_no_more_pods_than_allowed(told: Callable[..., list[str]]) -> None:
    assert told(settings()) == ALL
    assert told(settings(mostMovesPerRun=1)) == ALL[:1]


def test_moves_are_made_that_are_worth_a_restart(told: Callable[..., list[str]]) -> None:
    assert told(settings(restartCost=50)) == [pod for pod in ALL if not pod.startswith("web")]


@pytest.mark.parametrize(("per_hour", "carts"), [(20, ["cart-a", "cart-b"]), (30, [])])
def test_work_that_is_lost_costs_by_the_hour(told: Callable[..., list[str]], per_hour: int, carts: list[str]) -> None:
    cluster = CLUSTER.replace("kind: ReplicaSet, name: cart", "kind: Job, name: cart")

    assert told(settings(startOverCostPerHour=per_hour), cluster)[: len(carts) or 1] == (carts or ["web-a"])


def test_the_descheduler_can_be_followed_to_the_letter(told: Callable[..., list[str]]) -> None:
    assert told(settings(compatible=True)) == ["cart-a", "cart-b", "index-a", "web-a", "serve-a", "serve-b"]


@pytest.mark.parametrize(("is_on", "pods"), [(True, ["serve-a"]), (False, [])])
def test_room_is_made_for_what_waits_for_whole_gpus(
    told: Callable[..., list[str]], is_on: bool, pods: list[str]
) -> None:
    nothing_else = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: []\n"

    assert told(settings(nothing_else, defragmentGpus=is_on), CLUSTER + PENDING) == pods


NODE = """
apiVersion: v1
kind: Node
metadata: {name: %s}
spec: {taints: [%s]}
status: {allocatable: {cpu: 8, memory: 8Gi, pods: 9}, capacity: {cpu: 8, memory: 8Gi, pods: 9}}
---
"""
OLD = "{key: old, effect: NoSchedule}"
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: p
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}]
spec:
  nodeName: a
  containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]
status: {phase: Running, startTime: "2026-03-02T08:00:00Z"}
"""


@pytest.mark.parametrize(
    ("given", "evicted"),
    [
        ({"intervalSeconds": 30, "quietSeconds": 10}, [["p"], [], ["p"]]),
        ({"intervalSeconds": 30, "quietSeconds": 3600}, [["p"], [], []]),
        ({"intervalSeconds": 3600, "quietSeconds": 10}, [["p"], [], []]),
    ],
)
def test_pods_move_at_intervals_and_not_again_for_a_while(
    mooring: Call, write: Call, given: dict[str, Any], evicted: list[list[str]]
) -> None:
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n---\n" + settings(**given)
    first = write(NODE % ("a", OLD) + NODE % ("b", "") + POD)
    then = write(NODE % ("a", "") + NODE % ("b", OLD), "then.yaml")
    later = write("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n", "later.yaml")

    outcome = mooring(
        *("schedule", "-f", first, "--config", write(config, "scheduler.yaml"), "--then", f"10m:{then}"),
        *("--then", f"1m:{later}", "--now", "2026-03-02T12:00:00Z", "-o", "json"),
    )

    assert outcome.code == 0, outcome.err
    steps = json.loads(outcome.out)["steps"]
    assert [[found["pod"] for found in step["result"]["evicted"]] for step in steps] == evicted
