"""Checks of the parts that many kinds share: quantities, selectors, taints and tolerations.

Each takes the path of what it looks at, in the API's spelling, and raises on the first problem. What is absent costs a
comparison with None and no more, because most pods leave most of this out.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import msgspec

from mooring.errors import ManifestError
from mooring.model.api.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    QuantityText,
    Resources,
)
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Toleration
from mooring.model.places import Place, show
from mooring.model.values.quantity import NANO, QuantityError, parse_quantity, to_units
from mooring.model.values.requests import is_extended
from mooring.model.values.selectors import LABEL_OPERATORS, NODE_OPERATORS, parse_int64

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TOLERATION_OPERATORS = ("Equal", "Exists", "Gt", "Lt")
QUANTITY = "a quantity such as 500m, 2 or 1.5Gi"
LARGEST_AMOUNT = 2**60
"""Sums of quotas and of usage are kept as int64; one amount may take an eighth of that (an exbibyte of memory)."""


class Subject(msgspec.Struct, frozen=True, gc=False):
    """The object under scrutiny and its place: all that a complaint needs."""

    found: Any
    place: Place

    def refuse(self, field: str, *, expected: str, found: str) -> NoReturn:
        raise self.place.error(field, expected=expected, found=found, subject=self.found)

    def refuse_unless_limited(self, field: str, *, expected: str, found: str) -> None:
        """Refuse what a LimitRange could fill in, in a pod: of templates that never happens."""
        self.refuse(field, expected=expected, found=found)


class PodSubject(Subject, frozen=True, gc=False):
    unless_limited: list[ManifestError]
    """What does not hold if a LimitRange of the namespace fills in what is missing."""

    def refuse_unless_limited(self, field: str, *, expected: str, found: str) -> None:
        self.unless_limited.append(self.place.error(field, expected=expected, found=found, subject=self.found))


def one_of(allowed: Iterable[str]) -> str:
    return "one of " + ", ".join(allowed)


def check_choice(subject: Subject, path: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        subject.refuse(path, expected=one_of(allowed), found=show(value) if value else "none")


def check_quantity(subject: Subject, path: str, text: QuantityText) -> int:
    """Return the quantity in nano-units; refuse what is none, or is negative."""
    try:
        nanos = parse_quantity(text)
    except QuantityError:
        subject.refuse(path, expected=QUANTITY, found=show(text))
    if nanos < 0:
        subject.refuse(path, expected="a quantity of at least 0", found=show(text))
    return nanos


def check_amount(subject: Subject, path: str, text: QuantityText) -> int:
    """Check a quantity that is added up with many others; return it in nano-units."""
    nanos = check_quantity(subject, path, text)
    if to_units(nanos) > LARGEST_AMOUNT:
        subject.refuse(path, expected="a quantity of at most 1Ei", found=show(text))
    return nanos


def check_resources(subject: Subject, path: str, resources: Resources | None) -> None:
    """Check amounts by resource name; devices and other extended resources come in whole numbers."""
    if not resources:
        return
    for name, text in resources.items():
        nanos = check_quantity(subject, f"{path}.{name}", text)
        if nanos % NANO and is_extended(name):
            subject.refuse(f"{path}.{name}", expected="a whole number", found=show(text))


def _check_values(
    subject: Subject, path: str, requirement: LabelSelectorRequirement | NodeSelectorRequirement, allowed: Sequence[str]
) -> None:
    operator, values = requirement.operator, requirement.values
    if not requirement.key:
        subject.refuse(f"{path}.key", expected="a label key", found="none")
    if operator not in allowed:
        check_choice(subject, f"{path}.operator", operator, allowed)
    if operator in ("In", "NotIn"):
        if not values:
            subject.refuse(f"{path}.values", expected=f"at least one value for {operator}", found="none")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            subject.refuse(f"{path}.values", expected=f"no values for {operator}", found=_count(values))
    elif len(values or ()) != 1:
        subject.refuse(f"{path}.values", expected=f"exactly one integer for {operator}", found=_count(values or []))
    elif values and parse_int64(values[0]) is None:
        subject.refuse(f"{path}.values[0]", expected=f"an integer for {operator}", found=show(values[0]))


def _count(values: list[str]) -> str:
    return str(len(values)) if values else "none"


def check_label_selector(subject: Subject, path: str, selector: LabelSelector | None) -> None:
    if selector is None or not selector.match_expressions:
        return
    for index, requirement in enumerate(selector.match_expressions):
        _check_values(subject, f"{path}.matchExpressions[{index}]", requirement, LABEL_OPERATORS)


def check_node_term(subject: Subject, path: str, term: NodeSelectorTerm) -> None:
    for index, requirement in enumerate(term.match_expressions or ()):
        _check_values(subject, f"{path}.matchExpressions[{index}]", requirement, NODE_OPERATORS)
    for index, requirement in enumerate(term.match_fields or ()):
        here = f"{path}.matchFields[{index}]"
        check_choice(subject, f"{here}.key", requirement.key, ("metadata.name",))
        check_choice(subject, f"{here}.operator", requirement.operator, ("In", "NotIn"))
        if len(requirement.values or ()) != 1:
            subject.refuse(f"{here}.values", expected="exactly one node name", found=_count(requirement.values or []))


def check_node_selector(subject: Subject, path: str, selector: NodeSelector) -> None:
    if not selector.node_selector_terms:
        subject.refuse(f"{path}.nodeSelectorTerms", expected="at least one term", found="none")
    for index, term in enumerate(selector.node_selector_terms):
        check_node_term(subject, f"{path}.nodeSelectorTerms[{index}]", term)


def check_taints(subject: Subject, path: str, taints: list[Taint] | None) -> None:
    for index, taint in enumerate(taints or ()):
        if not taint.key:
            subject.refuse(f"{path}[{index}].key", expected="a taint key", found="none")
        check_choice(subject, f"{path}[{index}].effect", taint.effect, TAINT_EFFECTS)


def check_tolerations(subject: Subject, path: str, tolerations: list[Toleration] | None) -> None:
    for index, toleration in enumerate(tolerations or ()):
        operator = toleration.operator or "Equal"
        if operator not in TOLERATION_OPERATORS:
            check_choice(subject, f"{path}[{index}].operator", operator, TOLERATION_OPERATORS)
        if not toleration.key and operator != "Exists":
            subject.refuse(f"{path}[{index}].operator", expected="Exists, as the key is empty", found=show(operator))
        if operator == "Exists" and toleration.value:
            subject.refuse(f"{path}[{index}].value", expected="no value for Exists", found=show(toleration.value))
        if operator in ("Gt", "Lt") and parse_int64(toleration.value) is None:
            expected = f"an integer for {operator}"
            subject.refuse(f"{path}[{index}].value", expected=expected, found=show(toleration.value))
        if toleration.effect and toleration.effect not in TAINT_EFFECTS:
            check_choice(subject, f"{path}[{index}].effect", toleration.effect, TAINT_EFFECTS)
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            found = show(toleration.effect) if toleration.effect else "none"
            expected = "NoExecute, as tolerationSeconds is set"
            subject.refuse(f"{path}[{index}].effect", expected=expected, found=found)
