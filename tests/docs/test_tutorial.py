"""The tutorial does what it says: its files are used, and its commands print what the page shows."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
FILE = re.compile(r"[Ss]ave this as `(?P<name>[\w.]+)`:\n\n```yaml\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)
UP = re.compile(r"^mooring (?P<arguments>up .*)$", re.MULTILINE)
KUBECTL = os.environ.get("MOORING_KUBECTL") or shutil.which("kubectl")
PATIENCE = 180.0
"""Seconds until the cluster is up, on a machine that is busy with other tests."""


def shown(program: str) -> list[tuple[list[str], str]]:
    """The commands of a program on the page, in order, each with what the page says that it prints."""
    commands: list[tuple[list[str], str]] = []
    for block in CONSOLE.finditer(PAGE):
        for part in re.split(r"^\$ ", block["lines"], flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            commands.append((shlex.split(line), output))
    return [(arguments[1:], output) for arguments, output in commands if arguments[0] == program]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of the page."""
    for found in FILE.finditer(PAGE):
        (tmp_path / found["name"]).write_text(found["text"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cluster.yaml",
        "evaluate.yaml",
        "more.yaml",
        "train.yaml",
    ]
    return tmp_path


def test_commands_print_what_the_tutorial_shows(folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    assert [arguments[0] for arguments, _ in shown("mooring")] == ["schedule", "explain", "schedule"]

    for arguments, output in shown("mooring"):
        command = [sys.executable, "-m", "mooring", *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)

        assert done.stdout == output


@pytest.fixture
def cluster(folder: Path) -> Iterator[Path]:
    """The cluster of the page, at a free port."""
    (arguments,) = [found["arguments"] for found in UP.finditer(PAGE)]
    command = [sys.executable, "-m", "mooring", *arguments.replace("--port 7440", "--port 0").split()]
    with (folder / "said").open("w") as said:
        server = subprocess.Popen(command, cwd=folder, stdout=said)
    until = time.monotonic() + PATIENCE
    while "Ctrl-C" not in (folder / "said").read_text():
        assert server.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    yield folder
    server.terminate()
    assert server.wait(60) == 0


@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl")
def test_a_gang_runs_as_the_tutorial_shows(cluster: Path) -> None:
    environment = {**os.environ, "HOME": str(cluster)}

    for arguments, output in shown("kubectl"):
        command = [str(KUBECTL), *arguments]
        done = subprocess.run(command, cwd=cluster, env=environment, capture_output=True, text=True, check=False)

        said = re.sub(r"(?m)^(pod/evaluate-)\w+$", r"\1…", done.stdout)
        assert (done.returncode, said) == (0, output), done.stderr
