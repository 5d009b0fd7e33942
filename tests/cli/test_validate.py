"""`--validate`: unknown fields and duplicate keys are mistakes, cause warnings, or do not matter."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]
Write = Callable[..., Path]

NODES = """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {disk: hdd}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
"""
MISSPELT = (
    NODES
    + """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeSelectr: {disk: ssd}
  containers: [{name: main, image: x, resources: {request: {cpu: "8"}}}]
"""
)


def test_a_misspelt_field_is_a_mistake_with_a_suggestion(mooring: Call, write: Write) -> None:
    path = write(MISSPELT)

    assert mooring("schedule", "-f", path) == (
        2,
        "",
        f"error: {path}: document 2 (Pod web): spec.nodeSelectr: "
        "expected a field of PodSpec (did you mean nodeSelector?), found an unknown field\n",
    )


def test_misspelt_fields_are_warnings_if_asked_for(mooring: Call, write: Write) -> None:
    path = write(MISSPELT)

    outcome = mooring("schedule", "-f", path, "-o", "json", "--validate", "warn")

    assert json.loads(outcome.out)["placements"] == [{"pod": "web", "namespace": "default", "node": "a", "priority": 0}]
    assert outcome.err.splitlines() == [
        f"warning: {path}: document 2 (Pod web): spec.nodeSelectr: "
        "expected a field of PodSpec (did you mean nodeSelector?), found an unknown field",
        f"warning: {path}: document 2 (Pod web): spec.containers[0].resources.request: "
        "expected a field of ResourceRequirements (did you mean requests?), found an unknown field",
    ]


@pytest.mark.parametrize("command", [("schedule",), ("queues",), ("explain", "web")])
def test_every_offline_command_can_ignore_them(mooring: Call, write: Write, command: tuple[str, ...]) -> None:
    path = write(MISSPELT)

    assert mooring(*command, "-f", path).code == 2
    assert mooring(*command, "-f", path, "--validate", "ignore")[::2] == (0, "")


def test_the_steps_of_a_story_are_checked_too(mooring: Call, write: Write) -> None:
    first, then = write(NODES), write(MISSPELT.partition("---")[2], "then.yaml")

    assert "then.yaml: document 1 (Pod web): spec.nodeSelectr" in mooring("schedule", "-f", first, "--then", then).err
    assert mooring("schedule", "-f", first, "--then", then, "--validate", "ignore").code == 0


DUPLICATES = [
    pytest.param(
        NODES + "kind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, name: b, image: x}]\n",
        "cluster.yaml",
        ": document 2 (Pod web): spec.containers[0].name: expected each key once, found it twice\n",
        id="YAML",
    ),
    pytest.param(
        '{"kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "name": "b"}]}}',
        "cluster.json",
        " (Pod web): spec.containers[0].name: expected each key once, found it twice\n",
        id="JSON",
    ),
    pytest.param(
        '{"kind": "Pod", "metadata": {"name": "web", "labels": {"a": "b", "a" : "c"}}, '
        '"spec": {"containers": [{"name": "b"}]}}',
        "cluster.json",
        " (Pod web): metadata.labels.a: expected each key once, found it twice\n",
        id="JSON labels",
    ),
]


@pytest.mark.parametrize(("text", "name", "message"), DUPLICATES)
def test_a_key_that_comes_twice_is_a_mistake(mooring: Call, write: Write, text: str, name: str, message: str) -> None:
    path = write(text, name)

    assert mooring("schedule", "-f", path) == (2, "", f"error: {path}{message}")
    assert mooring("schedule", "-f", path, "--validate", "warn").err == f"warning: {path}{message}"


def test_fields_that_scheduling_does_not_read_are_legal(mooring: Call, write: Write) -> None:
    text = """
kind: Pod
apiVersion: v1
metadata: {name: web, managedFields: [{manager: kubectl, fieldsV1: {"f:spec": {}}}], creationTimestamp: null}
spec:
  dnsConfig: {nameservers: [10.0.0.1]}
  securityContext: {seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: main
    image: x
    livenessProbe: {httpGet: {path: /, port: 80}}
    env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    resources: null
status: {anything: {goes: here}}
"""
    assert mooring("schedule", "-f", write(text), "-q")[::2] == (0, "")


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "field"),
    [
        ("kueue.x-k8s.io/v1beta2", "ClusterQueue", "{cohrt: a}", "spec.cohrt"),
        ("scheduling.volcano.sh/v1beta1", "PodGroup", "{minMembers: 3}", "spec.minMembers"),
        ("apps/v1", "Deployment", "{replica: 3}", "spec.replica"),
        ("batch/v1", "Job", "{template: {spec: {container: []}}}", "spec.template.spec.container"),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "{leaderWorkerTemplate: {sizes: 3}}", "Template.sizes"),
        ("ray.io/v1", "RayJob", "{rayClusterSpec: {headGroup: {}}}", "spec.rayClusterSpec.headGroup"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", "{replicatedJob: []}", "spec.replicatedJob"),
        ("kubeflow.org/v1", "PyTorchJob", "{pytorchReplicaSpecs: {Master: {replica: 1}}}", "Master.replica"),
    ],
)
def test_kinds_of_every_project_are_checked(
    mooring: Call, write: Write, api_version: str, kind: str, spec: str, field: str
) -> None:
    text = f"{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: a}}, spec: {spec}}}"

    outcome = mooring("schedule", "-f", write(text))

    assert outcome.code == 2
    assert f"{field}: expected a field of " in outcome.err
    assert "(did you mean " in outcome.err


OF_OTHER_PROJECTS = {
    "SparkApplication": (
        "{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {name: a},"
        " spec: {type: Scala, sparkVersion: '3.5', mode: cluster, driver: {cors: 1}, executor: {}}}",
        "spec.driver.cors: expected a field of DriverSpec (did you mean cores?)",
    ),
    "JAXJob": (
        "{apiVersion: kubeflow.org/v1, kind: JAXJob, metadata: {name: a}, spec: {jaxReplicaSpec: {}}}",
        "spec.jaxReplicaSpec: expected a field of JAXJobSpec (did you mean jaxReplicaSpecs?)",
    ),
    "AppWrapper": (
        "{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a}, spec: {component: []}}",
        "spec.component: expected a field of AppWrapperSpec (did you mean components?)",
    ),
}


@pytest.mark.parametrize("kind", OF_OTHER_PROJECTS)
def test_fields_of_other_projects_kinds_are_checked_too(mooring: Call, write: Write, kind: str) -> None:
    text, expected = OF_OTHER_PROJECTS[kind]
    path = write(NODES + text)

    outcome = mooring("schedule", "-f", path)

    assert outcome.code == 2
    assert outcome.err.endswith(f": {expected}, found an unknown field\n")
    assert expected not in mooring("schedule", "-f", path, "--validate", "ignore").err
