"""Selectors of labels and of nodes, compiled once and asked many times.

A compiled selector is a small frozen value: two pods that select the same thing share it, and it can be a dictionary
key. `keys` are the label keys that it reads, so that the state knows which labels matter to anyone.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from mooring.model.api.meta import LabelSelector, NodeSelector, NodeSelectorTerm

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS = (*LABEL_OPERATORS, "Gt", "Lt")

LONGEST_INT = 100
"""Characters, zeros in front included; the largest has 19 digits and a sign."""
_INT = re.compile(r"[+-]?\d+", re.ASCII)


@lru_cache(maxsize=65536)
def parse_int64(text: str) -> int | None:
    """Read a decimal int64 as Go's ParseInt does; None where it would fail."""
    if len(text) > LONGEST_INT or not _INT.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        if len(self.values) != 1:
            return False
        (bound_text,) = self.values
        number, bound = parse_int64(value), parse_int64(bound_text)
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of requirements; an empty one matches everything, NOTHING matches nothing."""

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False
    keys: frozenset[str] = field(default=frozenset(), compare=False)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.is_nothing and all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def is_empty(self) -> bool:
        return not self.is_nothing and not self.requirements

    def with_requirements(self, extra: Iterable[Requirement]) -> "Selector":
        return NOTHING if self.is_nothing else make_selector((*self.requirements, *extra))


NOTHING = Selector(is_nothing=True)
EVERYTHING = Selector()


def make_selector(requirements: Iterable[Requirement]) -> Selector:
    found = tuple(requirements)
    return Selector(found, keys=frozenset(requirement.key for requirement in found))


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """Compile a label selector; a missing one matches nothing, as everywhere in the API."""
    if selector is None:
        return NOTHING
    requirements = [
        Requirement(key, "In", frozenset((value,))) for key, value in sorted((selector.match_labels or {}).items())
    ]
    for expression in selector.match_expressions or ():
        requirements.append(Requirement(expression.key, expression.operator, frozenset(expression.values or ())))
    return make_selector(requirements)


def compile_equality(labels: Mapping[str, str]) -> Selector:
    """Compile a plain map of labels that must all be equal (node selectors, services)."""
    return make_selector(Requirement(key, "In", frozenset((value,))) for key, value in sorted(labels.items()))


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector: all its requirements on labels and on the node's name."""

    labels: Selector
    names: tuple[Requirement, ...] = ()
    is_empty: bool = False

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        if self.is_empty:
            return False
        if not self.labels.matches(labels):
            return False
        return all(requirement.matches({"metadata.name": node_name}) for requirement in self.names)


def compile_node_term(term: NodeSelectorTerm) -> NodeTerm:
    labels = make_selector(
        Requirement(expression.key, expression.operator, frozenset(expression.values or ()))
        for expression in term.match_expressions or ()
    )
    names = tuple(
        Requirement(expression.key, expression.operator, frozenset(expression.values or ()))
        for expression in term.match_fields or ()
    )
    return NodeTerm(labels, names, is_empty=not labels.requirements and not names)


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Compile the terms of a node selector, any of which is enough; none at all match no node."""
    return tuple(compile_node_term(term) for term in selector.node_selector_terms)


def matches_any_term(terms: Iterable[NodeTerm], node_name: str, labels: Mapping[str, str]) -> bool:
    return any(term.matches(node_name, labels) for term in terms)
