"""Gangs that are refused as a whole before any node is looked at."""

import json
from pathlib import Path

import pytest

from mooring.cli.main import run

STEPS = (
    """
{apiVersion: v1, kind: Node, metadata: {name: n0}, status: {allocatable: {cpu: "8", pods: "10"}}}
---
{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 2}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {scheduling.x-k8s.io/pod-group: g}}
spec: {containers: [{name: c, image: x}], volumes: [{name: v, persistentVolumeClaim: {claimName: missing}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b, labels: {scheduling.x-k8s.io/pod-group: g}}
spec: {containers: [{name: c, image: x}], volumes: [{name: v, persistentVolumeClaim: {claimName: missing}}]}
""",
    """
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "8", pods: "10"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: bound}, spec: {nodeName: n1, containers: [{name: c, image: x}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: other}
spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
""",
)


def test_a_gang_with_a_missing_claim_waits_while_nodes_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"{number}.yaml" for number in range(len(STEPS))]
    for file, text in zip(files, STEPS, strict=True):
        file.write_text(text)

    assert run(["schedule", "-q", "-f", str(files[0]), "--then", f"10m:{files[1]}", "-o", "json"]) == 0

    for step in json.loads(capsys.readouterr().out)["steps"]:
        assert [each["pod"] for each in step["result"]["waiting"]] == ["a", "b"]
