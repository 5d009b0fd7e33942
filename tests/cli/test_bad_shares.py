"""Shares of GPUs that cannot be: one line, with the field."""

import json
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run

CONFIG = "version: v1\nsharing:\n  {}:\n    resources:\n      - {{name: nvidia.com/gpu, replicas: {}}}\n"


def refusal(capsys: pytest.CaptureFixture[str], folder: Path, document: dict[str, Any]) -> str:
    path = folder / "given.json"
    path.write_text(json.dumps(document))
    assert run(["schedule", "-q", "-f", str(path)]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    return error.removeprefix(f"error: {path} ")


def pod(limits: dict[str, Any] | None = None, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example.com/a:1", "resources": {"limits": limits or {}}}
    metadata = {"name": "p", "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


LIMITS = "spec.containers[0].resources.limits"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            pod(annotations={"gpu-fraction": "1.5"}),
            "metadata.annotations[gpu-fraction]: expected more than 0 and less than 1; whole GPUs are limits of "
            'nvidia.com/gpu, found "1.5"',
        ),
        (
            pod({"nvidia.com/gpu": 1}, {"gpu-fraction": "0.5"}),
            'metadata.annotations[gpu-fraction]: expected none beside limits of nvidia.com/gpu, found "0.5"',
        ),
        (
            pod({"nvidia.com/gpu": 1, "nvidia.com/gpucores": 150}),
            f"{LIMITS}.nvidia.com/gpucores: expected at most 100, percent of a GPU, found 150",
        ),
        (
            pod({"koordinator.sh/gpu-core": 150}),
            f"{LIMITS}.koordinator.sh/gpu-core: expected at most 100, percent of a GPU, or a multiple of it, found 150",
        ),
        (
            pod({"nvidia.com/mig-5g.99gb": 1}),
            f"{LIMITS}.nvidia.com/mig-5g.99gb: expected the MIG profile of a GPU, such as 1g.10gb or 3g.40gb, "
            "found 5g.99gb",
        ),
    ],
)
def test_a_share_that_cannot_be_is_refused_with_its_field(
    document: dict[str, Any], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(capsys, tmp_path, document) == f"(Pod default/p): {expected}"


def test_instances_that_a_nodes_gpus_cannot_be_cut_into_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": "NVIDIA-A30"}},
        "status": {"allocatable": {"nvidia.com/mig-1g.10gb": 2}},
    }

    assert refusal(capsys, tmp_path, node) == (
        "(Node n): status.allocatable.nvidia.com/mig-1g.10gb: expected a MIG profile of NVIDIA-A30 "
        '(1g.6gb, 2g.12gb, 4g.24gb), found "1g.10gb"'
    )


def test_a_register_that_nobody_can_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "annotations": {}}}
    node["metadata"]["annotations"]["hami.io/node-nvidia-register"] = "GPU-a"  # type: ignore[index]

    assert refusal(capsys, tmp_path, node) == (
        "(Node n): metadata.annotations[hami.io/node-nvidia-register]: expected a list of cards as HAMi's "
        "device plugin registers them, found neither JSON nor id,count,memory,cores,type,numa,health:"
    )


@pytest.mark.parametrize(
    ("strategy", "replicas", "expected"),
    [
        ("timeSlicing", "1", "sharing.timeSlicing.resources[0].replicas: expected at least 2, found 1"),
        (
            "mps",
            "100",
            "sharing.mps.resources[0].replicas: expected at most 48 clients, which is all that MPS serves, found 100",
        ),
        (
            "timeSlicing",
            "four",
            "sharing.timeSlicing.resources[0].replicas: expected a device plugin's configuration, "
            "found expected `int`, got `str`",
        ),
    ],
)
def test_a_device_plugins_configuration_that_makes_no_sense_is_refused(
    strategy: str, replicas: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, given = tmp_path / "config.yaml", tmp_path / "given.json"
    config.write_text(CONFIG.format(strategy, replicas))
    given.write_text(json.dumps(pod()))

    assert run(["schedule", "-q", "-f", str(given), "--config", str(config)]) == 2
    assert capsys.readouterr().err.strip() == f"error: {config}: {expected}"


def test_amounts_beyond_all_measure_are_refused_and_not_wrapped_around(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register = '[{"id": "GPU-a", "count": 10, "devmem": 18446744073709551615}]'
    metadata = {"name": "n", "annotations": {"hami.io/node-nvidia-register": register}}

    found = refusal(capsys, tmp_path, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})

    assert found.startswith("(Node n): metadata.annotations[hami.io/node-nvidia-register]: expected a list of cards")
