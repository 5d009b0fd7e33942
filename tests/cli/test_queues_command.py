"""`mooring queues`: quotas, shares, who waits for whom; tables for people, the same as data."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Call = Callable[..., Any]

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: "gpu-{i}", annotations: {mooring.dev/replicas: "4"}}
status: {allocatable: {cpu: "64", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: science}
spec:
  parentName: company
  fairSharing: {weight: "2"}
"""


def queue(name: str, gpus: int, *, cohort: str = "", limits: str = "", spec: str = "", flavor: str = "h100") -> str:
    return f"""
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  namespaceSelector: {{}}
  {f"cohortName: {cohort}" if cohort else ""}
  {spec}
  resourceGroups:
    - coveredResources: [nvidia.com/gpu]
      flavors: [{{name: {flavor}, resources: [{{name: nvidia.com/gpu, nominalQuota: {gpus}{limits}}}]}}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: team}}
spec: {{clusterQueue: {name}}}
"""


def job(name: str, queue: str, gpus: int, *, pods: int = 1, annotations: str = "", labels: str = "") -> str:
    return f"""
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: team
  labels: {{kueue.x-k8s.io/queue-name: {queue}{labels}}}
  annotations: {{{annotations}}}
spec:
  parallelism: {pods}
  completions: {pods}
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: x, resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}}}}}]
"""


COMPANY = (
    CLUSTER
    + queue("platform", 16, cohort="company", limits=", borrowingLimit: 0, lendingLimit: 12")
    + queue("vision", 4, cohort="science")
    + queue("language", 4, cohort="science", limits=", borrowingLimit: 8")
    + queue("alone", 8)
    + job("serve", "platform", 2)
    + job("sweep", "vision", 1, pods=6)
    + job("train", "language", 8)
    + job("wide", "language", 8)
    + job("huge", "alone", 9)
)
"""Language borrows 4 and vision 2; platform may lend 12 of its 16, of which it uses 2."""

TABLE = """\
4 ClusterQueues in 2 cohorts: 3 workloads admitted, 2 wait

ADMITTED
NAMESPACE  WORKLOAD   PODS  FLAVORS  QUEUE
team       Job/serve  1     h100     platform
team       Job/sweep  6     h100     vision (borrows 2 nvidia.com/gpu)
team       Job/train  1     h100     language (borrows 4 nvidia.com/gpu)

QUEUE             WEIGHT  SHARE  ADMITTED  WAITING  STRATEGY        STATE
cohort company         1      0
  cohort science       2    150
    language           1    200         1        1  BestEffortFIFO  active
    vision             1    100         1        0  BestEffortFIFO  active
  platform             1      0         1        0  BestEffortFIFO  active
alone                  1      0         0        1  BestEffortFIFO  active

QUEUE             FLAVOR  RESOURCE        NOMINAL  USED  BORROWED     LENT  FREE
cohort company    h100    nvidia.com/gpu       24    16                        6
  cohort science  h100    nvidia.com/gpu        8    14         6   0 of 0     6
    language      h100    nvidia.com/gpu        4     8    4 of 8   0 of 0     4
    vision        h100    nvidia.com/gpu        4     6         2   0 of 0     6
  platform        h100    nvidia.com/gpu       16     2    0 of 0  6 of 12     8
alone             h100    nvidia.com/gpu        8     0                        8

NAMESPACE  LOCAL QUEUE  QUEUE     ADMITTED  WAITING  STATE
team       alone        alone            0        1  active
team       language     language         1        1  active
team       platform     platform         1        0  active
team       vision       vision           1        0  active

WAITING in alone
1. team Job/huge, priority 0, asks for 9 nvidia.com/gpu in 1 pod
   ExceedsMaxQuota: couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor h100, \
previously considered podsets requests (0) + current podset request (9) > maximum capacity (8)
   nothing can be given back: it asks for more than the queue can ever have

WAITING in language
1. team Job/wide, priority 0, asks for 8 nvidia.com/gpu in 1 pod
   WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor \
h100, 4 more needed
   for it to start, these would have to give back:
     team Job/train of queue language: 8 nvidia.com/gpu; not taken, because borrowWithinCohort: Never
"""


@pytest.fixture
def company(write: Callable[..., Path]) -> Path:
    return write(COMPANY)


def as_data(mooring: Call, *arguments: str | Path) -> Any:
    ran = mooring("queues", "-q", *arguments, "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    return json.loads(ran.out)


def named(found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(one for one in found if one["name"] == name)


def test_the_table_shows_the_tree_the_quotas_and_who_waits(mooring: Call, company: Path) -> None:
    ran = mooring("queues", "-f", company)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == TABLE


def test_json_has_everything(mooring: Call, company: Path) -> None:
    result = as_data(mooring, "-f", company)

    assert list(result) == [
        "apiVersion",
        "kind",
        "admitted",
        "suspended",
        "notices",
        "cohorts",
        "queues",
        "localQueues",
        "withoutQueue",
        "volcanoQueues",
        "sharedQueues",
    ]
    assert [(cohort["name"], cohort["parent"]) for cohort in result["cohorts"]] == [
        ("company", ""),
        ("science", "company"),
    ]
    assert result["cohorts"][1]["weight"] == 2
    platform = named(result["queues"], "platform")
    assert platform["preemption"] == {
        "withinClusterQueue": "Never",
        "reclaimWithinCohort": "Never",
        "borrowWithinCohort": "Never",
    }
    assert platform["quotas"] == [
        {
            "flavor": "h100",
            "resource": "nvidia.com/gpu",
            "nominal": 16,
            "used": 2,
            "borrowed": 0,
            "borrowingLimit": 0,
            "available": 8,
            "lendingLimit": 12,
            "idle": 12,
            "lentAtLeast": 6,
            "lentAtMost": 6,
        }
    ]
    language = named(result["queues"], "language")
    assert language["weightedShare"] == 200
    assert language["holdingWorkloads"][0] | {"workload": ""} == {
        "workload": "",
        "namespace": "team",
        "owner": "Job/train",
        "localQueue": "language",
        "priority": 0,
        "stage": "admitted",
        "holds": {"nvidia.com/gpu": 8},
    }
    (waiting,) = language["waitingWorkloads"]
    assert (waiting["position"], waiting["reason"], waiting["asks"]) == (1, "WaitingForQuota", {"nvidia.com/gpu": 8})
    (given,) = waiting["givesBack"]
    assert (given["owner"], given["clusterQueue"], given["amounts"]) == ("Job/train", "language", {"nvidia.com/gpu": 8})
    assert given["forbiddenBy"] == "borrowWithinCohort: Never"
    assert named(result["localQueues"], "language") == {
        "name": "language",
        "namespace": "team",
        "clusterQueue": "language",
        "active": True,
        "inactiveReason": "",
        "admitted": 1,
        "reserved": 0,
        "waiting": 1,
    }


def test_yaml_is_the_same_as_json(mooring: Call, company: Path) -> None:
    assert yaml.safe_load(mooring("queues", "-f", company, "-o", "yaml").out) == as_data(mooring, "-f", company)


# One queue.


@pytest.mark.parametrize("name", ["language", "team/language"])
def test_one_queue_is_shown_with_the_cohorts_above_it(mooring: Call, company: Path, name: str) -> None:
    result = as_data(mooring, "-f", company, "--queue", name)

    assert [cohort["name"] for cohort in result["cohorts"]] == ["company", "science"]
    assert [queue["name"] for queue in result["queues"]] == ["language"]
    assert [queue["name"] for queue in result["localQueues"]] == ["language"]
    assert [found["owner"] for found in result["admitted"]] == ["Job/train"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("langauge", "the name of a queue (language?)", id="a slip"),
        pytest.param("xyz", "the name of a queue (alone, language, platform, team/alone, ", id="something else"),
    ],
)
def test_an_unknown_queue_is_bad_input(mooring: Call, company: Path, name: str, expected: str) -> None:
    ran = mooring("queues", "-f", company, "--queue", name)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: --queue: expected {expected}")
    assert ran.err.endswith(f'found "{name}"\n')


def test_without_queues_every_name_is_unknown(mooring: Call, write: Callable[..., Path]) -> None:
    ran = mooring("queues", "-f", write(CLUSTER), "--queue", "any")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == 'error: --queue: expected the name of a queue (there are none), found "any"\n'


def test_without_queues_there_is_little_to_say(mooring: Call, write: Callable[..., Path]) -> None:
    assert mooring("queues", "-f", write("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")).out == "no queues\n"


def test_queues_that_nobody_uses_are_shown(mooring: Call, write: Callable[..., Path]) -> None:
    result = as_data(mooring, "-f", write(CLUSTER + queue("idle", 8)))

    assert result["queues"][0]["active"]
    assert result["queues"][0]["quotas"][0]["available"] == 8


# Queues that admit nobody.


def test_a_queue_is_inactive_if_its_flavor_is_missing(mooring: Call, write: Callable[..., Path]) -> None:
    file = write(CLUSTER + queue("modern", 8, flavor="h200") + job("train", "modern", 1))

    lines = mooring("queues", "-f", file).out.splitlines()
    result = as_data(mooring, "-f", file)

    assert "modern                 1      0         0        1  BestEffortFIFO  inactive" in lines
    assert "modern: references missing ResourceFlavor(s): h200" in lines
    assert "   Suspended: ClusterQueue modern is inactive: references missing ResourceFlavor(s): h200" in lines
    found = result["queues"][0]
    assert (found["active"], found["inactiveReason"]) == (False, "references missing ResourceFlavor(s): h200")
    assert found["waitingWorkloads"][0]["outlook"] == "nothing can be given back: the queue admits nobody as it is"
    assert result["localQueues"][0]["inactiveReason"] == (
        "ClusterQueue modern is inactive: references missing ResourceFlavor(s): h200"
    )


def test_a_stopped_queue_says_so(mooring: Call, write: Callable[..., Path]) -> None:
    file = write(CLUSTER + queue("held", 8, spec="stopPolicy: Hold") + job("train", "held", 1))

    assert "held: is stopped" in mooring("queues", "-f", file).out.splitlines()


def test_work_without_a_queue_is_listed_apart(mooring: Call, write: Callable[..., Path]) -> None:
    local = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: astray, namespace: team}
spec: {clusterQueue: nowhere}
"""
    file = write(CLUSTER + local + job("lost", "astray", 1) + job("nameless", "none", 1))

    lines = mooring("queues", "-f", file).out.splitlines()

    assert "team/astray: ClusterQueue nowhere doesn't exist" in lines
    start = lines.index("WAITING without a queue")
    assert lines[start + 1 :] == [
        "- team Job/lost, priority 0, asks for 1 nvidia.com/gpu in 1 pod",
        "  Misconfigured: ClusterQueue nowhere doesn't exist",
        "- team Job/nameless, priority 0, asks for 1 nvidia.com/gpu in 1 pod",
        "  Misconfigured: LocalQueue none doesn't exist",
    ]


# Lines.


def test_in_a_strict_queue_the_second_waits_for_the_first(mooring: Call, write: Callable[..., Path]) -> None:
    strict = queue("strict", 8, spec="queueingStrategy: StrictFIFO")
    workloads = job("busy", "strict", 4) + job("first", "strict", 6) + job("second", "strict", 2)
    (found,) = as_data(mooring, "-f", write(CLUSTER + strict + workloads))["queues"]

    assert [(one["position"], one["owner"]) for one in found["waitingWorkloads"]] == [
        (1, "Job/first"),
        (2, "Job/second"),
    ]
    assert found["waitingWorkloads"][1]["outlook"] == (
        "nobody has to give anything back: there is quota for it, but team Job/first is before it"
    )


def test_the_line_goes_by_priority(mooring: Call, write: Callable[..., Path]) -> None:
    urgent = (
        "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: urgent}\nvalue: 100\n"
    )
    workloads = job("busy", "queue", 8) + job("plain", "queue", 8)
    late = job("late", "queue", 8, labels=", kueue.x-k8s.io/priority-class: urgent")
    file, then = write(CLUSTER + urgent + queue("queue", 8) + workloads), write(late, "late.yaml")

    found = as_data(mooring, "-f", file, "--then", then)["steps"][1]["result"]["queues"][0]

    assert [(one["owner"], one["priority"]) for one in found["waitingWorkloads"]] == [
        ("Job/late", 100),
        ("Job/plain", 0),
    ]


def test_what_a_waiting_workload_lacks_is_told_as_it_is_now(mooring: Call, write: Callable[..., Path]) -> None:
    """Its condition is written anew only when it is tried again, as in Kueue: what others are given since is no reason
    to try it, and would have all that wait written anew."""
    first = write(CLUSTER + queue("queue", 8) + job("busy", "queue", 4) + job("large", "queue", 6))
    then = write(job("small", "queue", 3), "then.yaml")
    late = write(job("tiny", "queue", 1), "late.yaml")

    steps = as_data(mooring, "-f", first, "--then", then, "--then", late)["steps"]

    waiting = [step["result"]["queues"][0]["waitingWorkloads"] for step in steps]
    assert [[one["owner"] for one in found] for found in waiting] == [["Job/large"]] * 3
    told = [found[0]["message"].rpartition(", ")[2] for found in waiting]
    assert told == ["2 more needed", "5 more needed", "6 more needed"]


def test_one_that_can_start_with_fewer_pods_says_with_how_many(mooring: Call, write: Callable[..., Path]) -> None:
    elastic = job("elastic", "queue", 1, pods=12, annotations='kueue.x-k8s.io/job-min-parallelism: "4"')
    file = write(CLUSTER + queue("queue", 8) + job("busy", "queue", 6) + elastic)

    result = as_data(mooring, "-f", file)

    (waiting,) = result["queues"][0]["waitingWorkloads"]
    assert (waiting["pods"], waiting["leastPods"], waiting["startsWith"]) == (12, 4, 8)
    assert [given["owner"] for given in waiting["givesBack"]] == ["Job/busy"]


def test_a_long_line_is_cut_short_unless_it_is_asked_for(mooring: Call, write: Callable[..., Path]) -> None:
    workloads = "".join(job(f"job-{index:02d}", "queue", 8) for index in range(14))
    file = write(CLUSTER + queue("queue", 8) + workloads)

    short = mooring("queues", "-f", file).out
    long = mooring("queues", "-f", file, "--queue", "queue").out

    assert "... and 3 more workloads; --queue NAME or -o json lists them all" in short
    assert sum(line.endswith("asks for 8 nvidia.com/gpu in 1 pod") for line in short.splitlines()) == 10
    assert sum(line.endswith("asks for 8 nvidia.com/gpu in 1 pod") for line in long.splitlines()) == 13


def test_who_waits_for_admission_checks_has_quota_and_is_counted_apart(
    mooring: Call, write: Callable[..., Path]
) -> None:
    check = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: budget}
spec: {controllerName: example.com/budget}
"""
    checked = queue("queue", 8, spec="admissionChecksStrategy: {admissionChecks: [{name: budget}]}")
    file = write(CLUSTER + check + checked + job("train", "queue", 6))

    (found,) = as_data(mooring, "-f", file)["queues"]
    lines = mooring("queues", "-f", file).out.splitlines()

    assert (found["admitted"], found["reserved"], found["waiting"]) == (0, 1, 0)
    assert found["quotas"][0]["used"] == 6
    assert [held["stage"] for held in found["holdingWorkloads"]] == ["reserved"]
    assert "team       Job/train  1     h100     queue (waits for admission checks: budget)" in lines


def test_fair_sharing_is_read_from_kueues_configuration(mooring: Call, write: Callable[..., Path]) -> None:
    light = "reclaimWithinCohort: Any"
    queues = queue("lender", 6, cohort="all") + queue("taker", 2, cohort="all")
    queues += queue("light", 2, cohort="all", spec=f'preemption: {{{light}}}\n  fairSharing: {{weight: "100m"}}')
    file = write(CLUSTER + queues + job("loan", "taker", 8))
    config = write(
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
        "fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare]}\n",
        "kueue.yaml",
    )
    then = write(job("new", "light", 5), "new.yaml")

    result = as_data(mooring, "-f", file, "--config", config, "--then", then)["steps"][-1]["result"]

    (waiting,) = named(result["queues"], "light")["waitingWorkloads"]
    assert [(given["owner"], given["forbiddenBy"].partition(":")[0]) for given in waiting["givesBack"]] == [
        ("Job/loan", "fair sharing")
    ]


# Several lenders.


def test_with_several_lenders_only_limits_are_known(mooring: Call, write: Callable[..., Path]) -> None:
    queues = queue("left", 4, cohort="all") + queue("right", 8, cohort="all") + queue("taker", 0, cohort="all")
    file = write(CLUSTER + queues + job("loan", "taker", 6))

    quotas = {found["name"]: found["quotas"][0] for found in as_data(mooring, "-f", file)["queues"]}
    lines = mooring("queues", "-f", file).out.splitlines()

    assert (quotas["left"]["lentAtLeast"], quotas["left"]["lentAtMost"]) == (0, 4)
    assert (quotas["right"]["lentAtLeast"], quotas["right"]["lentAtMost"]) == (2, 6)
    assert "  right     h100    nvidia.com/gpu        8     0         0  2-6 of 8     6" in lines


# Volcano.

VOLCANO = """
apiVersion: v1
kind: Node
metadata: {name: shared}
status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: science}
spec: {weight: 3, guarantee: {resource: {cpu: "2"}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: vision}
spec: {parent: science, reclaimable: false, guarantee: {resource: {cpu: "2"}}, capability: {cpu: "4"}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: sweep, namespace: team}
spec:
  schedulerName: default-scheduler
  queue: vision
  minAvailable: 1
  tasks:
    - name: task
      replicas: 6
      template:
        spec: {restartPolicy: Never, containers: [{name: main, image: x, resources: {requests: {cpu: "1"}}}]}
"""

VOLCANO_TABLE = """\
2 Volcano queues

VOLCANO QUEUE  WEIGHT   SHARE  OF THE CLUSTER  RUNNING  WAITING  RECLAIMABLE  STATE
science             3  0.6667  50.0% of cpu          4        2  yes          Open
  vision            1       1  50.0% of cpu          4        2  no           Open

VOLCANO QUEUE  RESOURCE  DESERVED  ALLOCATED  DEMAND  GUARANTEE  CAPABILITY
science        cpu              6          4       6          2           -
  vision       cpu              4          4       6          2           4

WAITING in vision
2 pods: queue vision deserves 4 cpu and holds 4; 1 more asked for
"""


def test_volcanos_queues_have_tables_of_their_own(mooring: Call, write: Callable[..., Path]) -> None:
    assert mooring("queues", "-f", write(VOLCANO)).out == VOLCANO_TABLE


def test_volcanos_queues_as_data(mooring: Call, write: Callable[..., Path]) -> None:
    (found,) = as_data(mooring, "-f", write(VOLCANO), "--queue", "vision")["volcanoQueues"]

    assert (found["parent"], found["reclaimable"], found["weight"]) == ("science", False, 1)
    assert (found["allocated"], found["guarantee"], found["capability"]) == ({"cpu": 4}, {"cpu": 2}, {"cpu": 4})
    assert (found["dominantShare"], found["dominantResource"]) == (0.5, "cpu")
    assert (found["runningPods"], found["waitingPods"]) == (4, 2)
    assert [why["pods"] for why in found["waitingReasons"]] == [2]


def test_the_queue_that_volcano_makes_is_shown_once_somebody_is_in_it(
    mooring: Call, write: Callable[..., Path]
) -> None:
    (found,) = as_data(mooring, "-f", write(VOLCANO.replace("  queue: vision\n", "")), "--queue", "default")[
        "volcanoQueues"
    ]

    assert (found["weight"], found["runningPods"]) == (1, 6)


# Manners.


def test_a_bad_manifest_ends_with_one_line(mooring: Call, write: Callable[..., Path]) -> None:
    ran = mooring("queues", "-f", write(CLUSTER + queue("queue", 8, limits=', lendingLimit: "9"', cohort="all")))

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "document 4 (ClusterQueue queue): spec.resourceGroups[0].flavors[0].resources[0].lendingLimit" in ran.err


def test_a_bad_step_ends_with_one_line(mooring: Call, company: Path) -> None:
    ran = mooring("queues", "-f", company, "--then", "10:more.yaml")

    assert (ran.code, ran.out) == (2, "")
    assert "expected a duration such as 90s or 10m" in ran.err


def test_a_bad_configuration_ends_with_one_line(mooring: Call, company: Path, write: Callable[..., Path]) -> None:
    policy = "apiVersion: config.mooring.dev/v1alpha1\nkind: TenantPolicy\ncheckPlacement: Sometimes\n"
    ran = mooring("queues", "-f", company, "--config", write(policy, "policy.yaml"))

    assert (ran.code, ran.out) == (2, "")
    assert "checkPlacement: expected" in ran.err


def test_help_has_an_example(mooring: Call) -> None:
    ran = mooring("queues", "--help")

    assert ran.code == 0
    assert "mooring queues -f examples/tenants/two-teams/1-cluster.yaml" in ran.out


LENDING = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 64, memory: 256Gi, pods: 110}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: any}
"""


def _lending_queue(name: str, quota: int, borrows: str = "") -> str:
    return f"""
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  cohort: all
  namespaceSelector: {{}}
  preemption: {{reclaimWithinCohort: Any}}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{{name: any, resources: [{{name: cpu, nominalQuota: {quota}{borrows}}}]}}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {{name: {name}, namespace: default}}
spec: {{clusterQueue: {name}}}"""


def _queued_job(name: str, queue: str, cpu: int) -> str:
    return f"""
---
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: default, labels: {{kueue.x-k8s.io/queue-name: {queue}}}}}
spec:
  template:
    spec: {{restartPolicy: Never, containers: [{{name: w, image: x, resources: {{requests: {{cpu: {cpu}}}}}}}]}}"""


def test_of_borrowers_admitted_at_one_moment_the_last_created_gives_back(
    mooring: Call, write: Callable[..., Path]
) -> None:
    first = LENDING + _lending_queue("lender", 8) + _lending_queue("borrower", 16)
    cluster = write(first + _queued_job("large", "borrower", 16) + _queued_job("small", "borrower", 8), "1.yaml")
    then = write(_queued_job("owner", "lender", 8), "2.yaml")

    outcome = mooring("schedule", "-q", "-o", "json", "-f", cluster, "--then", f"1m:{then}")

    last = json.loads(outcome.out)["steps"][-1]["result"]
    assert [found["workload"].rpartition("-")[0] for found in last["suspended"]] == ["job-small"]


def test_an_open_quota_window_counts_though_no_workload_has_ever_come(
    mooring: Call, write: Callable[..., Path]
) -> None:
    cluster = write(LENDING + _lending_queue("night", 8), "1.yaml")
    window = "{queue: night, flavor: any, resource: cpu, from: '22:00', to: '06:00', nominalQuota: '2'}"
    policy = f"apiVersion: config.mooring.dev/v1alpha1\nkind: TenantPolicy\nquotaWindows: [{window}]\n"
    config = write(policy, "policy.yaml")

    def nominal(now: str) -> float:
        outcome = mooring("queues", "-q", "-o", "json", "-f", cluster, "--config", config, "--now", now)
        (found,) = json.loads(outcome.out)["queues"]
        return float(found["quotas"][0]["nominal"])

    assert nominal("2026-03-02T23:00:00Z") == 2
    assert nominal("2026-03-02T12:00:00Z") == 8
