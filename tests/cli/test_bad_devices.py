"""Bad input about devices, through the command: one line with file, document, field, what was expected, what found."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mooring.cli.main import run

RESOURCE, NUMA = "resource.k8s.io/v1", "topology.node.k8s.io/v1alpha2"


def document(api_version: str, kind: str, **given: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **given}


def pod(annotations: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example.com/a:1", "resources": {"limits": limits or {}}}
    found = document("v1", "Pod", spec={"containers": [container]})
    found["metadata"]["annotations"] = annotations or {}
    return found


def device_class(expression: str) -> dict[str, Any]:
    return document(RESOURCE, "DeviceClass", spec={"selectors": [{"cel": {"expression": expression}}]})


def sharing(**given: Any) -> dict[str, Any]:
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": given}
    config = [{"opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}]
    return document(RESOURCE, "DeviceClass", spec={"config": config})


def drawing_on(counter_set: str, counter: str) -> list[dict[str, Any]]:
    """A pool with the counter set gpu-0, and a device that draws on some counter."""
    pool = {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 2}}
    consumes = [{"counterSet": counter_set, "counters": {counter: {"value": "1"}}}]
    counters = {"name": "gpu-0", "counters": {"memory": {"value": "8"}}}
    first = document(RESOURCE, "ResourceSlice", spec={**pool, "sharedCounters": [counters]})
    second = document(
        RESOURCE, "ResourceSlice", spec={**pool, "devices": [{"name": "d", "consumesCounters": consumes}]}
    )
    second["metadata"] = {"name": "b"}
    return [first, second]


def node_with(profile: str) -> dict[str, Any]:
    found = document("v1", "Node", status={"allocatable": {"cpu": "1", f"nvidia.com/mig-{profile}": "1"}})
    found["metadata"]["labels"] = {"nvidia.com/gpu.product": "NVIDIA-A30"}
    return found


def topology(**given: Any) -> dict[str, Any]:
    zone = {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", "capacity": "4"}], **given.pop("zone", {})}
    return document(NUMA, "NodeResourceTopology", zones=[zone], **given)


@pytest.mark.parametrize(
    ("documents", "line"),
    [
        pytest.param(
            [device_class("device.driver ==")],
            "document 1 (DeviceClass a): spec.selectors[0].cel.expression: expected a CEL expression over device, "
            "found expected a value, found 'end of the expression' (column 17)",
            id="CEL that does not compile",
        ),
        pytest.param(
            [device_class("device.maker == 'x'")],
            "document 1 (DeviceClass a): spec.selectors[0].cel.expression: expected a CEL expression over device, "
            "found undefined field 'maker' (column 7)",
            id="CEL over what devices do not have",
        ),
        pytest.param(
            drawing_on("gpu-1", "memory"),
            "document 2 (ResourceSlice b): spec.devices[0].consumesCounters[0].counterSet: "
            'expected a counter set of the pool: gpu-0, found "gpu-1"',
            id="a counter set that does not exist",
        ),
        pytest.param(
            drawing_on("gpu-0", "slices"),
            "document 2 (ResourceSlice b): spec.devices[0].consumesCounters[0].counters: "
            'expected a counter of gpu-0: memory, found "slices"',
            id="a counter that does not exist",
        ),
        pytest.param(
            [node_with("3g.20gb")],
            "document 1 (Node a): status.allocatable.nvidia.com/mig-3g.20gb: "
            'expected a MIG profile of NVIDIA-A30 (1g.6gb, 2g.12gb, 4g.24gb), found "3g.20gb"',
            id="a MIG profile of another model",
        ),
        pytest.param(
            [pod(limits={"nvidia.com/mig-9g.90gb": "1"})],
            "document 1 (Pod default/a): spec.containers[0].resources.limits.nvidia.com/mig-9g.90gb: "
            "expected the MIG profile of a GPU, such as 1g.10gb or 3g.40gb, found 9g.90gb",
            id="a MIG profile of no model",
        ),
        *(
            pytest.param(
                [pod({"gpu-fraction": share})],
                "document 1 (Pod default/a): metadata.annotations[gpu-fraction]: expected more than 0 and less than 1; "
                f'whole GPUs are limits of nvidia.com/gpu, found "{share}"',
                id=f"a share of {share} GPUs",
            )
            for share in ("0", "1.5")
        ),
        pytest.param(
            [pod({"alibabacloud.com/gpu-milli": "1500"})],
            "document 1 (Pod default/a): metadata.annotations[alibabacloud.com/gpu-milli]: "
            'expected from 1 to 1000, thousandths of a GPU, found "1500"',
            id="1500 thousandths of a GPU",
        ),
        pytest.param(
            [pod(limits={"nvidia.com/gpu": "1", "nvidia.com/gpucores": "150"})],
            "document 1 (Pod default/a): spec.containers[0].resources.limits.nvidia.com/gpucores: "
            "expected at most 100, percent of a GPU, found 150",
            id="150 % of a GPU's cores",
        ),
        *(
            pytest.param(
                [sharing(**given)],
                f"document 1 (DeviceClass a): spec.config[0].opaque.parameters.sharing.{field}: {rest}",
                id=f"a driver told {rest}",
            )
            for given, field, rest in (
                ({"strategy": "Turns"}, "strategy", 'expected one of TimeSlicing, MPS, found "Turns"'),
                (
                    {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "1s"}},
                    "timeSlicingConfig.interval",
                    'expected one of Default, Short, Medium, Long, found "1s"',
                ),
                (
                    {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 150}},
                    "mpsConfig.defaultActiveThreadPercentage",
                    "expected from 1 to 100, found 150",
                ),
                (
                    {"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": "much"}},
                    "mpsConfig.defaultPinnedDeviceMemoryLimit",
                    'expected a quantity such as 10Gi, found "much"',
                ),
            )
        ),
        pytest.param(
            [topology(topologyPolicies=["SingleNUMA"])],
            "document 1 (NodeResourceTopology a): topologyPolicies[0]: expected one of None, SingleNUMANodePodLevel, "
            "SingleNUMANodeContainerLevel, SingleNUMANode, Restricted, RestrictedContainerLevel, RestrictedPodLevel, "
            'BestEffort, BestEffortContainerLevel, BestEffortPodLevel, found "SingleNUMA"',
            id="a policy that no kubelet has",
        ),
        pytest.param(
            [topology(zone={"resources": [{"name": "cpu", "capacity": "four"}]})],
            "document 1 (NodeResourceTopology a): zones[0].resources[0].capacity: expected a quantity such as 500m, "
            '2 or 1.5Gi, found "four"',
            id="CPUs of a zone in words",
        ),
        pytest.param(
            [topology(zone={"resources": [{"name": "cpu", "availble": "4"}]})],
            "document 1 (NodeResourceTopology a): zones[0].resources[0].availble: expected a field of ResourceInfo "
            "(did you mean available?), found an unknown field",
            id="a field that zones do not have",
        ),
        pytest.param(
            [topology(zone={"name": "first"})],
            "document 1 (NodeResourceTopology a): zones[0].name: expected the number of a NUMA node, such as node-0, "
            'found "first"',
            id="a zone without a number",
        ),
    ],
)
def test_bad_input_about_devices_is_one_line_and_nothing_is_done(
    documents: list[dict[str, Any]], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(yaml.safe_dump_all(documents))

    code = run(["schedule", "-q", "-f", str(path)])

    printed = capsys.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert printed.err.startswith(f"error: {path}: {line}")


def test_a_compute_domain_without_a_template_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(yaml.safe_dump(document("resource.nvidia.com/v1beta1", "ComputeDomain", spec={"numNodes": 2})))

    assert run(["schedule", "-q", "-f", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"error: {path}: document 1 (ComputeDomain default/a): spec.channel.resourceClaimTemplate.name: "
        "expected a name, found none\n"
    )
