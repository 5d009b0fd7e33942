"""Volcano's queues as people try them: manifests and settings in, placements out."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

Call = Callable[..., Any]

TWO_QUEUES = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 64, memory: 256Gi, pods: 110, nvidia.com/gpu: 8}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: a}
spec: {weight: 1}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: b}
spec: {weight: 1}
"""


def pods(queue: str, name: str, count: int, status: str = "") -> str:
    """So many pods of one GPU each."""
    return f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: "{name}-{{i}}"
  annotations: {{scheduling.volcano.sh/queue-name: {queue}, mooring.dev/replicas: "{count}"}}
spec:
  containers: [{{name: w, image: x, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]
{status}"""


def placed(mooring: Call, *arguments: str) -> list[Counter[str]]:
    """How many pods each step placed, by the first letter of their names."""
    outcome = mooring("schedule", "-q", "-o", "json", *arguments)
    assert (outcome.code, outcome.err) in ((0, ""), (1, ""))
    found = json.loads(outcome.out)
    results = [step["result"] for step in found["steps"]] if "steps" in found else [found]
    return [Counter(placement["pod"][0] for placement in result["placements"]) for result in results]


def test_who_had_much_in_the_past_gets_less_now_if_the_past_counts(mooring: Call, write: Call) -> None:
    first = write(TWO_QUEUES + pods("a", "a-old", 8), "1.yaml")
    ended = pods("a", "a-old", 8, "status: {phase: Succeeded}")
    then = write(ended + pods("a", "a-new", 8) + pods("b", "b", 8), "2.yaml")
    policy = "apiVersion: config.mooring.dev/v1alpha1\nkind: TenantPolicy\n"
    remembers = write(policy + "usageHalfLifeSeconds: 3600\n", "policy.yaml")

    story = ("-f", first, "--then", f"2h:{then}")

    assert placed(mooring, *story) == [{"a": 8}, {"a": 4, "b": 4}]
    assert placed(mooring, *story, "--config", remembers) == [{"a": 8}, {"b": 8}]
