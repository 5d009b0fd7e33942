"""People come with what they have: other schedulers' names, configuration in ConfigMaps and among manifests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 20}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 2
  schedulerName: volcano
  tasks:
    - name: worker
      replicas: 2
      template: {spec: {restartPolicy: Never, containers: [{name: w, image: x, resources: {requests: {cpu: 1}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {schedulerName: kai-scheduler, containers: [{name: w, image: x}]}
"""
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: %s}]
"""
CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: scheduler, namespace: kube-system}
data:
  readme: nothing of interest
  scheduler.yaml: |
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles: [{schedulerName: %s}]
"""


def placed(mooring: Call, *arguments: str | Path) -> list[str]:
    outcome = mooring("schedule", "-q", "-o", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    return sorted(found["pod"] for found in json.loads(outcome.out)["placements"])


def test_pods_of_other_schedulers_are_taken_on_by_name(mooring: Call, write: Call) -> None:
    file = write(CLUSTER)

    assert placed(mooring, "-f", file) == []
    assert placed(mooring, "-f", file, "--as", "volcano") == ["train-worker-0", "train-worker-1"]
    assert placed(mooring, "-f", file, "--as", "volcano", "--as", "kai-scheduler") == [
        *("other", "train-worker-0", "train-worker-1"),
    ]


def test_whoever_is_not_ours_is_told_how_to_become_so(mooring: Call, write: Call) -> None:
    file = write(CLUSTER)

    table = mooring("schedule", "-q", "-f", file).out
    explained = mooring("explain", "other", "-q", "-f", file).out

    hint = '2 pods: schedulerName is "volcano", which no profile here has; --as volcano takes them on'
    assert hint in table.splitlines()
    assert explained.endswith("the profiles are default-scheduler; --as kai-scheduler takes it on\n")


def test_a_scheduler_that_nobody_asks_for_is_refused(mooring: Call, write: Call) -> None:
    outcome = mooring("schedule", "-f", write(CLUSTER), "--as", "vulcano")

    expected = 'error: --as: expected the schedulerName of a pod (kai-scheduler, volcano), found "vulcano"\n'
    assert (outcome.code, outcome.err) == (2, expected)


def wrapped(key: str, text: str) -> str:
    inside = text.replace("\n", "\n    ")
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config}}\ndata:\n  {key}: |\n    {inside}"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (CONFIGURATION % "volcano", "KubeSchedulerConfiguration"),
        (wrapped("scheduler.yaml", CONFIGURATION % "volcano"), "KubeSchedulerConfiguration"),
        ("partitions: []", "queues.yaml"),
        (wrapped("queues.yaml", "partitions: []"), "queues.yaml"),
        (wrapped("volcano-scheduler.conf", "actions: allocate"), "volcano-scheduler.conf"),
    ],
)
def test_configuration_among_the_manifests_is_pointed_to(mooring: Call, write: Call, text: str, name: str) -> None:
    outcome = mooring("schedule", "-f", write(CLUSTER), "-f", write(text, "configuration.yaml"))

    assert outcome.code == 0
    assert outcome.err == f"{name} is configuration, not applied here: give its file with --config\n"


@pytest.mark.parametrize("text", [CONFIGURATION, CONFIG_MAP])
def test_configuration_may_be_given_as_a_cluster_keeps_it(mooring: Call, write: Call, text: str) -> None:
    config = write(text % "volcano", "config.yaml")

    assert placed(mooring, "-f", write(CLUSTER), "--config", config) == ["train-worker-0", "train-worker-1"]


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        pytest.param(
            CONFIG_MAP.replace("KubeSchedulerConfiguration", "Something"),
            "data",
            "inside of the ConfigMap, found none of them",
            id="nothing in it",
        ),
        pytest.param(
            CONFIG_MAP.replace("profiles", "profile"),
            "data[scheduler.yaml]",
            "expected a known key (did you mean profiles?)",
            id="a slip inside",
        ),
        pytest.param(
            CONFIG_MAP.replace("profiles: [", "profiles: [["), "data[scheduler.yaml]", "expected YAML", id="no YAML"
        ),
    ],
)
def test_what_is_wrong_inside_of_a_config_map_is_said_with_its_place(
    mooring: Call, write: Call, text: str, where: str, expected: str
) -> None:
    config = write(text % "volcano", "config.yaml")

    outcome = mooring("schedule", "-f", write(CLUSTER), "--config", config)

    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {config}: {where}: ")
    assert expected in outcome.err
    assert outcome.err.count("\n") == 1


ASKS_FOR_MORE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: nodes-first}
spec: {controllerName: kueue.x-k8s.io/provisioning-request}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec: {namespaceSelector: {}, concurrentAdmissionPolicy: {migration: {mode: TryPreferredFlavors}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: grows, annotations: {kueue.x-k8s.io/elastic-job: "true"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}
"""


def test_what_is_asked_of_kueue_and_is_not_built_is_said(mooring: Call, write: Call) -> None:
    for command in ("schedule", "queues"):
        outcome = mooring(command, "-f", write(ASKS_FOR_MORE))

        assert (outcome.code, outcome.err.splitlines()) == (
            0,
            [
                "not built: kueue.x-k8s.io/provisioning-request (nodes-first); workloads wait until somebody sets the"
                " states of such checks",
                "not built: concurrentAdmissionPolicy (team); flavors are tried in their order, and kept",
                "not built: elastic jobs (default/grows); what one grows by starts as others of its pods finish",
            ],
        )
