"""The stories of claims under examples/devices make their point, and commands show devices."""

import json
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run

EXAMPLES = Path(__file__).parents[2] / "examples" / "devices"
STORY = [
    *("-f", str(EXAMPLES / "nvlink-and-nic" / "1-cluster.yaml")),
    *("--then", f"1m:{EXAMPLES / 'nvlink-and-nic' / '2-notebook-ends.yaml'}"),
]
BREAKS = ["--then", f"1m:{EXAMPLES / 'nvlink-and-nic' / '3-gpu-breaks.yaml'}"]


def steps(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Any]:
    assert run(["schedule", "-q", *arguments, "-o", "json"]) == 0
    return [step["result"] for step in json.loads(capsys.readouterr().out)["steps"]]


def holders(result: Any) -> dict[str, list[str]]:
    """By pod, its devices: node/device."""
    found: dict[str, list[str]] = {}
    for node in result["devices"]:
        for pool in node["pools"]:
            for device in pool["devices"]:
                for holder in device.get("holders", ()):
                    for pod in holder["pods"]:
                        found.setdefault(pod, []).append(f"{node['node']}/{device['name']}")
    return found


def test_a_gang_waits_for_pairs_of_one_island_and_a_nic_on_their_root(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = steps(capsys, *STORY)

    assert {found["message"] for found in before["waiting"]} == {"gang default/train: room for 5 of 6 members"}
    assert holders(before) == {"default/notebook": ["gpu-a/gpu-0"]}
    got = {frozenset(devices) for devices in holders(after).values()}
    assert got == {
        frozenset({f"{node}/nic-{root}", f"{node}/gpu-{2 * root}", f"{node}/gpu-{2 * root + 1}"})
        for node in ("gpu-a", "gpu-b", "gpu-c")
        for root in (0, 1)
    }


def test_a_device_that_breaks_drives_its_pod_away_and_is_given_to_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    *_, last = steps(capsys, *STORY, *BREAKS)

    (lost,) = last["lost"]
    assert (lost["node"], lost["taint"]) == ("gpu-b", "example.com/broken:NoExecute of device gpu-0")
    assert "gpu-b/gpu-0" not in {device for devices in holders(last).values() for device in devices}
    assert [found["message"] for found in last["waiting"]] == ["gang default/train: room for 0 of 1 members"]


def test_the_map_shows_who_has_which_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", "-q", *STORY]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert "gpu-a  gpu.example.com  █░░░" in lines
    assert "    gpu-0: default/notebook" in lines
    assert "gpu-a  gpu.example.com  ████" in lines


def test_what_would_help_a_claim_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picky = {
        "name": "gpu",
        "exactly": {
            "deviceClassName": "gpu",
            "count": 3,
            "selectors": [{"cel": {"expression": 'device.attributes["gpu.example.com"].nvlinkIsland == 0'}}],
        },
    }
    documents = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "picky"},
            "spec": {"spec": {"devices": {"requests": [picky]}}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "picky"},
            "spec": {
                "priority": 10,
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "picky"}],
                "containers": [{"name": "main", "image": "i"}],
            },
        },
    ]
    file = tmp_path / "picky.yaml"
    file.write_text("\n---\n".join(json.dumps(each) for each in documents))
    cluster = str(EXAMPLES / "nvlink-and-nic" / "1-cluster.yaml")

    code = run(["explain", "picky", "-q", "-f", cluster, "-f", str(file), "-o", "json"])

    remedies = [found["change"] for found in json.loads(capsys.readouterr().out)["remedies"]]
    assert code == 0
    assert sorted(remedies) == [
        "ask for 1 in request gpu, not 3",
        "ask for 2 in request gpu, not 3",
        'drop request gpu: selector #0: device.attributes["gpu.example.com"].nvlinkIsland == 0',
    ]


QUEUED = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "64", memory: 64Gi, pods: "110"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a-gpus}
spec:
  driver: gpu.example.com
  nodeName: a
  pool: {name: a, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}, {name: gpu-3}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: pair}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu, count: 2}}]}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, example.com/gpus]
    flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: 64}, {name: example.com/gpus, nominalQuota: 3}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team}
spec: {clusterQueue: team}
"""
JOB = """
---
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, labels: {{kueue.x-k8s.io/queue-name: team}}}}
spec:
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{{name: gpus, resourceClaimTemplateName: pair}}]
      containers: [{{name: main, image: i, resources: {{requests: {{cpu: 1}}, claims: [{{name: gpus}}]}}}}]
"""
CONFIG = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources:
  deviceClassMappings: [{name: example.com/gpus, deviceClassNames: [gpu]}]
"""


@pytest.mark.parametrize(("is_mapped", "admitted"), [(False, 2), (True, 1)])
def test_devices_count_against_quota_where_their_class_is_mapped(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, is_mapped: bool, admitted: int
) -> None:
    cluster, config = tmp_path / "cluster.yaml", tmp_path / "kueue.yaml"
    cluster.write_text(QUEUED + JOB.format(name="first") + JOB.format(name="second"))
    config.write_text(CONFIG)

    code = run(["schedule", "-q", "-f", str(cluster), *(["--config", str(config)] if is_mapped else []), "-o", "json"])

    result = json.loads(capsys.readouterr().out)
    assert (code, len(result["admitted"]), len(result["placements"])) == (0, admitted, admitted)


def test_the_gang_of_a_compute_domain_gets_one_clique_and_who_comes_late_joins_it_or_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(EXAMPLES / "compute-domain.yaml")

    assert run(["schedule", "-q", "-o", "json", "--wide", "-f", path]) == 0
    found = json.loads(capsys.readouterr().out)

    assert sorted(each["node"] for each in found["devices"]) == ["node-1", "node-3", "node-5"]
    assert [(each["pod"], each["message"]) for each in found["waiting"]] == [
        (
            "late",
            "0/6 nodes are available: 2 node(s) were in another NVLink clique than the pods of the same ComputeDomain, "
            "4 Insufficient nvidia.com/gpu.",
        )
    ]


def test_pods_share_the_gpu_of_a_claim_and_the_map_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", "-q", "-o", "json", "-f", str(EXAMPLES / "shared-claim.yaml")]) == 0

    ((pool,),) = (each["pools"] for each in json.loads(capsys.readouterr().out)["devices"])
    shared = [holder for device in pool["devices"] for holder in device["holders"]]
    assert [(each["claim"], len(each["pods"]), each["sharing"]) for each in shared] == [
        ("default/turns", 3, "TimeSlicing Long"),
        ("default/side-by-side", 4, "MPS 25% 10Gi"),
    ]
