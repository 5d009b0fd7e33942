"""`mooring dashboard` as a process of its own, for tests that open its pages."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def dashboard(*arguments: str | Path) -> Iterator[str]:
    """Start it on a free port, and give its link without the last slash."""
    command = [sys.executable, "-m", "mooring", "dashboard", "-q", "--address", "127.0.0.1:0"]
    process = subprocess.Popen([*command, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("dashboard: http://"), line
        yield line.removeprefix("dashboard: ").strip().rstrip("/")
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()
