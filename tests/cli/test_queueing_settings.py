"""What Kueue's Configuration says changes what is decided: every setting, through the commands."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., Any]


def config(text: str) -> str:
    return f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{text}\n"


NODE = """
---
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 64, memory: 256Gi, pods: 110, example.com/x: 8}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}"""


def queue(name: str, cpu: int, more: str = "", local: str = "") -> str:
    return f"""
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  namespaceSelector: {{}}
  resourceGroups:
  - {{coveredResources: [cpu], flavors: [{{name: any, resources: [{{name: cpu, nominalQuota: {cpu}}}]}}]}}{more}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {local or name}, namespace: default}}
spec: {{clusterQueue: {name}}}"""


def job(
    name: str, in_queue: str, cpu: int = 1, *, limits: str = "", meta: str = "", pods: int = 1, spec: str = ""
) -> str:
    resources = f"{{requests: {{cpu: {cpu}}}, limits: {{{limits}}}}}"
    return f"""
---
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, labels: {{kueue.x-k8s.io/queue-name: {in_queue}}}{meta}}}
spec:
  suspend: true
  parallelism: {pods}
  completions: {pods}
  template: {{spec: {{restartPolicy: Never{spec}, containers: [{{name: c, image: x, resources: {resources}}}]}}}}"""


def told(mooring: Call, *arguments: Any) -> dict[str, Any]:
    outcome = mooring("schedule", "-q", "-o", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def admitted(mooring: Call, *arguments: Any) -> list[str]:
    return sorted(found["owner"].removeprefix("Job/") for found in told(mooring, *arguments)["admitted"])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("{}", []),
        ("{excludeResourcePrefixes: [example.com]}", ["a"]),
        ("{quotaCheckStrategy: IgnoreUndeclared}", ["a"]),
        ("{transformations: [{input: example.com/x, strategy: Replace, outputs: {cpu: 1}}]}", ["a"]),
        ("{transformations: [{input: example.com/x, strategy: Retain, outputs: {cpu: 1}}]}", []),
        ("{transformations: [{input: example.com/x, strategy: Replace, outputs: {cpu: 4}}]}", ["a"]),
        ("{transformations: [{input: example.com/x, strategy: Replace, multiplyBy: cpu, outputs: {cpu: 4}}]}", []),
    ],
    ids=["it has no quota", "excluded", "not looked at", "as CPU", "and as itself", "as 4 CPUs", "as 4 for each CPU"],
)
def test_what_counts_as_a_resource_can_be_said(mooring: Call, write: Call, settings: str, expected: list[str]) -> None:
    file = write(NODE + queue("q", 8) + job("a", "q", 2, limits="example.com/x: 1"))

    assert admitted(mooring, "-f", file, "--config", write(config(f"resources: {settings}"), "c.yaml")) == expected


BORROWS = "\n  cohortName: all\n  preemption: {reclaimWithinCohort: Any}"


@pytest.mark.parametrize(
    ("strategies", "expected"),
    [("[LessThanOrEqualToFinalShare]", 0), ("[LessThanInitialShare]", 1)],
)
def test_preemption_strategies_decide_who_gives_back(
    mooring: Call, write: Call, strategies: str, expected: int
) -> None:
    """One large job borrows all; the other queue, with nothing of its own, asks for more than it would be left with."""
    queues = queue("own", 8, "\n  cohortName: all") + queue("a", 0, BORROWS) + queue("b", 0, BORROWS)
    first = write(NODE + queues + job("large", "a", 8), "first.yaml")
    then = write(job("small", "b", 5).lstrip("\n-"), "then.yaml")
    settings = write(config(f"fairSharing: {{preemptionStrategies: {strategies}}}"), "c.yaml")

    steps = told(mooring, "-f", first, "--then", then, "--config", settings)["steps"]

    assert len(steps[1]["result"]["suspended"]) == expected


@pytest.mark.parametrize(
    ("version", "part", "expected"), [("v1beta1", "{}", 0), ("v1beta1", "{enable: true}", 1), ("v1beta2", "{}", 1)]
)
def test_fair_sharing_is_on_where_the_version_says_so(
    mooring: Call, write: Call, version: str, part: str, expected: int
) -> None:
    queues = queue("own", 8, "\n  cohortName: all") + queue("a", 0, BORROWS) + queue("b", 0, BORROWS)
    first = write(NODE + queues + job("large", "a", 8), "first.yaml")
    then = write(job("small", "b", 4).lstrip("\n-"), "then.yaml")
    settings = write(config(f"fairSharing: {part}").replace("v1beta2", version), "c.yaml")

    steps = told(mooring, "-f", first, "--then", then, "--config", settings)["steps"]

    assert len(steps[1]["result"]["suspended"]) == expected


NOWHERE = ", nodeSelector: {never: there}"


@pytest.mark.parametrize(
    ("settings", "suspended", "waiting_behind"),
    [
        ("waitForPodsReady: {timeout: 1m}", True, False),
        ("waitForPodsReady: {timeout: 1h}", False, False),
        ("waitForPodsReady: {timeout: 1h, blockAdmission: true}", False, True),
        ("waitForPodsReady: {timeout: 1m}\nfeatureGates: {DisableWaitForPodsReady: true}", False, False),
    ],
    ids=["too late", "in time", "others wait for it", "switched off"],
)
def test_work_whose_pods_are_not_ready_loses_its_quota(
    mooring: Call, write: Call, settings: str, suspended: bool, waiting_behind: bool
) -> None:
    first = write(NODE + queue("q", 8) + job("stuck", "q", spec=NOWHERE), "first.yaml")
    then = write(job("next", "q").lstrip("\n-"), "then.yaml")

    story = ("-f", first, "--then", f"10m:{then}", "--config", write(config(settings), "c.yaml"))
    steps = [step["result"] for step in told(mooring, *story)["steps"]]

    owners = [found["owner"] for step in steps for found in step["admitted"]]
    assert any(step["suspended"] for step in steps) == suspended
    assert ("Job/next" not in owners) == waiting_behind


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("{backoffBaseSeconds: 60}", 2),
        ("{backoffBaseSeconds: 3000, backoffMaxSeconds: 3000}", 1),
        ("{backoffBaseSeconds: 60, backoffLimitCount: 0}", 1),
    ],
    ids=["soon", "after a long while", "never again"],
)
def test_work_that_was_too_late_is_tried_again_after_its_backoff(
    mooring: Call, write: Call, strategy: str, expected: int
) -> None:
    first = write(NODE + queue("q", 8) + job("stuck", "q", spec=NOWHERE), "first.yaml")
    later = write("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}", "later.yaml")
    settings = config(f"waitForPodsReady: {{timeout: 5m, requeuingStrategy: {strategy}}}")

    story = ("-f", first, "--then", f"8m:{later}", "--config", write(settings, "c.yaml"))
    steps = [step["result"] for step in told(mooring, *story)["steps"]]

    assert sum(len(step["admitted"]) for step in steps) == expected


@pytest.mark.parametrize(("timestamp", "expected"), [("Eviction", "third"), ("Creation", "stuck")])
def test_work_that_was_too_late_stands_where_the_strategy_says(
    mooring: Call, write: Call, timestamp: str, expected: str
) -> None:
    """Quota for one. The first is evicted at five minutes, the second runs until twelve: who is next?"""
    lasting = "template: {metadata: {annotations: {mooring.dev/duration: 7m}}, spec"
    first = write(NODE + queue("q", 1) + job("stuck", "q", spec=NOWHERE), "first.yaml")
    second = job("second", "q").replace("template: {spec", lasting)
    then = write((second + job("third", "q")).lstrip("\n-"), "then.yaml")
    later = write("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}", "later.yaml")
    settings = config(f"waitForPodsReady: {{timeout: 5m, requeuingStrategy: {{timestamp: {timestamp}}}}}")

    story = ("-f", first, "--then", f"1m:{then}", "--then", f"12m:{later}", "--config", write(settings, "c.yaml"))
    steps = [step["result"] for step in told(mooring, *story)["steps"]]

    owners = [found["owner"].removeprefix("Job/") for step in steps for found in step["admitted"]]
    assert owners[:3] == ["stuck", "second", expected]


@pytest.mark.parametrize(
    ("version", "enable", "expected"), [("v1beta1", None, 0), ("v1beta1", True, 1), ("v1beta2", None, 1)]
)
def test_the_older_version_has_switches(
    mooring: Call, write: Call, version: str, enable: bool | None, expected: int
) -> None:
    switch = "" if enable is None else "enable: true, "
    text = config(f"waitForPodsReady: {{{switch}timeout: 1m}}").replace("v1beta2", version)
    first = write(NODE + queue("q", 8) + job("stuck", "q", spec=NOWHERE), "first.yaml")
    later = write("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}", "later.yaml")

    steps = told(mooring, "-f", first, "--then", f"2m:{later}", "--config", write(text, "c.yaml"))["steps"]

    assert sum(len(step["result"]["suspended"]) for step in steps) == expected


AVERAGED = "\n  admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", "a-new"),
        ("admissionFairSharing: {usageHalfLifeTime: 10h, usageSamplingInterval: 1m}", "b-new"),
        (
            "admissionFairSharing: {usageHalfLifeTime: 10h, usageSamplingInterval: 1m, resourceWeights: {cpu: 0}}",
            "a-new",
        ),
    ],
    ids=["by age", "by what their queues used", "of what counts"],
)
def test_local_queues_that_used_much_come_later(mooring: Call, write: Call, settings: str, expected: str) -> None:
    second = "\n---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: b, namespace: default}"
    second += "\nspec: {clusterQueue: q}"
    first = write(NODE + queue("q", 8, AVERAGED, "a") + second + job("a-old", "a", 8), "first.yaml")
    ended = job("a-old", "a", 8) + '\nstatus: {conditions: [{type: Complete, status: "True"}], succeeded: 1}'
    then = write((ended + job("a-new", "a", 8) + job("b-new", "b", 8)).lstrip("\n-"), "then.yaml")

    story = ("-f", first, "--then", f"2h:{then}", "--config", write(config(settings), "c.yaml"))
    steps = [step["result"] for step in told(mooring, *story)["steps"]]

    assert [found["owner"] for found in steps[1]["admitted"]] == [f"Job/{expected}"]


@pytest.mark.parametrize(
    ("recovery", "expected"), [("1m", ["Job/work"]), ("1h", [])], ids=["too late", "there is time"]
)
def test_work_that_loses_a_pod_has_time_to_recover(
    mooring: Call, write: Call, recovery: str, expected: list[str]
) -> None:
    first = write(NODE + queue("q", 8) + job("work", "q"), "first.yaml")
    gone = "apiVersion: v1\nkind: Node\nmetadata: {name: n, deletionTimestamp: '1970-01-01T00:01:00Z'}"
    later = write("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}", "later.yaml")
    settings = write(config(f"waitForPodsReady: {{timeout: 2h, recoveryTimeout: {recovery}}}"), "c.yaml")

    story = ("-f", first, "--then", later, "--then", write(gone, "then.yaml"), "--then", f"30m:{later}")
    steps = [step["result"] for step in told(mooring, *story, "--config", settings)["steps"]]

    assert [found["owner"] for step in steps for found in step["suspended"]] == expected


RACKS = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: dc}
spec: {levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
spec: {topologyName: dc}""" + "".join(
    f"""
---
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{rack: {name}}}}}
status: {{allocatable: {{cpu: 4, memory: 64Gi, pods: 20}}}}"""
    for name in ("a", "b")
)


@pytest.mark.parametrize(("gate", "expected"), [("false", [2, 4]), ("true", [3, 3])], ids=["filled", "balanced"])
def test_pods_can_be_spread_evenly_over_racks(mooring: Call, write: Call, gate: str, expected: list[int]) -> None:
    request = "template: {metadata: {annotations: {kueue.x-k8s.io/podset-preferred-topology: rack}}, spec"
    wide = job("wide", "q", pods=6).replace("template: {spec", request)
    settings = write(config(f"featureGates: {{TASBalancedPlacement: {gate}}}"), "c.yaml")

    found = told(mooring, "-f", write(RACKS + queue("q", 8) + wide), "--config", settings)

    assert sorted(Counter(placement["node"] for placement in found["placements"]).values()) == expected
