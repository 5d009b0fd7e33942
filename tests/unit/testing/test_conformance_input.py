"""What the conformance runner says of files that it cannot use."""

import gzip
import json
from pathlib import Path

import pytest

from mooring.testing.conformance import main


def test_scenarios_of_an_unknown_form_are_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps({"id": "odd-1", "config": {}, "nodes": []}).encode()))

    assert main([str(path)]) == 2

    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and said[0].startswith(f"{path}: expected scenarios of a form that is known here, found: ")
