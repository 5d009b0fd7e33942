"""Node selectors asked of many rows at once: each requirement is answered per label value, then spread over rows."""

from collections.abc import Iterable

import numpy as np

from mooring.engine.plugin import Mask
from mooring.model.values.selectors import NodeTerm, Requirement, Selector
from mooring.state.nodes import MISSING
from mooring.state.rows import NodeRows


def match_requirement(nodes: NodeRows, requirement: Requirement) -> Mask:
    key = requirement.key
    codes = nodes.label_codes(key)
    if requirement.operator in ("Exists", "DoesNotExist"):
        has: Mask = codes != MISSING
        return has if requirement.operator == "Exists" else ~has
    if requirement.operator in ("In", "NotIn"):
        code_of = nodes.label_code_of(key)
        wanted = [code_of[value] for value in requirement.values if value in code_of]
        found = codes == wanted[0] if len(wanted) == 1 else np.isin(codes, wanted)
        return found if requirement.operator == "In" else ~found
    answer_of_value = [requirement.matches({key: value}) for value in nodes.label_values(key)]
    # A missing label has code -1, which picks the entry appended last.
    answers = np.array([*answer_of_value, requirement.matches({})], np.bool_)
    return answers[codes]


def match_selector(nodes: NodeRows, selector: Selector) -> Mask:
    mask = np.full(len(nodes), not selector.is_nothing, np.bool_)
    for requirement in selector.requirements:
        mask &= match_requirement(nodes, requirement)
    return mask


def match_term(nodes: NodeRows, term: NodeTerm) -> Mask:
    if term.is_empty:
        return np.zeros(len(nodes), np.bool_)
    mask = match_selector(nodes, term.labels)
    for requirement in term.names:
        rows = [row for name in requirement.values if (row := nodes.row_of(name)) is not None]
        named = np.isin(nodes.index, rows)
        mask &= named if requirement.operator == "In" else ~named
    return mask


def match_terms(nodes: NodeRows, terms: Iterable[NodeTerm]) -> Mask:
    """Any term will do; without terms nothing matches."""
    mask = np.zeros(len(nodes), np.bool_)
    for term in terms:
        mask |= match_term(nodes, term)
    return mask
