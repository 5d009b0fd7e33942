"""The journeys in the docs can be read: a cycle goes through few files, and every file that they name is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
MOST = {
    "a pod on a cluster": 77,
    "a queued job": 77,
    "a gang that preempts": 78,
    "a gang whose victims are gone": 44,
    "a gang in a rack": 65,
}
"""Files for each walk of `tools/files_in_a_cycle.py`."""
JOURNEYS = sorted((CHECKOUT / "docs").glob("journey-of-*.md"))


def test_a_cycle_does_not_spread_over_more_files() -> None:
    tool = CHECKOUT / "tools" / "files_in_a_cycle.py"
    shown = subprocess.run([sys.executable, str(tool)], capture_output=True, text=True, check=True).stdout

    counts = {title: int(count) for title, count in re.findall(r"^(.+): (\d+) files", shown, re.MULTILINE)}
    assert {title: count for title, count in counts.items() if count > MOST[title]} == {}


@pytest.mark.parametrize("page", JOURNEYS, ids=lambda page: page.stem)
def test_every_file_that_a_journey_names_is_there(page: Path) -> None:
    there = [path.as_posix() for path in (CHECKOUT / "src" / "mooring").rglob("*.py")]
    named = set(re.findall(r"`([a-z_/]+\.py)`", page.read_text()))

    assert named
    assert sorted(name for name in named if not any(path.endswith(f"/{name}") for path in there)) == []
