"""Whatever is done to a manifest: no traceback, no exit code but 0, 1 and 2, and bad input is said in one line.

`make fuzz` searches on, with new examples on each run; what it finds becomes a test of its own.
"""

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mutations import mutated_examples

from mooring.cli.main import run

COMMANDS = (
    ("schedule",),
    ("schedule", "-o", "json"),
    ("schedule", "--validate", "ignore"),
    ("queues", "--validate", "ignore"),
    ("explain", "no-such-pod", "--validate", "ignore"),
)


@given(mutated_examples(), st.sampled_from(COMMANDS))
def test_a_mutated_example_is_decided_on_or_refused_in_one_line(steps: list[Any], command: tuple[str, ...]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"mutated-{number}.json" for number in range(len(steps))]
        for file, documents in zip(files, steps, strict=True):
            file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
        then = [word for file in files[1:] for word in ("--then", str(file))]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run([*command, "-f", str(files[0]), *then, "-q"])

    assert code in (0, 1, 2)
    if code == 2:
        assert out.getvalue() == ""
        assert err.getvalue().startswith("error: ")
        assert err.getvalue().count("\n") == 1
        assert len(err.getvalue()) < 5000
        assert "mutated-" in err.getvalue() or command[0] == "explain"
