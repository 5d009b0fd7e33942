"""Recorded decisions of Volcano, KAI and YuniKorn about shares, file by file: ours must be the same in every case."""

from pathlib import Path

import pytest

from mooring.testing.conformance import read_scenarios
from mooring.testing.share_conformance import answer_scenario, differences, is_shares

FILES = sorted(Path(__file__).parent.glob("*.jsonl.gz"))


def test_all_files_are_there() -> None:
    families = [path.name.partition("-")[0] for path in FILES]
    assert {family: families.count(family) for family in families} == {"kai": 4, "volcano": 7, "yunikorn": 2}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_every_recorded_case_is_decided_as_the_original_decides_it(path: Path) -> None:
    scenarios = list(read_scenarios(path))

    wrong = {
        scenario["id"]: found
        for scenario in scenarios
        if (found := list(differences(scenario["expect"], answer_scenario(scenario))))
    }

    assert len(scenarios) >= 20
    assert all(is_shares(scenario) for scenario in scenarios)
    assert wrong == {}
