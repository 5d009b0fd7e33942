"""Node pools as `mooring schedule` and `mooring explain` show them, by the example that people start from."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.cli.main import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "node-pools"
FILES = ["-f", str(EXAMPLE / "cluster.yaml"), "-f", str(EXAMPLE / "work.yaml"), "-q"]
CONFIG = ["--config", str(EXAMPLE / "scheduler.yaml")]
STAYS = "movesBack: false"
Json = dict[str, Any]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: str) -> str:
        assert run([*words, *FILES]) == 0
        return capsys.readouterr().out

    return call


def told(text: str) -> Json:
    found: Json = msgspec.json.decode(text)
    return found


def section(text: str, title: str) -> list[list[str]]:
    """The cells of each line of a table, which are two blanks apart."""
    lines = iter(text.splitlines())
    next(line for line in lines if line.startswith(title))
    table = []
    while line := next(lines, ""):
        table.append([cell.strip() for cell in line.split("  ") if cell.strip()])
    return table


def test_nodes_are_shown_by_the_pools_that_are_configured(said: Any) -> None:
    pools = told(said("schedule", *CONFIG, "-o", "json"))["pools"]

    shown = [{name: value for name, value in pool.items() if name != "resources"} for pool in pools]
    assert shown == [
        {"name": "(no pool)", "nodes": 1, "pods": 2},
        {"name": "research", "nodes": 1, "pods": 1, "policy": "Dedicated"},
        {"name": "serving", "nodes": 2, "pods": 4, "policy": "Reserved", "reservedPercent": 40, "movesBack": True},
    ]


def test_the_table_has_their_policies(said: Any) -> None:
    assert [cells[:4] for cells in section(said("schedule", *CONFIG), "POOL ")] == [
        ["(no pool)", "-", "1", "2"],
        ["research", "Dedicated", "1", "1"],
        ["serving", "Reserved 40%, moves back", "2", "4"],
    ]


def test_without_pools_in_the_configuration_nothing_is_said_of_policies(said: Any) -> None:
    text = said("schedule")

    assert "POLICY" not in text
    assert [set(pool) for pool in told(said("schedule", "-o", "json"))["pools"]] == [
        {"name", "nodes", "pods", "resources"}
    ]


def test_a_label_that_is_given_comes_before_the_configuration(said: Any) -> None:
    pools = told(said("schedule", *CONFIG, "--pool-label", "kind", "-o", "json"))["pools"]

    assert [pool["name"] for pool in pools] == ["(no pool)", "serving"]
    assert not any("policy" in pool for pool in pools)


def test_pods_are_told_where_they_stand_to_each_pool(said: Any, tmp_path: Path) -> None:
    stays = tmp_path / "stays.yaml"
    stays.write_text((EXAMPLE / "scheduler.yaml").read_text().replace("movesBack: true", STAYS))

    def pools(pod: str, *config: str) -> list[list[str]]:
        return section(said("explain", pod, *config), "NODE POOLS")[1:]

    closed = ["research", "Dedicated", "not allowed: dedicated to others"]
    back = "Reserved 40%, moves back"
    assert pools("shop/web-3", *CONFIG) == [["serving", back, "its own, where it is"], closed]
    spilled = "its own, from which it spilled over to any-0"
    assert pools("shop/web-3", "--config", str(stays)) == [["serving", "Reserved 40%", spilled], closed]
    assert pools("research/train-1", *CONFIG) == [
        ["research", "Dedicated", "its own; it waits for room there"],
        ["serving", back, "not allowed: it has a dedicated pool"],
    ]
    nightly = pools("shop/job/nightly", *CONFIG)
    assert nightly == [closed, ["serving", back, "allowed, in 60% of each node, which others share"]]


def test_the_same_as_data(said: Any) -> None:
    found = told(said("explain", "research/train-0", *CONFIG, "-o", "json"))

    assert found["pools"] == [
        {"pool": "research", "policy": "Dedicated", "standing": "own", "isThere": True},
        {
            "pool": "serving",
            "policy": "Reserved",
            "standing": "not allowed",
            "reservedPercent": 40,
            "movesBack": True,
        },
    ]
    assert "pools" not in told(said("explain", "research/train-0", "-o", "json"))
