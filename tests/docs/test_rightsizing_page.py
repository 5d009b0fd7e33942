"""The page on right-sizing shows what its commands print."""

import re
from pathlib import Path

import pytest

from mooring.cli.main import run
from mooring.model.rightsizing.modes import UPDATE_MODES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rightsizing.md").read_text()
CONSOLE = re.compile(r"^```console\n\$ mooring (?P<command>.*)\n(?P<said>(?:.*\n)*?)```$", re.MULTILINE)


@pytest.mark.parametrize("shown", list(CONSOLE.finditer(PAGE)), ids=lambda shown: shown["command"])
def test_commands_print_what_the_page_shows(
    shown: re.Match[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)

    assert run(shown["command"].split()) == 0

    assert capfd.readouterr().out == shown["said"]


def test_the_page_shows_commands_and_names_every_update_mode() -> None:
    assert len(CONSOLE.findall(PAGE)) >= 1
    assert [mode for mode in UPDATE_MODES if f"`{mode}`" not in PAGE] == []
