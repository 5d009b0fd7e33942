"""Preemption in queues of Volcano's and by ElasticQuotas: more important jobs take from their own queue alone."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from queue_manifests import NODE, told

Call = Callable[..., Any]

QUEUES = """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: qa}
spec: {reclaimable: false}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: qb}
spec: {reclaimable: false}"""


def pods(name: str, queue: str, count: int, spec: str = "", namespace: str = "default") -> str:
    """So many pods of one GPU each; without a queue they are nobody's."""
    named = f"scheduling.volcano.sh/queue-name: {queue}, " if queue else ""
    return f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: "{name}-{{i}}"
  namespace: {namespace}
  annotations: {{{named}mooring.dev/replicas: "{count}"}}
spec:
  containers: [{{name: w, image: x, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]{spec}"""


def running(name: str, queue: str, count: int, namespace: str = "default") -> str:
    return pods(name, queue, count, "\n  nodeName: n", namespace)


def evicted(mooring: Call, *arguments: Any) -> Counter[str]:
    return Counter(found["pod"][0] for found in told(mooring, *arguments)["evicted"])


URGENT = "\n  priority: 100"


@pytest.mark.parametrize(
    ("queue", "expected"), [("qa", {"a": 2}), ("qb", {})], ids=["from its own queue", "and from no other"]
)
def test_a_more_important_pod_takes_from_its_own_queue_alone(
    mooring: Call, write: Call, queue: str, expected: dict[str, int]
) -> None:
    there = running("a", "qa", 4) + running("other", "", 4)

    file = write(NODE + QUEUES + there + pods("urgent", queue, 2, URGENT))

    assert evicted(mooring, "-f", file) == expected


def test_pods_of_no_queue_preempt_whoever_is_less_important(mooring: Call, write: Call) -> None:
    file = write(NODE + QUEUES + running("a", "qa", 8) + pods("urgent", "", 2, URGENT))

    assert evicted(mooring, "-f", file) == {"a": 2}


@pytest.mark.parametrize(
    ("actions", "plugins", "expected"),
    [
        ("allocate, preempt", "[{name: priority}, {name: gang}]", {"a": 2}),
        ("allocate, gangpreempt", "[{name: priority}, {name: gang}]", {"a": 2}),
        ("allocate, reclaim", "[{name: priority}, {name: gang}]", {}),
        ("allocate, preempt", "[{name: gang}]", {}),
    ],
    ids=["named", "with gangs", "not named", "without priorities"],
)
def test_preempt_runs_where_volcanos_configuration_names_it(
    mooring: Call, write: Call, actions: str, plugins: str, expected: dict[str, int]
) -> None:
    file = write(NODE + QUEUES + running("a", "qa", 8) + pods("urgent", "qa", 2, URGENT))
    conf = write(f'actions: "{actions}"\ntiers:\n- plugins: {plugins}\n', "volcano-scheduler.conf")

    assert evicted(mooring, "-f", file, "--config", conf) == expected


def test_a_queue_that_holds_its_share_still_puts_its_important_jobs_first(mooring: Call, write: Call) -> None:
    both = running("a", "qa", 4) + running("b", "qb", 4)

    file = write(NODE + QUEUES + both + pods("urgent", "qa", 1, URGENT))

    assert evicted(mooring, "-f", file) == {"a": 1}


def test_who_never_preempts_waits(mooring: Call, write: Call) -> None:
    never = URGENT + "\n  preemptionPolicy: Never"
    preempts = write(NODE + QUEUES + running("a", "qa", 8) + pods("urgent", "qa", 1, never), "preempts.yaml")
    reclaims = write(NODE + QUEUES.replace("false", "true") + running("a", "qa", 8) + pods("urgent", "qb", 1, never))

    assert evicted(mooring, "-f", preempts) == {}
    assert evicted(mooring, "-f", reclaims) == {}


def test_what_the_cluster_itself_needs_is_nobodys_victim(mooring: Call, write: Call) -> None:
    needed = running("kube", "qa", 8, "kube-system")
    preempts = write(NODE + QUEUES + needed + pods("urgent", "qa", 1, URGENT), "preempts.yaml")
    reclaims = write(NODE + QUEUES.replace("false", "true") + needed + pods("urgent", "qb", 1))

    assert evicted(mooring, "-f", preempts) == {}
    assert evicted(mooring, "-f", reclaims) == {}


def test_members_that_a_gang_can_do_without_take_from_nobody(mooring: Call, write: Call) -> None:
    job = """
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: urgent}}
spec:
  queue: qa
  minAvailable: {minimum}
  tasks:
  - name: w
    replicas: 4
    template:
      spec: {{priority: 100, containers: [{{name: w, image: x, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}"""
    there = NODE + QUEUES + running("a", "qa", 6)

    grows = write(there + job.format(minimum=2), "grows.yaml")
    whole = write(there + job.format(minimum=4), "whole.yaml")

    assert evicted(mooring, "-f", grows) == {}
    assert evicted(mooring, "-f", whole) == {"a": 2}


def quota(name: str, group: str) -> str:
    return f"""
---
apiVersion: {group}/v1alpha1
kind: ElasticQuota
metadata: {{name: {name}, namespace: {name}}}
spec: {{min: {{nvidia.com/gpu: 4}}, max: {{nvidia.com/gpu: 8}}}}"""


@pytest.mark.parametrize(
    ("group", "others"),
    [("scheduling.x-k8s.io", {}), ("scheduling.sigs.k8s.io", {"o": 1})],
    ids=["as CapacityScheduling", "Koordinator, which then preempts as kube-scheduler does"],
)
def test_a_more_important_pod_takes_from_its_own_quota(
    mooring: Call, write: Call, group: str, others: dict[str, int]
) -> None:
    quotas = NODE + quota("qa", group) + quota("qb", group)
    running_in_qa = running("a", "", 4, "qa")

    own = write(quotas + running_in_qa + running("b", "", 4, "qb") + pods("urgent", "", 1, URGENT, "qa"), "own.yaml")
    other = write(quotas + running("other", "", 8, "free") + pods("urgent", "", 1, URGENT, "qa"), "other.yaml")

    assert evicted(mooring, "-f", own) == {"a": 1}
    assert evicted(mooring, "-f", other) == others


def test_who_waits_for_its_queues_share_is_sent_to_that_queue(mooring: Call, write: Call) -> None:
    file = write(NODE + QUEUES + running("a", "qa", 8) + pods("more", "qb", 1))

    outcome = mooring("explain", "more-0", "-q", "-f", file)

    hint = "mooring queues --queue qb shows what the queue holds and deserves"
    assert outcome.out.splitlines()[1] == hint
    shown = mooring(*hint.partition(" shows")[0].removeprefix("mooring ").split(), "-q", "-f", file)
    assert shown.out.startswith("1 Volcano queue\n")
    assert "not for want of a node" not in outcome.out


def test_what_would_make_a_pod_of_a_queue_fit_is_said_where_nodes_are_in_its_way(mooring: Call, write: Call) -> None:
    picky = pods("picky", "qa", 1, "\n  nodeSelector: {kind: fast}")

    outcome = mooring("explain", "picky-0", "-q", "-f", write(NODE + QUEUES + picky))

    reason = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    assert outcome.out.splitlines()[0] == f"pod default/picky-0 waits: {reason}"
    assert "WHAT WOULD MAKE IT FIT\n  label the node so that kind In [fast] holds: opens 1 node (n)" in outcome.out
    assert "preemption" not in outcome.out
