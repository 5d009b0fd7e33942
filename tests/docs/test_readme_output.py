"""What the README and the guides show of the commands' output is what they print."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OF_ITS_OWN = {"simulation.md", "tutorial.md"}
"""Pages whose files are on the page itself: `test_simulation_guide.py` and `test_tutorial.py` write them first."""
SHOWN = re.compile(r"^```console\n\$ mooring (?P<arguments>.*)\n(?P<output>(?:.*\n)*?)```$", re.MULTILINE)


def shown_commands() -> list[tuple[str, str]]:
    pages = [
        ROOT / "README.md",
        *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in OF_ITS_OWN),
    ]
    return [(found["arguments"], found["output"]) for page in pages for found in SHOWN.finditer(page.read_text())]


@pytest.mark.parametrize(("arguments", "output"), [pytest.param(*shown, id=shown[0]) for shown in shown_commands()])
def test_a_page_shows_what_a_command_prints(arguments: str, output: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}

    ran = subprocess.run(
        [sys.executable, "-m", "mooring", *shlex.split(arguments)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout == output
