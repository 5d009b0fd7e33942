"""What tests of shared queues have in common: a node, and what becomes of pods by the first letter of their names."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

Call = Callable[..., Any]

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 64, memory: 256Gi, pods: 110, nvidia.com/gpu: 8}}"""


def told(mooring: Call, *arguments: Any) -> dict[str, Any]:
    is_kai = "kai-scheduler" in Path(arguments[1]).read_text()
    outcome = mooring("schedule", "-q", "-o", "json", *(("--as", "kai-scheduler") if is_kai else ()), *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def placed(mooring: Call, *arguments: Any) -> Counter[str]:
    """How many pods were placed, by the first letter of their names."""
    return Counter(found["pod"][0] for found in told(mooring, *arguments)["placements"])


def shown_queues(mooring: Call, *arguments: Any) -> list[Any]:
    outcome = mooring("queues", "-q", "-o", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    names = ("kind", "name", "parent", "deserved", "allocated", "capability", "runningPods", "waitingPods")
    found = json.loads(outcome.out)
    shown = found["steps"][-1]["result"] if "steps" in found else found
    return [tuple(queue[name] for name in names) for queue in shown["sharedQueues"]]
