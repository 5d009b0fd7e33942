"""The page on quotas shows what the command prints, and its code does what it says."""

import re
import shlex
from pathlib import Path

import msgspec
import pytest

from mooring.cli.main import run
from mooring.model.quotas.objects import CoreResourceQuota
from mooring.testing.builders import make_pod

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "resource-quotas.md").read_text()
SHOWN = re.compile(r"^```console\n\$ mooring (?P<arguments>.*)\n(?P<output>(?:.*\n)*?)```$", re.MULTILINE)
CODE = re.compile(r"^```python\n(?P<code>(?:.*\n)*?)```$", re.MULTILINE)


def test_the_page_shows_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    shown = SHOWN.search(PAGE)
    assert shown is not None

    assert run(shlex.split(shown["arguments"])) == 0

    assert capsys.readouterr().out == shown["output"]


def test_the_code_on_the_page_checks_charges_and_releases() -> None:
    code = CODE.search(PAGE)
    assert code is not None
    quota = {"metadata": {"name": "team-a"}, "spec": {"hard": {"pods": 0}}}
    names = {
        "objects": [msgspec.convert(quota, CoreResourceQuota)],
        "pod": make_pod("web-3", namespace="team-a"),
    }

    exec(code["code"], names)

    assert names["message"] == (
        'pods "web-3" is forbidden: exceeded quota: team-a, requested: pods=1, used: pods=0, limited: pods=0'
    )
    assert [str(amount) for amount in names["quotas"].used()["team-a"].values()] == ["0"]  # type: ignore[attr-defined]
