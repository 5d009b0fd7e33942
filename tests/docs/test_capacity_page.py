"""The page on capacity shows what its commands print, and its catalogue can be read."""

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from mooring.cli.main import run
from mooring.config.catalogue import CatalogueConfig, InstanceTypeConfig, OfferingConfig, parse_catalogue

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "capacity.md").read_text()
CONSOLE = re.compile(r"^```console\n\$ mooring (?P<command>.*)\n(?P<said>(?:.*\n)*?)```$", re.MULTILINE)


@pytest.mark.parametrize("shown", list(CONSOLE.finditer(PAGE)), ids=lambda shown: shown["command"])
def test_commands_print_what_the_page_shows(
    shown: re.Match[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)

    assert run(shown["command"].split()) == 0

    assert capfd.readouterr().out == shown["said"]


def test_the_page_shows_commands_a_catalogue_and_all_of_its_fields() -> None:
    shown = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    fields = {
        field.encode_name
        for type_ in (CatalogueConfig, InstanceTypeConfig, OfferingConfig)
        for field in msgspec.structs.fields(type_)
    }

    assert len(CONSOLE.findall(PAGE)) == 2
    assert [each.name for each in parse_catalogue(yaml.safe_load(shown[1]), "page")] == ["general-8"]
    assert sorted(name for name in fields - {"apiVersion", "kind", "instanceTypes"} if f"`{name}`" not in PAGE) == []
