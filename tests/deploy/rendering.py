"""The Helm chart, rendered by Helm's own library."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
BINARIES = Path(os.environ.get("MOORING_BINARIES") or CACHE / "mooring" / "deploy")
Documents = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="session")
def renderer() -> Path:
    """Helm's own library, which a small program of ours calls; built once, and kept beside the other programs."""
    if shutil.which("go") is None:
        pytest.skip("there is no Go")
    source = Path(__file__).parent
    mark = hashlib.sha256(b"".join((source / name).read_bytes() for name in ("render.go", "go.mod", "go.sum")))
    path = BINARIES / f"render-{mark.hexdigest()[:12]}"
    if not path.exists():
        environment = os.environ | {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false"}
        if subprocess.run(["go", "mod", "download"], env=environment, cwd=source, capture_output=True).returncode:
            pytest.skip("Helm's library cannot be downloaded")
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        subprocess.run(["go", "build", "-o", str(unfinished), "."], check=True, env=environment, cwd=source)
        unfinished.rename(path)
    return path


def helm(renderer: Path, values: dict[str, Any], namespace: str = "kube-system") -> "subprocess.CompletedProcess[str]":
    command = [str(renderer), str(CHART), "mooring", namespace]
    return subprocess.run(command, input=json.dumps(values), capture_output=True, text=True)


def render(renderer: Path, namespace: str = "kube-system", **values: Any) -> Documents:
    found = helm(renderer, values, namespace)
    assert found.returncode == 0, found.stderr
    documents = [
        each
        for path, text in json.loads(found.stdout).items()
        if path.endswith(".yaml")
        for each in yaml.safe_load_all(text)
        if each
    ]
    return {(each["kind"], each["metadata"]["name"]): each for each in documents}
