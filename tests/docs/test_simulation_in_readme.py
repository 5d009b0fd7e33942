"""What the README shows of `mooring simulate` is what it prints; it leaves lines out."""

import re
import shlex
from pathlib import Path

import pytest

from mooring.cli.main import run

ROOT = Path(__file__).parents[2]
SHOWN = re.compile(r"^```\n\$ mooring (simulate .*) --report out.html\n((?:.*\n)*?)\.\.\.\n```$", re.MULTILINE)


def test_the_readme_shows_lines_that_the_simulation_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = SHOWN.search((ROOT / "README.md").read_text())
    assert found is not None
    monkeypatch.chdir(ROOT)

    assert run([*shlex.split(found[1]), "--quiet"]) == 0

    printed = capsys.readouterr().out.splitlines()
    shown = found[2].splitlines()
    assert [line for line in printed if line in shown] == shown
