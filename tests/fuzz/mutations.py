"""Manifests of the examples, and structural mutations of them: what a slip of the hand or a bad template does."""

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from mooring.model.yaml_text import read_yaml

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_DOCUMENTS = 60
"""Larger examples are left out: what goes wrong with one shows in fewer documents too."""

NUMBERS: tuple[Any, ...] = (0, 1, 2, 3, 7, 50, -1, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e308)
QUANTITIES = (
    "0",
    "1",
    "2",
    "500m",
    "3Gi",
    "1E",
    "10Ei",
    "1e30",
    "0.0001m",
    "-1",
    "10m",
    "99999h",
    "-10m",
    "50%",
    "101%",
)
WORDS = ("", " ", "x", "default", "a" * 300, "a/b/c", "*", "NaN", "inf", "2026-02-30", "9" * 400, "é\n\u202e")
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], [{}], {"": None}, {"a": {"b": {"c": []}}})


def odd_values(value: Any) -> st.SearchStrategy[Any]:
    """What may stand in the place of a value: mostly something of its own type, which decoding does not refuse."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return st.sampled_from((*OTHERS, *NUMBERS, *WORDS))
    likely = NUMBERS if isinstance(value, int) else QUANTITIES if value[:1].isdigit() else (*WORDS, *QUANTITIES)
    return st.sampled_from((*likely, *likely, *likely, *OTHERS))


Steps = tuple[Any, ...]


@cache
def examples() -> dict[str, list[Any]]:
    """By the folder's name: for each step the documents that are decided on together. Only stories have several."""
    found: dict[str, list[Any]] = {}
    for folder in sorted({file.parent for file in EXAMPLES.rglob("*.yaml")}):
        files = sorted(folder.glob("*.yaml"))
        steps = [_documents(file) for file in files]
        if not files[0].name.startswith("1-"):
            steps = [[document for step in steps for document in step]]
        if 0 < sum(map(len, steps)) <= MOST_DOCUMENTS:
            found[str(folder.relative_to(EXAMPLES))] = [step for step in steps if step]
    return found


def _documents(file: Path) -> list[Any]:
    found = (document.value for document in read_yaml(file.read_bytes()))
    return [document for document in found if document and "config" not in str(document.get("apiVersion", ""))]


def paths(value: Any, above: Steps = ()) -> Iterator[Steps]:
    """The way to every value below this one."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*above, key)
        yield from paths(item, (*above, key))


def _holder(documents: list[Any], way: Steps) -> Any:
    found: Any = documents
    for step in way[:-1]:
        found = found[step]
    return found


@st.composite
def mutated_examples(draw: st.DrawFn) -> list[Any]:
    """The steps of an example with up to three slips inside their documents."""
    name = draw(st.sampled_from(sorted(examples())))
    steps = copy.deepcopy(examples()[name])
    for _ in range(draw(st.integers(1, 3))):
        ways = [way for way in paths(steps) if len(way) > 1]
        if ways:
            _mutate(draw, steps, draw(st.sampled_from(ways)), ways)
    return steps


def _mutate(draw: st.DrawFn, documents: list[Any], way: Steps, ways: list[Steps]) -> None:
    holder, key = _holder(documents, way), way[-1]
    match draw(st.sampled_from(("replace", "replace", "replace", "drop", "double", "rename", "move", "wrap"))):
        case "replace":
            holder[key] = copy.deepcopy(draw(odd_values(holder[key])))
        case "drop":
            del holder[key]
        case "double" if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case "rename" if isinstance(holder, dict):
            holder[draw(st.sampled_from((f"{key}s", str(key)[:-1], str(key).upper(), "name", "spec")))] = holder.pop(
                key
            )
        case "move":
            other = draw(st.sampled_from(ways))
            holder[key] = copy.deepcopy(_holder(documents, other)[other[-1]])
        case _:
            holder[key] = [holder[key]]
