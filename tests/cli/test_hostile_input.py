"""Input made to hurt: each is refused in one short line, quickly, with exit code 2."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]
Write = Callable[..., Path]

BOMB = "kind: [\n" + "".join(f"&a{n} [{f'*a{n - 1}, ' * 10 if n else 'x, '}],\n" for n in range(10)) + "]\n"

DOCUMENTS = [
    pytest.param("kind: !!int x", "cluster.yaml: document 1: line 1, column 7: expected YAML, found !!int", id="tag"),
    pytest.param("kind: &a [*a]", "found an alias of &a inside itself", id="recursive alias"),
    pytest.param("kind: " + "[" * 500, "found more than 200 levels of lists and objects", id="nested lists"),
    pytest.param(BOMB, "found aliases that stand for more than 1,000,000 values", id="alias bomb"),
    pytest.param("kind: Pod\nmetadata: {name: 2026-02-30x, y", "expected YAML", id="date and no end"),
]


@pytest.mark.parametrize(("text", "words"), DOCUMENTS)
def test_hostile_yaml_is_bad_input(mooring: Call, write: Write, text: str, words: str) -> None:
    outcome = mooring("schedule", "-f", write(text))

    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


def nested(levels: int) -> str:
    return '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "x": ' + "[" * levels + "]" * levels + "}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(nested(1100), "expected at most 200 levels of lists and objects", id="nested lists"),
        pytest.param(
            '{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"priority": ' + "9" * 5000 + "}}",
            "document.json",
            id="a number of 5,000 digits",
        ),
        pytest.param("[" * 100_000, "expected", id="no object"),
    ],
)
def test_hostile_json_is_bad_input(mooring: Call, write: Write, text: str, words: str) -> None:
    outcome = mooring("schedule", "-f", write(text, "document.json"))

    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("kind: 2026-02-30", "kind: expected KubeSchedulerConfiguration", id="impossible date"),
        pytest.param("kind: !!timestamp 2026-02-30", 'found "2026-02-30"', id="impossible date with a tag"),
        pytest.param("profiles: &a [*a]", "found an alias of &a inside itself", id="recursive alias"),
        pytest.param("kind: a\nkind: b", "kind: expected each key once, found it twice", id="key twice"),
        pytest.param("[" * 500, "found more than 200 levels", id="nested lists"),
    ],
)
def test_a_hostile_configuration_is_bad_input(mooring: Call, write: Write, text: str, words: str) -> None:
    pods = write("kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]}\n")

    outcome = mooring("schedule", "-f", pods, "--config", write(text, "config.yaml"))

    assert (outcome.code, outcome.out) == (2, "")
    assert "config.yaml: " in outcome.err
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_long_name_is_shortened_in_messages(mooring: Call, write: Write) -> None:
    outcome = mooring("schedule", "-f", write(f"kind: Pod\nmetadata: {{name: {'a' * 100_000}}}\nspec: {{}}\n"))

    assert outcome.code == 2
    assert len(outcome.err) < 1000
    assert "100,012 characters" in outcome.err


def test_an_empty_file_name_is_not_the_current_folder(mooring: Call) -> None:
    outcome = mooring("schedule", "-f", "")

    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == 'error: -f "": expected a file, a folder or -, found an empty name\n'
