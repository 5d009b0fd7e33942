"""Durations are read as Go reads them; a pod's own word goes before its deadline."""

import pytest
from gang_manifests import read

from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod, PodSpec
from mooring.model.values.durations import DURATION, duration_seconds, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800.0),
        ("1h30m", 5400.0),
        ("90s", 90.0),
        ("1.5h", 5400.0),
        ("250ms", 0.25),
        (".5s", 0.5),
        ("0", 0.0),
        ("", None),
        ("30", None),
        ("10 m", None),
        ("-5m", None),
        ("1d", None),
        ("m", None),
        ("٣s", None),
    ],
)
def test_durations_are_those_of_go(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == seconds


def pod(annotation: str | None = None, deadline: int | None = None) -> Pod:
    annotations = None if annotation is None else {DURATION: annotation}
    return Pod(metadata=ObjectMeta(annotations=annotations), spec=PodSpec(active_deadline_seconds=deadline))


def test_a_pod_runs_as_long_as_it_says_or_else_until_its_deadline() -> None:
    assert duration_seconds(pod("30m", deadline=60)) == 1800.0
    assert duration_seconds(pod(deadline=60)) == 60.0
    assert duration_seconds(pod("soon", deadline=60)) == 60.0
    assert duration_seconds(pod()) is None


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  activeDeadlineSeconds: 600
  template:
    metadata: {annotations: {%s}}
    spec: {restartPolicy: Never, %s containers: [{name: main, image: x}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: given
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: "1", controller: true}]
spec: {nodeName: a, containers: [{name: main, image: x}]}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set}
spec:
  replicatedJobs:
  - name: part
    template: {spec: {activeDeadlineSeconds: 60, template: {spec: {restartPolicy: Never, containers: [{name: main}]}}}}
"""


def known(annotations: str = "", spec: str = "") -> dict[str, float | None]:
    text = (JOB % (annotations, spec)).replace("name: train}\nspec:", "name: train}\nspec:\n  parallelism: 2")
    return {pod.metadata.name.split("-")[0]: duration_seconds(pod) for pod in read(text).pods}


def test_pods_of_a_job_are_over_with_its_deadline() -> None:
    assert known() == {"given": 600.0, "train": 600.0, "set": 60.0}
    assert known(spec="activeDeadlineSeconds: 90,")["train"] == 90.0
    assert known(spec="activeDeadlineSeconds: 900,")["train"] == 600.0
    assert known(annotations="mooring.dev/duration: 15m")["train"] == 900.0
