"""Which rights a set of rules covers: a user may grant only what it has itself."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from mooring.kubeapi.auth.rbac import ALL, Rule


def missing(held: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The wanted rules that the held rules do not cover. A rule is taken apart into single rights first, since several
    held rules may cover it together."""
    held = tuple(held)
    return [
        rule for rule in wanted if not all(any(_covers(each, right) for each in held) for right in _rights_of(rule))
    ]


def _rights_of(rule: Rule) -> Iterator[Rule]:
    for verb in rule.verbs:
        one = frozenset((verb,))
        for path in rule.paths:
            yield Rule(one, paths=(path,))
        names: Sequence[frozenset[str]] = [frozenset((name,)) for name in rule.names] or [frozenset()]
        for group, resource, name in product(rule.groups, rule.resources, names):
            yield Rule(one, frozenset((group,)), frozenset((resource,)), name)


def _covers(held: Rule, right: Rule) -> bool:
    """Whether a rule contains a single right."""
    if ALL not in held.verbs and not right.verbs <= held.verbs:
        return False
    if right.paths:
        (path,) = right.paths
        return any(each == path or (each.endswith(ALL) and path.startswith(each[:-1])) for each in held.paths)
    if ALL not in held.groups and not right.groups <= held.groups:
        return False
    if held.names and not (right.names and right.names <= held.names):
        return False
    (resource,) = right.resources
    _, slash, part = resource.partition("/")
    return bool(held.resources & {ALL, resource}) or (bool(slash) and f"*/{part}" in held.resources)
