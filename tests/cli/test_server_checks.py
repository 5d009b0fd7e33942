"""What the API server would refuse, and so do we: versions, names, counts, and limits of devices."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]
Write = Callable[..., Path]

CONTAINERS = "containers: [{name: main, image: x}]"
GPU = "containers: [{name: main, image: x, resources: {%s}}]"


def template(spec: str) -> str:
    return f"template: {{metadata: {{labels: {{a: b}}}}, spec: {{{spec}}}}}"


def job(spec: str) -> str:
    return f"{{apiVersion: batch/v1, kind: Job, metadata: {{name: a}}, spec: {{{spec}}}}}"


def pod(spec: str) -> str:
    return f"{{kind: Pod, metadata: {{name: a}}, spec: {{{spec}}}}}"


BAD = [
    pytest.param(
        f"{{apiVersion: v2, kind: Pod, metadata: {{name: a}}, spec: {{{CONTAINERS}}}}}",
        'document 1 (Pod default/a): apiVersion: expected v1, found "v2"',
        id="version",
    ),
    pytest.param(
        f"{{apiVersion: apps/v2, kind: Deployment, metadata: {{name: a}}, spec: {{{template(CONTAINERS)}}}}}",
        'apiVersion: expected apps/v1, found "apps/v2"',
        id="version of a group",
    ),
    pytest.param(
        f"{{kind: Pod, metadata: {{name: Web_1}}, spec: {{{CONTAINERS}}}}}",
        "metadata.name: expected a DNS name of at most 253 lower-case letters, digits, - and ., found \"Web_1\"",
        id="name",
    ),
    pytest.param(
        f"{{kind: Pod, metadata: {{name: a, namespace: a.b}}, spec: {{{CONTAINERS}}}}}",
        "metadata.namespace: expected a DNS name of at most 63 lower-case letters, digits and -, found \"a.b\"",
        id="namespace",
    ),
    pytest.param(
        "{kind: Namespace, metadata: {name: %s}}" % ("a" * 64),
        "metadata.name: expected a DNS name of at most 63 lower-case letters",
        id="long name",
    ),
    pytest.param(
        f"{{kind: Pod, metadata: {{generateName: A-}}, spec: {{{CONTAINERS}}}}}",
        "metadata.generateName: expected a DNS name",
        id="generateName",
    ),
    pytest.param(
        job(template(f"restartPolicy: Always, {CONTAINERS}")),
        'spec.template.spec.restartPolicy: expected one of Never, OnFailure, found "Always"',
        id="restartPolicy of a Job",
    ),
    pytest.param(
        job(template(CONTAINERS)),
        "spec.template.spec.restartPolicy: expected one of Never, OnFailure, found none",
        id="no restartPolicy of a Job",
    ),
    pytest.param(
        "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: "
        f"[{{name: w, template: {{spec: {{{template(f'restartPolicy: Always, {CONTAINERS}')}}}}}}}]}}}}",
        'spec.template.spec.restartPolicy: expected one of Never, OnFailure, found "Always"',
        id="restartPolicy in a JobSet",
    ),
    pytest.param(
        job(f"parallelism: 1000000000000000, {template(CONTAINERS)}"),
        "spec.parallelism: expected a number of at most 1000000, found 1000000000000000",
        id="pods without number",
    ),
    pytest.param(
        pod(GPU % "requests: {nvidia.com/gpu: 1}"),
        "spec.containers[0].resources.limits.nvidia.com/gpu: expected 1, as requested, found none",
        id="device without limit",
    ),
    pytest.param(
        pod(GPU % "requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}"),
        "spec.containers[0].resources.requests.nvidia.com/gpu: expected 2, the limit, found 1",
        id="device with another limit",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD)
def test_what_the_api_server_refuses_is_refused(mooring: Call, write: Write, text: str, message: str) -> None:
    outcome = mooring("schedule", "-f", write(text))

    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


@pytest.mark.parametrize(
    "text",
    [
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: a.b-c.0}}, spec: {{{CONTAINERS}}}}}",
        pod(GPU % "limits: {nvidia.com/gpu: 1}"),
        "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: 1}}",
        "{kind: Node, metadata: {name: 'node-{i}', annotations: {mooring.dev/replicas: '2'}}}",
    ],
)
def test_what_it_takes_is_taken(mooring: Call, write: Write, text: str) -> None:
    assert mooring("schedule", "-f", write(text), "-q")[::2] == (0, "")


def test_a_limit_range_may_fill_in_the_limit_of_a_device(mooring: Call, write: Write) -> None:
    limits = "{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: [%s]}}\n---\n"
    default = "{type: Container, default: {nvidia.com/gpu: 1}}"
    device = pod(GPU % "requests: {nvidia.com/gpu: 1}")

    assert mooring("schedule", "-f", write(limits % default + device), "-q")[::2] == (0, "")
