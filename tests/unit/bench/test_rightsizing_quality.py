"""Recommendations are judged by usage whose truth is known."""

import json

import numpy as np
import pytest

from mooring.bench.rightsizing_quality import compare, main
from mooring.bench.usage_traces import GROWING, KINDS, MINUTES_A_DAY, make_containers, minutes


def test_the_same_seed_makes_the_same_usage_and_each_kind_what_it_says() -> None:
    first, second = (
        list(minutes(make_containers(10, generator), 2, generator))
        for generator in (np.random.default_rng(1), np.random.default_rng(1))
    )

    assert all(np.array_equal(one.memory, other.memory) for one, other in zip(first, second, strict=True))
    growing = KINDS.index(GROWING)
    day = [np.mean([one.memory[growing] for one in first[MINUTES_A_DAY * n : MINUTES_A_DAY * (n + 1)]]) for n in (0, 1)]
    assert day[1] == pytest.approx(day[0] * 1.075 / 1.025, rel=0.02)


def test_right_sized_containers_are_killed_less_and_hold_less_cpu_in_vain() -> None:
    generator = np.random.default_rng(0)

    found = compare(make_containers(20, generator), 3, generator)

    by_hand, sized = found["sized by hand"], found["right-sized"]
    assert sized["cpu_slack"]["all"] < by_hand["cpu_slack"]["all"] - 0.1
    assert sized["kills_a_day"]["all"] < 0.01 * by_hand["kills_a_day"]["all"]
    assert 0 < sized["changes_a_day"]["all"] < 2


def test_the_command_prints_the_published_figures_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--containers", "5", "--days", "2", "-o", "json"])

    found = json.loads(capsys.readouterr().out)
    assert found["published_slack"] == {"Autopilot": 0.23, "sized by hand": 0.46}
    assert found["right-sized"]["memory_slack"].keys() == {"all", *KINDS}
