"""Decisions recorded from kube-scheduler's own plugins (`tests/golden`), taken again by ours: they agree exactly."""

from pathlib import Path

import pytest

from mooring.testing.conformance import main

GOLDEN = Path(__file__).parents[1] / "golden"

AGREED = (
    "resources",
    "taints",
    "nodeaffinity",
    "podaffinity",
    "spread",
    "images_ports",
    "mix",
    "volumes",
    "preemption",
)


@pytest.mark.parametrize("name", AGREED)
def test_every_scenario_is_decided_as_kube_scheduler_decides_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code = main([str(GOLDEN / f"{name}.jsonl.gz")])

    assert (capsys.readouterr().out, exit_code) == (f"AGREE 200/200 {name}.jsonl.gz\n", 0)


def test_claims_get_the_nodes_and_scores_that_kubernetes_allocator_gives_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exit_code = main([str(GOLDEN / "devices.jsonl.gz")])

    assert (capsys.readouterr().out, exit_code) == ("AGREE 193/193 devices.jsonl.gz\n", 0)


def test_answers_are_written_one_line_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code = main([str(GOLDEN / "taints.jsonl.gz"), "--answers", str(tmp_path)])

    lines = (tmp_path / "taints.jsonl").read_text().splitlines()
    assert (exit_code, len(lines)) == (0, 200)
    assert lines[0].startswith('{"id": "taints-')
    assert capsys.readouterr().out == "AGREE 200/200 taints.jsonl.gz\n"
