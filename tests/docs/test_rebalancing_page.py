"""The page on rebalancing shows what its commands print, and names every field of the policy."""

import re
from pathlib import Path

import msgspec
import pytest

from mooring.cli.main import run
from mooring.config.rebalance_policy import RebalancePolicy
from mooring.config.settings import parse_settings, read_settings_text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rebalancing.md").read_text()
CONSOLE = re.compile(r"^```console\n\$ mooring (?P<command>.*)\n(?P<said>(?:.*\n)*?)```$", re.MULTILINE)
YAML = re.compile(r"^```yaml\n((?:.*\n)*?)```$", re.MULTILINE)


@pytest.mark.parametrize("shown", list(CONSOLE.finditer(PAGE)), ids=lambda shown: shown["command"][-20:])
def test_commands_print_what_the_page_shows(
    shown: re.Match[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)

    assert run(shown["command"].split()) == 0

    assert capfd.readouterr().out == shown["said"]


def test_the_policy_of_the_page_is_the_default() -> None:
    (text,) = YAML.findall(PAGE)
    strategies = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n---\n"

    settings = parse_settings(read_settings_text(strategies + text, "page"), "page")

    assert settings.rebalancing is not None
    assert settings.rebalancing.policy == RebalancePolicy()


def test_the_page_shows_commands_and_names_every_field() -> None:
    names = {field.encode_name for field in msgspec.structs.fields(RebalancePolicy)} - {"apiVersion", "kind"}

    assert len(CONSOLE.findall(PAGE)) == 2
    assert sorted(name for name in names if f"`{name}`" not in PAGE) == []
