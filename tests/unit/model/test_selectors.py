"""Selectors of labels and nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.model.api.meta import LabelSelector, LabelSelectorRequirement, NodeSelectorRequirement, NodeSelectorTerm
from mooring.model.values.selectors import (
    EVERYTHING,
    NOTHING,
    compile_equality,
    compile_label_selector,
    compile_node_term,
    parse_int64,
)

KEYS = st.sampled_from(["app", "tier", "zone"])
VALUES = st.sampled_from(["", "a", "b", "c"])
LABELS = st.dictionaries(KEYS, VALUES)


def select(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(
        match_expressions=[LabelSelectorRequirement(key=key, operator=operator, values=list(values) or None)]
    )


def test_a_missing_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert compile_label_selector(None) == NOTHING
    assert compile_label_selector(LabelSelector()) == EVERYTHING


@given(LABELS, KEYS, st.lists(VALUES, min_size=1))
def test_not_in_is_the_opposite_of_in(labels: dict[str, str], key: str, values: list[str]) -> None:
    inside = compile_label_selector(select(key, "In", *values))
    outside = compile_label_selector(select(key, "NotIn", *values))

    assert inside.matches(labels) != outside.matches(labels)


@given(LABELS, KEYS)
def test_does_not_exist_is_the_opposite_of_exists(labels: dict[str, str], key: str) -> None:
    present = compile_label_selector(select(key, "Exists"))
    absent = compile_label_selector(select(key, "DoesNotExist"))

    assert present.matches(labels) == (key in labels)
    assert absent.matches(labels) == (key not in labels)


@given(LABELS, LABELS)
def test_match_labels_mean_a_subset(wanted: dict[str, str], labels: dict[str, str]) -> None:
    expected = wanted.items() <= labels.items()

    assert compile_label_selector(LabelSelector(match_labels=wanted)).matches(labels) == expected
    assert compile_equality(wanted).matches(labels) == expected


@given(LABELS, LABELS)
def test_a_selector_reads_only_the_keys_it_names(wanted: dict[str, str], labels: dict[str, str]) -> None:
    selector = compile_equality(wanted)
    named = {key: value for key, value in labels.items() if key in selector.keys}

    assert selector.matches(labels) == selector.matches(named)


@pytest.mark.parametrize(
    ("operator", "bound", "value", "expected"),
    [
        pytest.param("Gt", "7", "8", True, id="greater"),
        pytest.param("Gt", "8", "8", False, id="equal is not greater"),
        pytest.param("Lt", "8", "-1", True, id="less"),
        pytest.param("Gt", "7", "many", False, id="a label that is no number"),
        pytest.param("Gt", "7", None, False, id="no label"),
    ],
)
def test_numbers_on_nodes_are_compared(operator: str, bound: str, value: str | None, expected: bool) -> None:
    requirement = NodeSelectorRequirement(key="gpus", operator=operator, values=[bound])
    term = compile_node_term(NodeSelectorTerm(match_expressions=[requirement]))

    assert term.matches("node", {} if value is None else {"gpus": value}) == expected


def test_a_node_term_without_conditions_matches_no_node() -> None:
    assert not compile_node_term(NodeSelectorTerm()).matches("node", {})


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_every_int64_is_read_back(number: int) -> None:
    assert parse_int64(str(number)) == number


@pytest.mark.parametrize("text", ["", "1.0", "0x1", " 1", "9223372036854775808"])
def test_what_is_no_int64_is_none(text: str) -> None:
    assert parse_int64(text) is None
