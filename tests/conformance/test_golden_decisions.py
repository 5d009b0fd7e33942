"""Decisions recorded from kube-scheduler's own plugins (`tests/golden`), taken again by ours: they agree exactly."""

from pathlib import Path

import pytest

from mooring.testing.conformance import answer_scenario, differences, is_supported, main, read_scenarios

GOLDEN = Path(__file__).parents[1] / "golden"

AGREED = ("resources", "taints", "nodeaffinity", "podaffinity", "spread", "images_ports", "mix", "volumes")
"""All of these are decided, and all as recorded."""
IN_PART = ("devices", "preemption")
"""Of these, the scenarios without resource claims and without victims are decided so far."""


def golden(name: str) -> Path:
    return GOLDEN / f"{name}.jsonl.gz"


@pytest.mark.parametrize("name", AGREED)
def test_every_scenario_is_decided_as_kube_scheduler_decides_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code = main([str(golden(name))])

    assert (capsys.readouterr().out, exit_code) == (f"AGREE 200/200 {name}.jsonl.gz\n", 0)


@pytest.mark.parametrize("name", IN_PART)
def test_what_is_supported_of_the_others_is_decided_as_kube_scheduler_decides_it(name: str) -> None:
    supported = [scenario for scenario in read_scenarios(golden(name)) if is_supported(scenario)]

    disagreements = {
        scenario["id"]: found
        for scenario in supported
        if (found := list(differences(scenario["expect"], answer_scenario(scenario))))
    }

    assert disagreements == {}


@pytest.mark.parametrize("name", IN_PART)
def test_what_is_not_supported_yet_is_counted_and_not_called_agreement(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = list(read_scenarios(golden(name)))
    supported = sum(is_supported(scenario) for scenario in scenarios)
    left_out = len(scenarios) - supported

    exit_code = main([str(golden(name))])

    remark = f" ({left_out} not supported yet)" if left_out else ""
    expected = f"AGREE {supported}/{len(scenarios)} {name}.jsonl.gz{remark}\n"
    assert (capsys.readouterr().out, exit_code) == (expected, 1 if left_out else 0)
