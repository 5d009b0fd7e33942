"""kube-scheduler's flags of leader election, as `mooring run` reads them."""

from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run
from mooring.drivers.live import run as live


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[live.RunSettings]:
    """What the driver is started with; it is not."""
    found: list[live.RunSettings] = []
    monkeypatch.setattr(live, "run", found.append)
    return found


def started(given: list[live.RunSettings], *arguments: str) -> dict[str, Any]:
    given.clear()
    assert run(["run", *arguments]) == 0
    return dict(given[0].election)


def test_a_bare_leader_elect_is_true_and_takes_no_word_along(given: list[live.RunSettings]) -> None:
    assert started(given) == {}
    assert started(given, "--leader-elect") == {"leader_elect": True}
    assert started(given, "--leader-elect=true") == {"leader_elect": True}
    assert started(given, "--leader-elect=false") == {"leader_elect": False}
    assert started(given, "--leader-elect", "--seed", "3") == {"leader_elect": True}
    assert given[0].seed == 3


def test_a_word_behind_a_bare_leader_elect_is_no_part_of_it(
    given: list[live.RunSettings], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "--leader-elect", "false"]) == 2
    assert "unexpected extra argument" in capsys.readouterr().err
    assert run(["run", "--leader-elect=perhaps"]) == 2
    assert capsys.readouterr().err == "error: --leader-elect: expected true or false, found 'perhaps'\n"
    assert given == []


def test_leases_are_the_only_lock(given: list[live.RunSettings], capsys: pytest.CaptureFixture[str]) -> None:
    assert started(given, "--leader-elect-resource-lock=leases") == {}
    assert run(["run", "--leader-elect-resource-lock", "endpointsleases"]) == 2
    expected = "error: --leader-elect-resource-lock: expected leases, found 'endpointsleases'\n"
    assert capsys.readouterr().err == expected


def test_the_command_line_says_where_the_lease_is(given: list[live.RunSettings]) -> None:
    found = started(given, "--leader-elect-resource-namespace=ours", "--leader-elect-resource-name=one")
    assert found == {"resource_namespace": "ours", "resource_name": "one"}


def test_plugins_seed_and_context_reach_the_driver(given: list[live.RunSettings], tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    assert run(["run", "--plugin", str(plugin), "--seed", "7", "--context", "there"]) == 0
    assert (given[0].plugins, given[0].seed, given[0].context) == ((plugin,), 7, "there")
