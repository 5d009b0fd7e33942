"""The preemption example makes its point: who has to go, who stays, and what the table says of it."""

import json
from pathlib import Path

import pytest

from mooring.cli.main import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "preemption"


def test_inference_evicts_the_development_pods_of_one_node_and_touches_no_training(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["schedule", "-f", str(EXAMPLE), "-o", "json"]) == 0

    result = json.loads(capsys.readouterr().out)
    assert [(found["pod"], found["node"]) for found in result["placements"]] == [("chat", "gpu-1")]
    assert [(found["pod"], found["node"], found["preemptor"]) for found in result["evicted"]] == [
        (f"notebook-{index}", "gpu-1", "serving/chat") for index in range(4)
    ]
    assert result["waiting"] == []
    assert (result["summary"]["evicted"], result["summary"]["alreadyBound"]) == (4, 4)


def test_the_table_says_who_has_to_go_and_for_whom(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", "-f", str(EXAMPLE)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 pod placed on 1 node, 0 wait, 4 bound before, 4 evicted; 3 nodes in all"
    assert lines[lines.index("EVICTED") + 2].split() == [
        "research",
        "notebook-0",
        "100",
        "gpu-1",
        "serving/chat",
        "10000",
    ]


def test_explain_says_how_room_is_made_and_for_whom_a_pod_has_to_go(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "chat", "-f", str(EXAMPLE)]) == 0
    chat = capsys.readouterr().out.splitlines()[0]
    assert run(["explain", "notebook-2", "-f", str(EXAMPLE)]) == 0
    notebook = capsys.readouterr().out.splitlines()[0]

    victims = ", ".join(f"research/notebook-{index}" for index in range(4))
    assert chat == f"pod serving/chat goes to gpu-1: room is made for it by evicting {victims}"
    assert notebook == (
        "pod research/notebook-2 is evicted: it makes room for serving/chat, which has a higher priority"
    )
