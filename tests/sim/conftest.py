"""Scenarios as mappings: a small cluster and some work in, the run out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mooring.drivers.sim.reading import read_scenario
from mooring.drivers.sim.runs import Prepared, simulate
from mooring.report.simulation.results import Run

HEAD = {"apiVersion": "config.mooring.dev/v1alpha1", "kind": "Simulation", "name": "test"}


@pytest.fixture
def prepare(tmp_path: Path) -> Callable[..., Prepared]:
    def read(**parts: Any) -> Prepared:
        path = tmp_path / "scenario.yaml"
        path.write_text(yaml.safe_dump({**HEAD, **parts}))
        return read_scenario(path)

    return read


@pytest.fixture
def run(prepare: Callable[..., Prepared]) -> Callable[..., Run]:
    def one(policy: str = "default", seed: int = 0, **parts: Any) -> Run:
        return simulate(prepare(**parts), policy, seed)

    return one
