"""The page on load shows what its commands print, and names every argument."""

import re
from pathlib import Path

import msgspec
import pytest

from mooring.cli.main import run
from mooring.config.gpu_load import GpuLoadArgs, GpuLoadThresholds, GpuLoadWeights
from mooring.config.load_aware import Aggregated, LoadAwareSchedulingArgs
from mooring.config.trimaran import (
    LoadVariationRiskBalancingArgs,
    LowRiskOverCommitmentArgs,
    PeaksArgs,
    TargetLoadPackingArgs,
)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "load.md").read_text()
CONSOLE = re.compile(r"^```console\n\$ mooring (?P<command>.*)\n(?P<said>(?:.*\n)*?)```$", re.MULTILINE)
NOT_SAID = {"apiVersion", "kind", "NodePowerModel"}
ARGS = (
    GpuLoadArgs,
    GpuLoadThresholds,
    GpuLoadWeights,
    LoadAwareSchedulingArgs,
    Aggregated,
    TargetLoadPackingArgs,
    LoadVariationRiskBalancingArgs,
    LowRiskOverCommitmentArgs,
    PeaksArgs,
)


@pytest.mark.parametrize("shown", list(CONSOLE.finditer(PAGE)), ids=lambda shown: shown["command"])
def test_commands_print_what_the_page_shows(
    shown: re.Match[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)

    assert run(shown["command"].split()) == 0

    assert capfd.readouterr().out == shown["said"]


def test_the_page_shows_commands_and_names_every_argument() -> None:
    names = {field.encode_name for args in ARGS for field in msgspec.structs.fields(args)}

    assert len(CONSOLE.findall(PAGE)) >= 2
    assert sorted(name for name in names - NOT_SAID if f"`{name}`" not in PAGE) == []
