"""Who belongs to which HyperNode: selectors resolved, and each node's chain of HyperNodes, one a tier.

Where the HyperNodes contradict one another (a member of two in one tier), the first has it, always the same, and the
contradiction is listed; `mooring.model.validation.topology` makes an error of it. Nothing here can run in circles: only
HyperNodes of lower tiers count as members.
"""

import re
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mooring.model.api.meta import Labels
from mooring.model.topology.requests import HYPERNODE_MEMBER, NODE_MEMBER, HyperNode, HyperNodeMember
from mooring.model.values.selectors import compile_label_selector

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "word": r"0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "blank": r"\t ",
}
_LITERAL_START = re.compile(r"\^((?:[-A-Za-z0-9_]|\\\.)+)")
_QUANTIFIERS = frozenset("?*{")


class PatternError(ValueError):
    """The text is not a regular expression; the message says why."""


class Overlap(NamedTuple):
    """A member that two HyperNodes of one tier claim; `first` has it."""

    member: str
    tier: int
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class HyperNodeMap:
    """What the HyperNodes of a cluster say about its nodes."""

    tiers: tuple[int, ...]
    """All that occur, the highest (coarsest) first."""
    chains: Mapping[str, Mapping[int, str]]
    """By node name: the HyperNode of each tier that the node is in; nodes in none are missing."""
    titles: Mapping[int, str]
    """What a tier is called, where a HyperNode says so."""
    overlaps: tuple[Overlap, ...]


@lru_cache(maxsize=4096)
def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression as Go writes them; raise PatternError where it is none."""
    translated = re.sub(r"\[:(\^?)(\w+):\]", _posix_class, text).replace(r"\z", r"\Z")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # what another Python may read in another way
            return re.compile(translated, re.ASCII)
    except (re.error, FutureWarning, OverflowError, RecursionError) as error:
        raise PatternError(str(error).partition(" at position")[0]) from error


def _posix_class(match: re.Match[str]) -> str:
    if match[1] or match[2] not in _POSIX:
        raise PatternError(f"unknown character class {match[0]}")
    return _POSIX[match[2]]


def literal_start(pattern: str) -> str:
    """The text that everything which a pattern matches begins with; empty where that is not plain to see.

    >>> literal_start(r"^rack1-node[0-9]+$"), literal_start("node"), literal_start("^a|b")
    ('rack1-node', '', '')
    """
    match = _LITERAL_START.match(pattern)
    if match is None or "|" in pattern:
        return ""
    text = match[1].replace("\\.", ".")
    return text[:-1] if pattern[match.end() : match.end() + 1] in _QUANTIFIERS else text


class _Names:
    """Names in order, asked which of them a pattern matches."""

    def __init__(self, names: Iterable[str]) -> None:
        self._sorted = sorted(names)
        self._known = frozenset(self._sorted)

    def matching(self, member: HyperNodeMember) -> Iterator[str]:
        """The names that a member's exact or regular expression selector means, in order."""
        selector = member.selector
        if selector.exact_match is not None:
            if selector.exact_match.name in self._known:
                yield selector.exact_match.name
        elif selector.regex_match is not None:
            pattern = compile_pattern(selector.regex_match.pattern)
            start = literal_start(selector.regex_match.pattern)
            for index in range(bisect_left(self._sorted, start), len(self._sorted)):
                name = self._sorted[index]
                if not name.startswith(start):
                    break
                if pattern.search(name):
                    yield name


def members_of(found: HyperNode, type_: str) -> Iterator[tuple[int, HyperNodeMember]]:
    """The members of one type, each with its number in the list."""
    return ((index, member) for index, member in enumerate(found.spec.members) if member.type == type_)


def map_hypernodes(hypernodes: Iterable[HyperNode], nodes: Mapping[str, Labels | None]) -> HyperNodeMap:
    """Resolve all selectors; `nodes` are the names of the cluster's nodes, with their labels."""
    by_name = {found.metadata.name: found for found in hypernodes}
    from_top = sorted(by_name.values(), key=lambda found: (-found.spec.tier, found.metadata.name))
    overlaps: list[Overlap] = []
    above = _chains_of_hypernodes(from_top, by_name, overlaps)
    node_names = _Names(nodes)
    chains: dict[str, Mapping[int, str]] = {}
    for found in sorted(by_name.values(), key=lambda found: (found.spec.tier, found.metadata.name)):
        chain = {found.spec.tier: found.metadata.name, **above[found.metadata.name]}
        for name in _nodes_of(found, node_names, nodes):
            # Most nodes are named once, and share the chain with their neighbours.
            known = chains.get(name)
            chains[name] = chain if known is None else _merge(name, known, chain, overlaps)
    return HyperNodeMap(
        tiers=tuple(sorted({found.spec.tier for found in from_top}, reverse=True)),
        chains=chains,
        titles={found.spec.tier: found.spec.tier_name for found in reversed(from_top) if found.spec.tier_name},
        overlaps=tuple(dict.fromkeys(overlaps)),
    )


def _chains_of_hypernodes(
    from_top: Sequence[HyperNode], by_name: Mapping[str, HyperNode], overlaps: list[Overlap]
) -> dict[str, Mapping[int, str]]:
    """By HyperNode: those that it is inside of, one a tier."""
    names = _Names(by_name)
    above: dict[str, Mapping[int, str]] = {name: {} for name in by_name}
    for found in from_top:  # parents first, so that each chain is complete before it is handed down
        chain = {found.spec.tier: found.metadata.name, **above[found.metadata.name]}
        for _, member in members_of(found, HYPERNODE_MEMBER):
            for name in names.matching(member):
                if by_name[name].spec.tier < found.spec.tier:
                    above[name] = _merge(name, above[name], chain, overlaps)
    return above


def _nodes_of(found: HyperNode, names: _Names, nodes: Mapping[str, Labels | None]) -> Iterator[str]:
    for _, member in members_of(found, NODE_MEMBER):
        if member.selector.label_match is None:
            yield from names.matching(member)
            continue
        selector = compile_label_selector(member.selector.label_match)
        yield from (name for name, labels in nodes.items() if selector.matches(labels or {}))


def _merge(
    member: str, known: Mapping[int, str], added: Mapping[int, str], overlaps: list[Overlap]
) -> Mapping[int, str]:
    for tier, name in added.items():
        if known.get(tier, name) != name:
            overlaps.append(Overlap(member, tier, known[tier], name))
    return {**added, **known}
