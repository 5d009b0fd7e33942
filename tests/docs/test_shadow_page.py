"""The page on the shadow shows what the report prints, and names every metric."""

import re
import shlex
from pathlib import Path

import pytest

from mooring.cli.main import run
from mooring.observe.shadow_log import Outcome
from mooring.observe.shadow_metrics import ShadowMetrics

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "shadow.md").read_text()
SHOWN = re.compile(r"^```console\n\$ mooring (?P<arguments>.*)\n(?P<output>(?:.*\n)*?)```$", re.MULTILINE)


def test_the_page_shows_what_the_report_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    shown = SHOWN.search(PAGE)
    assert shown is not None

    assert run(shlex.split(shown["arguments"])) == 0

    assert capsys.readouterr().out == shown["output"]


def test_the_page_names_every_outcome_and_metric() -> None:
    for outcome in Outcome:
        assert f"| `{outcome.value}` |" in PAGE
    for family in ShadowMetrics().registry.collect():
        if family.name.startswith("mooring_shadow_"):
            assert f"`{family.name}" in PAGE
