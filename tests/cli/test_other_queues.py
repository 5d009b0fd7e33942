"""Queues of KAI and ElasticQuotas as people try them: manifests in, placements out."""

from collections import Counter
from typing import Any

import pytest
from queue_manifests import NODE, Call, placed, shown_queues, told


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


def kai_running(name: str, queue: str, count: int, labels: str = "") -> str:
    since = '\nstatus: {phase: Running, startTime: "2026-03-02T11:50:00Z"}\nspec:'
    return kai_pods(name, queue, count, labels, "\n  nodeName: n").replace("\nspec:", since)


@pytest.mark.parametrize(
    ("queue", "runtime", "expected"),
    [("qa", "", {"a": 4}), ("qb", "", {"c": 4}), ("qa", "1h", {}), ("qa", "5m", {"a": 4})],
    ids=["in its own queue", "in no other", "not for an hour yet", "after five minutes"],
)
def test_a_more_important_job_preempts_in_its_own_queue(
    mooring: Call, write: Call, queue: str, runtime: str, expected: dict[str, int]
) -> None:
    gpu = "{quota: 4, limit: -1, overQuotaWeight: 1}"
    queues = kai_queue("qa", gpu, f", preemptMinRuntime: {runtime}" if runtime else "") + kai_queue("qb", gpu)
    urgent = kai_pods("b", queue, 4, ", priorityClassName: build-preemptible")
    file = write(NODE + queues + kai_running("a", "qa", 4) + kai_running("c", "qb", 4) + urgent)

    found = told(mooring, "-f", file, "--now", "2026-03-02T12:00:00Z")

    assert Counter(pod["pod"][0] for pod in found.get("evicted", ())) == expected


def test_whoever_has_not_run_long_enough_gives_back_when_it_has(mooring: Call, write: Call) -> None:
    queues = kai_queue("qa", "{limit: -1, overQuotaWeight: 1}", ", reclaimMinRuntime: 15m")
    queues += kai_queue("qb", "{quota: 4, limit: -1}")
    file = write(NODE + queues + kai_running("a", "qa", 8) + kai_pods("b", "qb", 4))
    later = write("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}", "later.yaml")

    steps = told(mooring, "-f", file, "--now", "2026-03-02T12:00:00Z", "--then", f"4m:{later}", "--then", str(later))

    assert [len(step["result"].get("evicted", ())) for step in steps["steps"]] == [0, 0, 4]


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


def test_queues_shows_what_is_deserved_with_the_past(mooring: Call, write: Call) -> None:
    gpu = "{limit: -1, overQuotaWeight: 1}"
    first = write(NODE + kai_queue("qa", gpu) + kai_queue("qb", gpu) + kai_pods("a-old", "qa", 8), "1.yaml")
    ended = kai_pods("a-old", "qa", 8).replace("\nspec:", "\nstatus: {phase: Succeeded}\nspec:")
    then = write(ended + kai_pods("a-new", "qa", 8) + kai_pods("b", "qb", 8), "2.yaml")
    story = ("-f", first, "--then", f"2h:{then}", "--as", "kai-scheduler")
    past = write(SHARD % "usageDBConfig: {usageParams: {halfLifePeriod: 1h}}", "shard.yaml")

    def deserved(*more: Any) -> list[dict[str, int]]:
        return [deserved for _, _, _, deserved, *_ in shown_queues(mooring, *story, *more)]

    assert deserved() == [{"nvidia.com/gpu": 4}, {"nvidia.com/gpu": 4}]
    assert deserved("--config", past) == [{}, {"nvidia.com/gpu": 8}]


SHARD = "apiVersion: kai.scheduler/v1\nkind: SchedulingShard\nmetadata: {name: default}\nspec: {%s}\n"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("usageDBConfig: {clientType: prometheus, usageParams: {halfLifePeriod: 1h}}", {"b": 8}),
        ("kValue: 0, usageDBConfig: {usageParams: {halfLifePeriod: 1h}}", {"a": 4, "b": 4}),
        ("kValue: 1", {"a": 4, "b": 4}),
    ],
)
def test_a_shard_says_how_much_the_past_counts(mooring: Call, write: Call, spec: str, expected: dict[str, int]) -> None:
    gpu = "{limit: -1, overQuotaWeight: 1}"
    first = write(NODE + kai_queue("qa", gpu) + kai_queue("qb", gpu) + kai_pods("a-old", "qa", 8), "1.yaml")
    ended = kai_pods("a-old", "qa", 8).replace("\nspec:", "\nstatus: {phase: Succeeded}\nspec:")
    then = write(ended + kai_pods("a-new", "qa", 8) + kai_pods("b", "qb", 8), "2.yaml")

    steps = told(mooring, "-f", first, "--then", f"2h:{then}", "--config", write(SHARD % spec, "shard.yaml"))["steps"]

    assert Counter(found["pod"][0] for found in steps[-1]["result"]["placements"]) == expected


@pytest.mark.parametrize(
    ("runtimes", "expected"),
    [("", {"a": 4, "c": 2}), ("preemptMinRuntime: 1h", {"a": 4}), ("reclaimMinRuntime: 1h", {"c": 2})],
    ids=["none", "against preemption", "against reclaim"],
)
def test_a_shards_minimum_runtimes_count_where_queues_say_none(
    mooring: Call, write: Call, runtimes: str, expected: dict[str, int]
) -> None:
    """b wants its quota of 4 back from qa, and the urgent d the place of two of c, in its own queue."""
    queues = kai_queue("qa", "{limit: -1, overQuotaWeight: 1}") + kai_queue("qb", "{quota: 4, limit: -1}")
    queues += kai_queue("qc", "{quota: 2, limit: 2}")
    urgent = kai_pods("d", "qc", 2, ", priorityClassName: build-preemptible")
    work = kai_running("a", "qa", 6) + kai_running("c", "qc", 2) + kai_pods("b", "qb", 4) + urgent
    config = write(SHARD % f"minRuntime: {{{runtimes}}}", "shard.yaml")

    found = told(mooring, "-f", write(NODE + queues + work), "--now", "2026-03-02T12:00:00Z", "--config", config)

    assert Counter(pod["pod"][0] for pod in found.get("evicted", ())) == expected


def test_what_of_a_shard_is_not_used_is_said(mooring: Call, write: Call) -> None:
    config = write(SHARD % "placementStrategy: {gpu: spread}, usageDBConfig: {clientType: prometheus}", "shard.yaml")

    outcome = mooring("schedule", "-f", write(NODE), "--config", config)

    unused = "placementStrategy, usageDBConfig without halfLifePeriod"
    assert outcome.err == f"SchedulingShard: not used here: {unused}\n"
    wrong = mooring("schedule", "-f", write(NODE), "--config", write(SHARD % "kValue: -1", "wrong.yaml"))
    assert (wrong.code, "spec.kValue: expected a number of at least 0, found -1" in wrong.err) == (2, True)


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


@pytest.mark.parametrize(("lends", "expected"), [("true", 8), ("false", 5)])
def test_a_quota_that_does_not_lend_keeps_its_minimum(mooring: Call, write: Call, lends: str, expected: int) -> None:
    label = f', labels: {{quota.scheduling.koordinator.sh/allow-lent-resource: "{lends}"}}'
    quotas = quota("a", 0, 8, group=KOORDINATOR) + quota("b", 3, 8, label, KOORDINATOR)

    assert placed(mooring, "-f", write(NODE + quotas + team_pods("a", 8))) == {"a": expected}


def test_trees_of_quotas_have_totals_of_their_own(mooring: Call, write: Call) -> None:
    prefix = "quota.scheduling.koordinator.sh"
    root = f', labels: {{{prefix}/tree-id: t, {prefix}/is-root: "true"}}'
    root += f", annotations: {{{prefix}/total-resource: '{{\"nvidia.com/gpu\": 3}}'}}"
    inside = f", labels: {{{prefix}/tree-id: t}}"
    quotas = quota("r", 0, 8, root, KOORDINATOR) + quota("a", 0, 8, inside, KOORDINATOR)
    one_tree = quota("a", 0, 8, group=KOORDINATOR) + quota("b", 0, 8, group=KOORDINATOR)
    two_trees = quotas + quota("b", 0, 8, group=KOORDINATOR)
    work = team_pods("a", 8) + team_pods("b", 8)

    assert placed(mooring, "-f", write(NODE + one_tree + work, "one.yaml")) == {"a": 4, "b": 4}
    assert placed(mooring, "-f", write(NODE + two_trees + work, "two.yaml")) == {"a": 3, "b": 5}


def test_pods_that_cannot_be_preempted_stay_within_the_minimum(mooring: Call, write: Call) -> None:
    quotas = quota("a", 2, 8, group=KOORDINATOR) + quota("b", 2, 8, group=KOORDINATOR)
    firm = team_pods("a", 8, labels=', quota.scheduling.koordinator.sh/preemptible: "false"')

    assert placed(mooring, "-f", write(NODE + quotas + team_pods("a", 8), "any.yaml")) == {"a": 8}
    assert placed(mooring, "-f", write(NODE + quotas + firm, "firm.yaml")) == {"a": 2}


def test_a_quota_counts_for_further_namespaces(mooring: Call, write: Call) -> None:
    more = ", annotations: {quota.scheduling.koordinator.sh/namespaces: '[\"x\"]'}"

    assert placed(mooring, "-f", write(NODE + quota("a", 0, 3, more, KOORDINATOR) + team_pods("x", 8))) == {"x": 3}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (
            quota("a", 1, 2, ", annotations: {quota.scheduling.koordinator.sh/total-resource: much}", KOORDINATOR),
            "metadata.annotations.quota.scheduling.koordinator.sh/total-resource",
        ),
        (kai_queue("a", "{limit: -2}"), "spec.resources.gpu.limit"),
        (kai_queue("a", "{}", ", parentQueue: nobody"), "spec.parentQueue"),
        (quota("a", 4, 2), "spec.min.nvidia.com/gpu"),
    ],
)
def test_queues_that_make_no_sense_are_refused(mooring: Call, write: Call, document: str, field: str) -> None:
    outcome = mooring("schedule", "-f", write(NODE + document))

    assert outcome.code == 2
    assert f"{field}: expected" in outcome.err


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
