"""The page on colocation shows what its command prints, and names every field of a profile."""

import re
from pathlib import Path

import msgspec
import pytest

from mooring.cli.main import run
from mooring.model.api.colocation_profile import ColocationProfileSpec

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "colocation.md").read_text()
CONSOLE = re.compile(r"^```console\n\$ mooring (?P<command>.*)\n(?P<said>(?:.*\n)*?)```$", re.MULTILINE)


def test_the_command_prints_what_the_page_shows(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (shown,) = CONSOLE.finditer(PAGE)

    assert run(shown["command"].split()) == 0

    assert capfd.readouterr().out == shown["said"]


def test_without_measurements_all_wait(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)

    assert run(["schedule", "-q", "-f", "examples/colocation/cluster.yaml"]) == 0

    assert capfd.readouterr().out.startswith("no pods placed, 7 wait")


def test_every_field_of_a_profile_is_named() -> None:
    names = {field.encode_name for field in msgspec.structs.fields(ColocationProfileSpec)}

    assert sorted(name for name in names if f"`{name}`" not in PAGE) == []
