"""What actions keep between cycles stands in a list with a reason each; all else that changes is local to one call."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from reachable import classes_kept_by
from whole_stories import Story

from mooring.engine.cycle import Scheduler

TOOL = Path(__file__).resolve().parents[2] / "tools" / "mutating_classes.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutating_classes", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_whatever_is_listed_is_there_and_has_a_reason(tool: ModuleType) -> None:
    changing = {name for name, _ in tool.classes_in(tool.SOURCES / "actions")}

    gone = sorted(set(tool.reasons()) - changing)
    assert not gone, f"these do not change any more, or are gone: {gone}"
    assert all(tool.reasons().values())


def test_whatever_is_kept_between_cycles_is_listed(tool: ModuleType) -> None:
    changing = {name for name, _ in tool.classes_in(tool.SOURCES / "actions")}
    kept: set[str] = set()

    def look(scheduler: Scheduler) -> None:
        for found in classes_kept_by(scheduler.actions, "mooring.actions.", [scheduler.cluster]):
            bases = [base for base in found.__mro__ if base.__module__.startswith("mooring.actions.")]
            kept.update(f"{base.__module__.replace('.', '/')}.py {base.__name__}" for base in bases)

    for seed in range(30):
        Story(seed).tell(look)

    kept = {name.removeprefix("mooring/") for name in kept} & changing
    assert len(kept) > len(tool.reasons()) // 2, "hardly anything is found"
    unlisted = sorted(kept - set(tool.reasons()))
    assert not unlisted, f"these are kept between cycles, and tools/kept_by_actions.toml does not say why: {unlisted}"
