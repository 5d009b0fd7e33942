"""The example on quotas makes its point: who gets in, who is kept out, and in which words."""

import json
from pathlib import Path

import pytest

from mooring.cli.main import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "quotas"


def test_quotas_and_limits_keep_out_what_there_would_be_room_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", "-f", str(EXAMPLE), "-o", "json"]) == 0

    result = json.loads(capsys.readouterr().out)
    placed = sorted(found["pod"].partition("-")[0] for found in result["placements"])
    assert placed == ["classifier", "classifier", "classifier", "indexer", "notebook"]
    exceeded = (
        "exceeded quota: batch, requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=12, "
        "limited: requests.nvidia.com/gpu=12"
    )
    forbidden = {found["name"]: found["message"] for found in result["forbidden"]}
    kept_out = [name for name in forbidden if name.startswith("classifier-")]
    assert [forbidden.pop(name) for name in kept_out] == [
        f'pods "{name}" is forbidden: {exceeded}' for name in kept_out
    ]
    assert len(kept_out) == 2
    assert forbidden == {
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
