"""The page on simulation shows a scenario that runs, and names every field that there is."""

import re
from pathlib import Path

import msgspec
import pytest

from mooring.cli.main import run
from mooring.config.scheduler import ConfigObject
from mooring.drivers.sim import scenario
from mooring.drivers.sim.forms import FORMS
from mooring.drivers.sim.traces import TRACES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "simulation.md").read_text()
SCENARIO = re.compile(r"^```yaml\n# scenario.yaml\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE)
CONSOLE = re.compile(r"^```console\n\$ mooring (?P<command>.*)\n(?P<said>(?:.*\n)*?)```$", re.MULTILINE)


def test_the_scenario_runs_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shown, console = SCENARIO.search(PAGE), CONSOLE.search(PAGE)
    assert shown is not None and console is not None
    (tmp_path / "scenario.yaml").write_text(shown["text"])
    monkeypatch.chdir(tmp_path)

    assert run([*console["command"].split(), "--jobs", "1"]) == 0

    assert capfd.readouterr().out == console["said"]


def test_every_field_of_a_scenario_is_on_the_page() -> None:
    types = [
        found
        for found in vars(scenario).values()
        if isinstance(found, type) and issubclass(found, ConfigObject) and found is not ConfigObject
    ]
    names = {field.encode_name for found in types for field in msgspec.structs.fields(found)}

    assert sorted(name for name in (*names, *FORMS) if f"{name}" not in PAGE) == []


def test_every_form_of_trace_is_on_its_page() -> None:
    traces = (DOCS / "traces.md").read_text()

    assert [name for name in TRACES if f"`{name}`" not in traces] == []
