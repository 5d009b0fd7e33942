"""The command as a function: arguments in; exit code, standard output and standard error out."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from mooring.cli.main import run


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def mooring(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def call(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def to_file(text: str, name: str = "cluster.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return to_file
