"""YAML as Kubernetes reads it, and what is refused of it."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mooring.model.yaml_text import MOST_NESTED, YamlDocument, YamlProblem, read_yaml


def only(text: str) -> Any:
    (document,) = read_yaml(text)
    return document.value


def problem(text: str | bytes) -> tuple[int, str, str]:
    with pytest.raises(YamlProblem) as caught:
        list(read_yaml(text))
    return caught.value.document, caught.value.where, caught.value.found


def test_unquoted_text_means_what_it_means_to_kubernetes() -> None:
    text = "[yes, Off, ~, 012, 0x1F, 0b11, 1_000, -5, 1.5, 1e3, 2026-02-30, 1:30, .inf, 500m, '7', <<]"

    values = [True, False, None, 10, 31, 3, 1000, -5, 1.5, 1000.0, "2026-02-30", "1:30", ".inf", "500m", "7", "<<"]
    assert only(text) == values


def test_a_number_that_no_field_can_hold_is_text() -> None:
    assert only(f"[1e999, {'9' * 5000}]") == ["1e999", "9" * 5000]


def test_documents_are_numbered_and_empty_ones_are_nothing() -> None:
    assert list(read_yaml("a: 1\n---\n---\nb: 2\n")) == [
        YamlDocument(1, {"a": 1}, []),
        YamlDocument(2, None, []),
        YamlDocument(3, {"b": 2}, []),
    ]


def test_tags_give_a_type_or_are_refused() -> None:
    assert only("[!!str 3, !!int '3', !!float 3, !!bool yes, !!null ~, !!timestamp x]") == [
        "3",
        3,
        3.0,
        True,
        None,
        "x",
    ]
    assert problem("a: !!int x") == (1, "line 1, column 4", "!!int of something that is none")
    assert problem("a: !!set {b}") == (1, "line 1, column 4", "the tag !!set, which means nothing in a manifest")
    assert problem("a: !secret b") == (1, "line 1, column 4", "the tag !secret, which means nothing in a manifest")


def test_aliases_repeat_and_merge() -> None:
    text = "base: &base {cpu: 1, memory: 2}\ncopy: *base\nmore: {<<: *base, cpu: 3}\nmost: {<<: [*base, {gpu: 4}]}\n"

    assert only(text) == {
        "base": {"cpu": 1, "memory": 2},
        "copy": {"cpu": 1, "memory": 2},
        "more": {"cpu": 3, "memory": 2},
        "most": {"cpu": 1, "memory": 2, "gpu": 4},
    }
    assert problem("a: {<<: 3}") == (1, "line 1, column 9", "a merge (<<) of something that is no object")


def test_an_alias_needs_something_complete_to_stand_for() -> None:
    assert problem("a: 1\n---\na: &a [*a]") == (2, "line 3, column 8", "an alias of &a inside itself")
    assert problem("a: *b") == (1, "line 1, column 4", "an alias of &b, which is not there")


def test_a_few_bytes_of_aliases_do_not_stand_for_billions_of_values() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

    assert problem("\n".join(lines)) == (1, "line 6, column 45", "aliases that stand for more than 1,000,000 values")


def test_nesting_has_a_limit() -> None:
    assert only("[" * MOST_NESTED + "]" * MOST_NESTED)
    assert problem("[" * 100_000) == (1, "line 1, column 201", "more than 200 levels of lists and objects")


def test_keys_that_come_twice_are_told_with_their_path() -> None:
    (document,) = read_yaml("a: 1\nb: [{c: 1}, {c: 1, c: 2}]\na: 2\n")

    assert document == YamlDocument(1, {"a": 2, "b": [{"c": 1}, {"c": 2}]}, ["b[1].c", "a"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("? [a]\n: b", "a key that is a list or an object", id="list"),
        pytest.param("a: &a {b: c}\n? *a\n: d", "a key that is a list or an object", id="alias"),
        pytest.param("a: b: c", "mapping values are not allowed in this context", id="nested"),
        pytest.param(b"a: \xff", "'utf-8' codec", id="bytes"),
        pytest.param("a: \x00", "unacceptable character", id="control characters"),
    ],
)
def test_what_is_no_yaml_is_a_problem_and_nothing_else(text: str | bytes, found: str) -> None:
    assert found.partition(" codec")[0] in problem(text)[2] or "invalid" in problem(text)[2]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_a_common_emitter_writes_is_read_back(value: Any) -> None:
    assert only(yaml.safe_dump(value)) == value


@given(st.binary(max_size=60) | st.text(alphabet="ab:[]{}&*!<>|-?#'\"\n ,0", max_size=40))
def test_any_bytes_are_values_or_a_problem_of_one_line(content: bytes | str) -> None:
    found = ""
    try:
        list(read_yaml(content))
    except YamlProblem as problem:
        found = problem.found
    assert "\n" not in found
