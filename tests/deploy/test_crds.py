"""The definitions in deploy/crds are generated, and right for what people apply; live tests install them."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mooring.kubeapi.definitions.structural import prune
from mooring.kubeapi.definitions.validation import check_schema

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "crds.py"))
FILES = sorted((ROOT / "deploy" / "crds").glob("*.yaml"))
DEFINITIONS = {
    (f"{definition['spec']['group']}/{version['name']}", definition["spec"]["names"]["kind"]): version
    for path in FILES
    for definition in yaml.safe_load_all(path.read_text())
    for version in definition["spec"]["versions"]
}


def schema_of(kind: str) -> dict[str, Any]:
    (found,) = (version for (_, name), version in DEFINITIONS.items() if name == kind)
    schema: dict[str, Any] = found["schema"]["openAPIV3Schema"]
    return schema


def examples() -> Iterator[Any]:
    """The objects of these kinds in the example folders."""
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        try:
            documents = list(yaml.safe_load_all(path.read_text()))
        except yaml.YAMLError:
            continue
        for document in documents:
            if not isinstance(document, dict):
                continue
            key = (str(document.get("apiVersion")), str(document.get("kind")))
            if key in DEFINITIONS:
                yield pytest.param(document, DEFINITIONS[key], id=f"{path.relative_to(ROOT)} {key[1]}")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_schemas_are_up_to_date(path: Path) -> None:
    assert path.read_text() == TOOL["text_of"](path), "run python tools/crds.py"


@pytest.mark.parametrize(("document", "version"), list(examples()))
def test_the_examples_are_kept_as_they_are(document: dict[str, Any], version: dict[str, Any]) -> None:
    schema = version["schema"]["openAPIV3Schema"]

    decoded = prune(document, schema)

    assert decoded.strict == []
    assert decoded.value == document
    assert check_schema(document, schema, "") == []


def test_a_misspelt_field_is_noticed() -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "spec": {"cohortNme": "all"}}

    decoded = prune(queue, schema_of("ClusterQueue"))

    assert decoded.value["spec"] == {}
    assert any("cohortNme" in each for each in decoded.strict)


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        (
            "ClusterQueue",
            {"preemption": {"borrowWithinCohort": {"maxPriorityThreshold": "high"}}},
            "maxPriorityThreshold",
        ),
        ("LocalQueue", {"clusterQueue": ["a"]}, "clusterQueue"),
        ("ResourceFlavor", {"nodeLabels": {"pool": 1}}, "nodeLabels"),
    ],
)
def test_a_value_of_another_type_is_refused(kind: str, spec: dict[str, Any], field: str) -> None:
    (error,) = check_schema({"spec": spec}, schema_of(kind), "")

    assert field in error.field
