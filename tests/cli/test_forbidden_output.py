"""What quotas and limits keep out is shown apart from what waits: by the table, the data, the exit code, `explain`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: 20}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: shop}
spec: {hard: {requests.cpu: 3, count/jobs.batch: 0, persistentvolumeclaims: 0}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: containers, namespace: shop}
spec: {limits: [{type: Container, max: {memory: 1Gi}, maxLimitRequestRatio: {memory: 1}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: big, namespace: shop}
spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 0}, limits: {memory: 2Gi}}}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: nightly, namespace: shop}
spec: {parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {resources: {requests: {storage: 1Gi}}}
"""

EXCEEDED = "exceeded quota: team, requested: requests.cpu=1, used: requests.cpu=3, limited: requests.cpu=3"
NO_JOBS = "exceeded quota: team, requested: count/jobs.batch=1, used: count/jobs.batch=0, limited: count/jobs.batch=0"
NO_CLAIMS = (
    "exceeded quota: team, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, "
    "limited: persistentvolumeclaims=0"
)
TOO_BIG = "maximum memory usage per Container is 1Gi, but limit is 2Gi"

FORBIDDEN = f"""\
FORBIDDEN
2 pods: {EXCEEDED}
    shop Deployment/web (2 of 5)
2 pods: jobs.batch "nightly" is forbidden: {NO_JOBS}
    shop Job/nightly (2 of 2)
1 PersistentVolumeClaim: {NO_CLAIMS}
    shop/data
1 Job: {NO_JOBS}
    shop/nightly
1 pod: {TOO_BIG}
    shop/big
"""


@pytest.fixture
def cluster(write: Call) -> Path:
    path: Path = write(CLUSTER)
    return path


def test_the_table_says_how_much_of_a_workload_is_kept_out_and_why(mooring: Call, cluster: Path) -> None:
    outcome = mooring("schedule", "-f", cluster)

    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("3 pods placed on 1 node, 0 wait, 5 forbidden; 1 node in all\n")
    assert outcome.out.partition("\n\nFORBIDDEN")[1:] == ("\n\nFORBIDDEN", FORBIDDEN.removeprefix("FORBIDDEN"))


def test_the_wide_table_lists_every_pod_that_is_kept_out(mooring: Call, cluster: Path) -> None:
    lines = mooring("schedule", "--wide", "-f", cluster).out.splitlines()

    start = lines.index(f"2 pods: {EXCEEDED}")
    assert lines[start + 1 : start + 3] == ["    shop/web-8d6f8cd9c-hk7bj", "    shop/web-8d6f8cd9c-4mzhx"]


def test_json_has_the_message_of_the_api_server(mooring: Call, cluster: Path) -> None:
    result = json.loads(mooring("schedule", "-f", cluster, "-o", "json").out)

    assert result["summary"]["forbidden"] == 5
    assert [(found["kind"], found["name"]) for found in result["forbidden"]] == [
        ("PersistentVolumeClaim", "data"),
        ("Job", "nightly"),
        ("Pod", "big"),
        ("Pod", "web-8d6f8cd9c-hk7bj"),
        ("Pod", "web-8d6f8cd9c-4mzhx"),
        ("Pod", "nightly-fmzpq"),
        ("Pod", "nightly-zpsv7"),
    ]
    assert result["forbidden"][3] == {
        "kind": "Pod",
        "name": "web-8d6f8cd9c-hk7bj",
        "namespace": "shop",
        "message": f'pods "web-8d6f8cd9c-hk7bj" is forbidden: {EXCEEDED}',
        "reason": EXCEEDED,
        "plugin": "ResourceQuota",
        "owner": "Deployment/web",
        "workloadPods": 5,
    }
    assert result["forbidden"][2]["plugin"] == "LimitRanger"
    assert result["waiting"] == []


def test_what_is_forbidden_fails_where_waiting_does(mooring: Call, cluster: Path) -> None:
    assert mooring("schedule", "-f", cluster).code == 0
    assert mooring("schedule", "-f", cluster, "--fail-on-waiting").code == 1


@pytest.mark.parametrize("name", ["web-8d6f8cd9c-4mzhx", "shop/web-8d6f8cd9c-4mzhx"])
def test_explain_says_why_a_pod_is_forbidden(mooring: Call, cluster: Path, name: str) -> None:
    assert mooring("explain", name, "-f", cluster).out == f"pod shop/web-8d6f8cd9c-4mzhx is forbidden: {EXCEEDED}\n"


def test_of_a_workload_explain_shows_the_pod_that_is_forbidden(mooring: Call, cluster: Path) -> None:
    found = json.loads(mooring("explain", "deployment/web", "-f", cluster, "-o", "json").out)

    assert (found["pod"], found["state"], found["message"]) == ("web-8d6f8cd9c-hk7bj", "forbidden", EXCEEDED)


def test_a_bad_quota_is_one_line_and_exit_code_2(mooring: Call, write: Call) -> None:
    path = write(CLUSTER.replace("requests.cpu: 3", "requests.cpu: -3"), "bad.yaml")

    outcome = mooring("schedule", "-f", path)

    assert outcome == (
        2,
        "",
        f"error: {path}: document 2 (ResourceQuota shop/team): spec.hard.requests.cpu: "
        "expected a quantity of at least 0, found -3\n",
    )
