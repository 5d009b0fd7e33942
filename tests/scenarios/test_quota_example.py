"""The example on quotas makes its point: who gets in, who is kept out, and in which words."""

import json
from pathlib import Path

import pytest

from mooring.cli.main import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "quotas"


def test_quotas_and_limits_keep_out_what_there_would_be_room_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", "-f", str(EXAMPLE), "-o", "json"]) == 0

    result = json.loads(capsys.readouterr().out)
    assert {found["pod"] for found in result["placements"]} == {
        "notebook",
        "indexer",
        "classifier-0",
        "classifier-1",
        "classifier-2",
    }
    exceeded = (
        "exceeded quota: batch, requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=12, "
        "limited: requests.nvidia.com/gpu=12"
    )
    assert {found["name"]: found["message"] for found in result["forbidden"]} == {
        "classifier-3": f'pods "classifier-3" is forbidden: {exceeded}',
        "classifier-4": f'pods "classifier-4" is forbidden: {exceeded}',
        "undecided": 'pods "undecided" is forbidden: failed quota: batch: must specify requests.cpu for: main',
        "greedy": (
            'pods "greedy" is forbidden: [maximum cpu usage per Container is 16, but limit is 32, '
            "maximum memory usage per Container is 64Gi, but limit is 128Gi]"
        ),
        "loud": (
            'Pod "loud" is invalid: spec.containers[0].resources.requests: Invalid value: "8": '
            "must be less than or equal to cpu limit of 4"
        ),
    }
    assert result["waiting"] == []
