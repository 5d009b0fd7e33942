"""Queues of KAI and ElasticQuotas as people try them: manifests in, placements out."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 64, memory: 256Gi, pods: 110, nvidia.com/gpu: 8}}"""


def kai_queue(name: str, gpu: str, more: str = "") -> str:
    free = "{quota: -1, limit: -1, overQuotaWeight: 1}"
    return f"""
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {{name: {name}}}
spec: {{resources: {{gpu: {gpu}, cpu: {free}, memory: {free}}}{more}}}"""


def kai_pods(name: str, queue: str, count: int, labels: str = "", spec: str = "", annotations: str = "") -> str:
    """So many pods of one GPU each, each by itself."""
    return f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: "{name}-{{i}}"
  labels: {{kai.scheduler/queue: {queue}{labels}}}
  annotations: {{mooring.dev/replicas: "{count}"{annotations}}}
spec:
  schedulerName: kai-scheduler{spec}
  containers: [{{name: w, image: x, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]"""


def told(mooring: Call, *arguments: Any) -> dict[str, Any]:
    is_kai = "kai-scheduler" in Path(arguments[1]).read_text()
    outcome = mooring("schedule", "-q", "-o", "json", *(("--as", "kai-scheduler") if is_kai else ()), *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def placed(mooring: Call, *arguments: Any) -> Counter[str]:
    """How many pods were placed, by the first letter of their names."""
    return Counter(found["pod"][0] for found in told(mooring, *arguments)["placements"])


@pytest.mark.parametrize(
    ("gpu_a", "gpu_b", "more_a", "expected"),
    [
        ("{quota: 6, limit: -1}", "{quota: 2, limit: -1}", "", {"a": 6, "b": 2}),
        ("{limit: -1, overQuotaWeight: 3}", "{limit: -1, overQuotaWeight: 1}", "", {"a": 6, "b": 2}),
        ("{limit: 3, overQuotaWeight: 3}", "{limit: -1, overQuotaWeight: 1}", "", {"a": 3, "b": 5}),
        ("{limit: -1, overQuotaWeight: 1}", "{limit: -1, overQuotaWeight: 1}", ", priority: 200", {"a": 8}),
        ("{quota: 4}", "{limit: -1, overQuotaWeight: 1}", "", {"b": 8}),
    ],
    ids=["quota", "weight", "limit", "priority", "a limit that is not said is 0"],
)
def test_kais_queues_share_by_quota_weight_limit_and_priority(
    mooring: Call, write: Call, gpu_a: str, gpu_b: str, more_a: str, expected: dict[str, int]
) -> None:
    queues = kai_queue("qa", gpu_a, more_a) + kai_queue("qb", gpu_b)
    file = write(NODE + queues + kai_pods("a", "qa", 8) + kai_pods("b", "qb", 8))

    assert placed(mooring, "-f", file) == expected


def test_a_child_has_no_more_than_its_parents_limit(mooring: Call, write: Call) -> None:
    parent = kai_queue("p", "{quota: 2, limit: 2}")
    child = kai_queue("c", "{quota: 8, limit: -1}", ", parentQueue: p")
    file = write(NODE + parent + child + kai_pods("a", "c", 8))

    assert placed(mooring, "-f", file) == {"a": 2}


def test_jobs_that_cannot_be_preempted_stay_within_the_quota(mooring: Call, write: Call) -> None:
    queue = kai_queue("qa", "{quota: 2, limit: -1, overQuotaWeight: 1}")
    firm = write(NODE + queue + kai_pods("a", "qa", 8, ", priorityClassName: build"), "firm.yaml")
    loose = write(NODE + queue + kai_pods("a", "qa", 8, ", priorityClassName: train"), "loose.yaml")

    assert placed(mooring, "-f", firm) == {"a": 2}
    assert placed(mooring, "-f", loose) == {"a": 8}


@pytest.mark.parametrize(("runtime", "expected"), [("", 4), (", reclaimMinRuntime: 1h", 0)])
def test_a_queue_reclaims_its_quota_from_those_that_ran_long_enough(
    mooring: Call, write: Call, runtime: str, expected: int
) -> None:
    queues = kai_queue("qa", "{limit: -1, overQuotaWeight: 1}", runtime) + kai_queue("qb", "{quota: 4, limit: -1}")
    running = kai_pods("a", "qa", 8, spec="\n  nodeName: n").replace(
        "\nspec:", '\nstatus: {phase: Running, startTime: "2026-03-02T11:50:00Z"}\nspec:'
    )
    file = write(NODE + queues + running + kai_pods("b", "qb", 4))

    found = told(mooring, "-f", file, "--now", "2026-03-02T12:00:00Z")

    assert len(found.get("evicted", ())) == expected


def test_past_use_counts_in_kais_shares_if_it_is_to(mooring: Call, write: Call) -> None:
    gpu = "{limit: -1, overQuotaWeight: 1}"
    queues = kai_queue("qa", gpu) + kai_queue("qb", gpu)
    first = write(NODE + queues + kai_pods("a-old", "qa", 8), "1.yaml")
    ended = kai_pods("a-old", "qa", 8).replace("\nspec:", "\nstatus: {phase: Succeeded}\nspec:")
    then = write(ended + kai_pods("a-new", "qa", 8) + kai_pods("b", "qb", 8), "2.yaml")
    policy = "apiVersion: config.mooring.dev/v1alpha1\nkind: TenantPolicy\nusageHalfLifeSeconds: 3600\n"

    def last(*arguments: Any) -> Counter[str]:
        steps = told(mooring, "-f", first, "--then", f"2h:{then}", *arguments)["steps"]
        return Counter(found["pod"][0] for found in steps[-1]["result"]["placements"])

    assert last() == {"a": 4, "b": 4}
    assert last("--config", write(policy, "policy.yaml")) == {"b": 8}


def quota(name: str, least: int, most: int, more: str = "", group: str = "scheduling.x-k8s.io") -> str:
    return f"""
---
apiVersion: {group}/v1alpha1
kind: ElasticQuota
metadata: {{name: {name}, namespace: {name}{more}}}
spec: {{min: {{nvidia.com/gpu: {least}}}, max: {{nvidia.com/gpu: {most}}}}}"""


def team_pods(name: str, count: int, spec: str = "", labels: str = "") -> str:
    return f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: "{name}-{{i}}"
  namespace: {name}
  labels: {{team: {name}{labels}}}
  annotations: {{mooring.dev/replicas: "{count}"}}
spec:
  containers: [{{name: w, image: x, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]{spec}"""


def test_an_elastic_quota_borrows_what_others_do_not_use_up_to_its_max(mooring: Call, write: Call) -> None:
    alone = write(NODE + quota("a", 2, 5) + quota("b", 4, 8) + team_pods("a", 8), "alone.yaml")
    both = write(NODE + quota("a", 2, 5) + quota("b", 4, 8) + team_pods("a", 8) + team_pods("b", 8), "both.yaml")

    assert placed(mooring, "-f", alone) == {"a": 5}
    # Together they hold the sum of their minimums, though the node has two GPUs more.
    assert placed(mooring, "-f", both) == {"a": 2, "b": 4}


def test_what_an_elastic_quota_borrowed_goes_back(mooring: Call, write: Call) -> None:
    running = team_pods("a", 5, "\n  nodeName: n")
    file = write(NODE + quota("a", 2, 8) + quota("b", 4, 8) + running + team_pods("b", 4))

    assert len(told(mooring, "-f", file)["evicted"]) == 3


KOORDINATOR = "scheduling.sigs.k8s.io"


def test_koordinators_runtime_quota_is_the_minimum_and_a_part_of_the_rest(mooring: Call, write: Call) -> None:
    weighted = ", annotations: {{quota.scheduling.koordinator.sh/shared-weight: '{{\"nvidia.com/gpu\": {}}}'}}"
    plain = quota("a", 2, 8, group=KOORDINATOR) + quota("b", 2, 8, group=KOORDINATOR)
    uneven = quota("a", 2, 8, weighted.format(3), KOORDINATOR) + quota("b", 2, 8, weighted.format(1), KOORDINATOR)
    work = team_pods("a", 8) + team_pods("b", 8)

    assert placed(mooring, "-f", write(NODE + plain + work, "plain.yaml")) == {"a": 4, "b": 4}
    assert placed(mooring, "-f", write(NODE + uneven + work, "uneven.yaml")) == {"a": 5, "b": 3}


def test_koordinators_quotas_form_a_tree_and_pods_name_theirs(mooring: Call, write: Call) -> None:
    below = ", labels: {quota.scheduling.koordinator.sh/parent: p}"
    tree = quota("p", 3, 3, group=KOORDINATOR) + quota("c", 0, 8, below, KOORDINATOR)
    named = team_pods("x", 8, labels=", quota.scheduling.koordinator.sh/name: c")

    assert placed(mooring, "-f", write(NODE + tree + named)) == {"x": 3}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (kai_queue("a", "{limit: -2}"), "spec.resources.gpu.limit"),
        (kai_queue("a", "{}", ", parentQueue: nobody"), "spec.parentQueue"),
        (quota("a", 4, 2), "spec.min.nvidia.com/gpu"),
    ],
)
def test_queues_that_make_no_sense_are_refused(mooring: Call, write: Call, document: str, field: str) -> None:
    outcome = mooring("schedule", "-f", write(NODE + document))

    assert outcome.code == 2
    assert f"{field}: expected" in outcome.err


YUNIKORN = """
partitions:
- name: default
  placementrules: [{name: provided}, {name: tag, value: namespace}]
  queues:
  - name: root
    queues:
    - {name: a, resources: %s}
    - {name: b, resources: %s}
    - name: p
      resources: {max: {nvidia.com/gpu: 3}}
      queues: [{name: c}]
"""


def yunikorn_pods(name: str, queue: str, count: int, spec: str = "", namespace: str = "default") -> str:
    named = f", queue: {queue}" if queue else ""
    return f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: "{name}-{{i}}"
  namespace: {namespace}
  labels: {{applicationId: app-{name}{named}}}
  annotations: {{mooring.dev/replicas: "{count}"}}
spec:
  containers: [{{name: w, image: x, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]{spec}"""


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("{guaranteed: {nvidia.com/gpu: 6}}", "{guaranteed: {nvidia.com/gpu: 2}}", {"a": 6, "b": 2}),
        ("{max: {nvidia.com/gpu: 2}}", "{}", {"a": 2, "b": 6}),
        ("{}", "{}", {"a": 4, "b": 4}),
    ],
    ids=["guaranteed", "max", "nothing"],
)
def test_yunikorns_queues_share_by_guarantee_and_stay_within_max(
    mooring: Call, write: Call, one: str, other: str, expected: dict[str, int]
) -> None:
    file = write(NODE + yunikorn_pods("a", "root.a", 8) + yunikorn_pods("b", "root.b", 8))
    queues = write(YUNIKORN % (one, other), "queues.yaml")
    in_map = "kind: ConfigMap\nmetadata: {name: yunikorn-configs}\ndata:\n  queues.yaml: |"
    wrapped = write(in_map + (YUNIKORN % (one, other)).replace("\n", "\n    "), "map.yaml")

    assert placed(mooring, "-f", file, "--config", queues) == expected
    assert placed(mooring, "-f", file, "--config", wrapped) == expected


def test_yunikorns_parents_limit_their_children_and_rules_find_queues(mooring: Call, write: Call) -> None:
    queues = write(YUNIKORN % ("{max: {nvidia.com/gpu: 1}}", "{}"), "queues.yaml")
    below = write(NODE + yunikorn_pods("c", "p.c", 8), "below.yaml")
    tagged = write(NODE + yunikorn_pods("t", "", 8, namespace="a"), "tagged.yaml")

    assert placed(mooring, "-f", below, "--config", queues) == {"c": 3}
    assert placed(mooring, "-f", tagged, "--config", queues) == {"t": 1}


def test_what_is_guaranteed_comes_back_from_those_beyond_theirs(mooring: Call, write: Call) -> None:
    running = yunikorn_pods("a", "root.a", 8, "\n  nodeName: n")
    file = write(NODE + running + yunikorn_pods("b", "root.b", 4))
    queues = write(YUNIKORN % ("{}", "{guaranteed: {nvidia.com/gpu: 3}}"), "queues.yaml")

    assert len(told(mooring, "-f", file, "--config", queues)["evicted"]) == 3


def test_what_of_queues_yaml_is_not_used_is_said(mooring: Call, write: Call) -> None:
    text = (YUNIKORN % ("{}", "{}")).replace("{name: c}", "{name: c, submitacl: x, properties: {priority.offset: 1}}")
    outcome = mooring("schedule", "-f", write(NODE), "--config", write(text, "queues.yaml"))

    assert outcome.err.splitlines()[-1] == "queues.yaml: not used here: priority.offset, submitacl"


def test_a_yunikorn_queue_runs_no_more_applications_than_it_may(mooring: Call, write: Call) -> None:
    apps = "".join(yunikorn_pods(name, "root.a", 2) for name in ("x", "y", "z"))
    queues = YUNIKORN % ("{}", "{}")
    limited = queues.replace("{name: a,", "{name: a, maxapplications: 2,")

    assert placed(mooring, "-f", write(NODE + apps), "--config", write(queues, "q.yaml")) == {"x": 2, "y": 2, "z": 2}
    assert placed(mooring, "-f", write(NODE + apps), "--config", write(limited, "l.yaml")) == {"x": 2, "y": 2}


def test_applications_have_their_turns_by_age_or_by_what_they_hold(mooring: Call, write: Call) -> None:
    apps = "".join(yunikorn_pods(name, "root.a", 8) for name in ("x", "y"))
    queues = YUNIKORN % ("{}", "{}")
    fair = queues.replace("{name: a,", "{name: a, properties: {application.sort.policy: fair},")

    assert placed(mooring, "-f", write(NODE + apps), "--config", write(queues, "q.yaml")) == {"x": 8}
    assert placed(mooring, "-f", write(NODE + apps), "--config", write(fair, "f.yaml")) == {"x": 4, "y": 4}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{name: provided, create: true}", "queues.yaml: not used here: create of placement rules"),
        (
            "{name: tag, value: namespace, filter: {type: allow}, parent: {name: fixed, value: root, create: true}}",
            "queues.yaml: not used here: create of placement rules, filter of placement rules",
        ),
        ("{name: provided, create: false}", ""),
    ],
)
def test_placement_rules_that_would_create_queues_are_said_not_to(
    mooring: Call, write: Call, rule: str, expected: str
) -> None:
    text = (YUNIKORN % ("{}", "{}")).replace("{name: provided}", rule)
    outcome = mooring("schedule", "-f", write(NODE), "--config", write(text, "queues.yaml"))

    assert outcome.err.strip() == expected


@pytest.mark.parametrize("command", [("schedule",), ("queues",)])
def test_a_minimum_runtime_against_preemption_is_said_not_to_be_used(
    mooring: Call, write: Call, command: tuple[str, ...]
) -> None:
    queues = kai_queue("a", "{quota: 1}", ", preemptMinRuntime: 5m") + kai_queue("b", "{quota: 1}")
    outcome = mooring(*command, "-f", write(NODE + queues))

    assert outcome.err.strip() == "Queue.scheduling.run.ai: not used here: preemptMinRuntime"


KAI_TABLE = """\
3 KAI queues

KAI QUEUE  SHARE  OF THE CLUSTER            RUNNING  WAITING
p              1  100.0% of nvidia.com/gpu        8        8
  a            1  75.0% of nvidia.com/gpu         6        2
  b            1  25.0% of nvidia.com/gpu         2        6

KAI QUEUE  RESOURCE        DESERVED  ALLOCATED  DEMAND  CAPABILITY
p          nvidia.com/gpu         8          8      16           -
  a        nvidia.com/gpu         6          6       8           -
  b        nvidia.com/gpu         2          2       8           3

WAITING in a
2 pods: the cluster has 8 nvidia.com/gpu, 8 of it held; 1 more asked for

WAITING in b
6 pods: the cluster has 8 nvidia.com/gpu, 8 of it held; 1 more asked for
"""


def test_queues_shows_what_kais_queues_deserve_and_hold(mooring: Call, write: Call) -> None:
    queues = kai_queue("p", "{quota: -1, limit: -1}")
    queues += kai_queue("a", "{quota: 6, limit: -1}", ", parentQueue: p")
    queues += kai_queue("b", "{quota: 2, limit: 3}", ", parentQueue: p")
    file = write(NODE + queues + kai_pods("a", "a", 8) + kai_pods("b", "b", 8))

    assert mooring("queues", "-f", file, "--as", "kai-scheduler").out == KAI_TABLE


def shown_queues(mooring: Call, *arguments: Any) -> list[Any]:
    outcome = mooring("queues", "-q", "-o", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    names = ("kind", "name", "parent", "deserved", "allocated", "capability", "runningPods", "waitingPods")
    return [tuple(queue[name] for name in names) for queue in json.loads(outcome.out)["sharedQueues"]]


def test_queues_shows_what_yunikorns_queues_deserve_and_hold(mooring: Call, write: Call) -> None:
    file = write(NODE + yunikorn_pods("a", "root.a", 8) + yunikorn_pods("c", "root.p.c", 8))
    config = write(YUNIKORN % ("{guaranteed: {nvidia.com/gpu: 6}}", "{}"), "queues.yaml")
    gpu = "nvidia.com/gpu"

    found = shown_queues(mooring, "-f", file, "--config", config)

    assert found == [
        ("YuniKorn queue", "root.a", "", {gpu: 6}, {gpu: 6}, {}, 6, 2),
        ("YuniKorn queue", "root.b", "", {}, {}, {}, 0, 0),
        ("YuniKorn queue", "root.p", "", {}, {gpu: 2}, {gpu: 3}, 2, 6),
        ("YuniKorn queue", "root.p.c", "root.p", {}, {gpu: 2}, {}, 2, 6),
    ]
    assert shown_queues(mooring, "-f", file, "--config", config, "--queue", "root.a") == found[:1]


@pytest.mark.parametrize(
    ("group", "held"),
    [("scheduling.x-k8s.io", [(2, 2), (4, 4)]), (KOORDINATOR, [(3, 3), (5, 5)])],
    ids=["the minimum", "the runtime quota"],
)
def test_queues_shows_what_elastic_quotas_deserve_and_hold(
    mooring: Call, write: Call, group: str, held: list[tuple[int, int]]
) -> None:
    quotas = quota("a", 2, 8, group=group) + quota("b", 4, 8, group=group)
    gpu = "nvidia.com/gpu"

    assert shown_queues(mooring, "-f", write(NODE + quotas + team_pods("a", 8) + team_pods("b", 8))) == [
        ("ElasticQuota", f"{name}/{name}", "", {gpu: deserved}, {gpu: holds}, {gpu: 8}, holds, 8 - holds)
        for name, (deserved, holds) in zip("ab", held, strict=True)
    ]
