"""The stories of examples/devices, through the command."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run

EXAMPLES = Path(__file__).parents[2] / "examples" / "devices"


def result(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert run(["schedule", "-q", "-o", "json", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def example(name: str) -> str:
    return str(EXAMPLES / name)


def cards_of(found: dict[str, Any], node: str) -> list[list[str]]:
    """By card: what its pods are called up to their last dash, and what they have."""
    (gpus,) = (each["gpus"] for each in found["gpus"] if each["node"] == node)
    return [
        sorted(f"{share['pod'].partition('-')[0]} {share.get('profile', '')}".strip() for share in gpu["shares"])
        for gpu in gpus
    ]


def test_a_mix_of_mig_instances_leaves_a_gpu_whole_for_who_needs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = result(capsys, "-f", example("mig-mix.yaml"))

    assert found["waiting"] == []
    assert sorted(cards_of(found, "a100")) == sorted(
        [
            ["training 7g.80gb"],
            ["notebooks 1g.10gb"] * 7,
            ["serving 3g.40gb"] * 2,
            ["serving 3g.40gb", "tuning 2g.20gb", "tuning 2g.20gb"],
        ]
    )
    assert ["7g.80gb@0"] in [each["instances"] for each in found["partitions"]]


def test_the_same_mix_by_first_fit_leaves_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "first-fit.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "  - plugins: {score: {disabled: [{name: '*'}], enabled: [{name: FirstFit}]}}\n"
    )

    found = result(capsys, "-f", example("mig-mix.yaml"), "--config", str(config))

    assert [each["owner"] for each in found["waiting"]] == ["Job/training"]


def test_a_hami_pod_and_a_fraction_share_a_card_and_who_does_not_fit_beside_them_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = result(capsys, "-f", example("shared-card.yaml"))

    assert found["gpus"] == [
        {
            "node": "gpu-0",
            "sharing": "hami",
            "gpus": [
                {
                    "index": 0,
                    "shares": [
                        {"pod": "serving", "namespace": "default", "coresPercent": 40.0, "memoryMib": 12000},
                        {"pod": "notebook", "namespace": "default", "coresPercent": 50.0, "memoryMib": 16384},
                    ],
                    "uuid": "GPU-8dcd427f",
                    "model": "NVIDIA-Tesla V100-PCIE-32GB",
                    "memoryMib": 32768,
                    "replicas": 10,
                }
            ],
        }
    ]
    assert [(each["pod"], each["message"]) for each in found["waiting"]] == [
        (
            "late",
            "0/1 nodes are available: 1 node(s) didn't have enough free on their GPUs: "
            "20% of the compute and 4000 MiB of 1 GPU.",
        )
    ]


def test_time_sliced_notebooks_run_beside_inference_by_mps(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("-f", example("time-slicing.yaml"), "--config", example("device-plugin.yaml"))
    found = result(capsys, *options)

    placed = Counter((each["owner"], each["node"]) for each in found["placements"])
    assert placed == {("Deployment/notebooks", "sliced"): 6, ("Deployment/inference", "served"): 4}
    assert cards_of(found, "sliced") == [["notebooks"] * 3] * 2
    assert cards_of(found, "served") == [["inference"] * 2] * 2
    assert {each["sharing"] for each in found["gpus"]} == {"time-slicing", "mps"}
    assert Counter(each["pod"].partition("-")[0] for each in found["waiting"]) == {"greedy": 1, "inference": 1}


def test_without_its_configuration_the_plugin_offers_whole_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(capsys, "-f", example("time-slicing.yaml"))

    placed = Counter(each.get("owner", each["pod"]) for each in found["placements"])
    assert placed == {"greedy": 1, "Deployment/inference": 2}


def test_explain_says_which_share_would_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "late", "-q", "-o", "json", "-f", example("shared-card.yaml")]) == 0

    found = json.loads(capsys.readouterr().out)
    assert [(each["change"], each["nodes"]) for each in found["remedies"]] == [
        ("ask for at most 10% of a GPU's compute", ["gpu-0"])
    ]


def test_a_gang_stays_within_one_nvlink_domain_of_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(capsys, "-f", example("nvlink-domains.yaml"))

    assert sorted(each["node"] for each in found["placements"]) == ["node-1", "node-3", "node-5"]


def test_a_gpu_that_a_claim_has_is_nobody_elses_and_the_reverse(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(capsys, "-f", example("one-card-three-ways.yaml"))

    assert cards_of(found, "gpu-0") == [["training"], ["notebook", "serving"]]
    assert [each["message"] for each in found["waiting"]] == ["0/1 nodes are available: 1 cannot allocate all claims."]
    ((pool,),) = (each["pools"] for each in found["devices"])
    assert [(each["name"], each.get("drawnOn", False)) for each in pool["devices"]] == [
        ("gpu-0", False),
        ("gpu-1", True),
    ]
