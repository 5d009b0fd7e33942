"""What commands print has a version and a documented form."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CAPACITY = str(ROOT / "examples" / "capacity")
EXAMPLE = str(ROOT / "examples" / "tenants" / "two-teams" / "1-cluster.yaml")


def printed(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "mooring", *arguments, "-o", "json", "--quiet"]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("Schedule", ("schedule", "-f", EXAMPLE)),
        ("Queues", ("queues", "-f", EXAMPLE)),
        ("Explanation", ("explain", "production/job/serve", "-f", EXAMPLE)),
        ("Capacity", ("capacity", "-f", f"{CAPACITY}/cluster.yaml", "--catalogue", f"{CAPACITY}/catalogue.yaml")),
    ],
)
def test_what_is_printed_has_its_version_and_all_fields_of_its_schema(kind: str, arguments: tuple[str, ...]) -> None:
    found = printed(*arguments)
    schema = json.loads((ROOT / "docs" / "schemas" / f"{kind}.json").read_text())

    assert (found["apiVersion"], found["kind"]) == ("mooring.dev/v1", kind)
    assert set(schema["required"]) <= found.keys() <= schema["properties"].keys()


def test_the_documented_schemas_are_those_of_the_code() -> None:
    path = ROOT / "tools" / "output_schemas.py"
    spec = importlib.util.spec_from_file_location("output_schemas", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    for kind in module.PRINTED:
        written = json.loads((ROOT / "docs" / "schemas" / f"{kind}.json").read_text())
        assert written == json.loads(json.dumps(module.schema(kind)))
