"""Builders of topologies: trees without a cluster around them, and HyperNodes."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mooring.model.api.meta import LabelSelector, ObjectMeta
from mooring.model.topology.requests import (
    HYPERNODE_MEMBER,
    NODE_MEMBER,
    ExactMatch,
    HyperNode,
    HyperNodeMember,
    HyperNodeSpec,
    MemberSelector,
    RegexMatch,
)
from mooring.state.columns import Interner
from mooring.state.nodes import MISSING
from mooring.state.topology import LevelColumn, TopologyTree


def make_tree(
    levels: Sequence[str], paths: Iterable[Sequence[str | None]], *, with_gaps: bool = False, names: Sequence[str] = ()
) -> TopologyTree:
    """A tree of rows 0, 1, 2 and so on, each given by its values, coarse to fine; None for one that it lacks."""
    given = [tuple(path) for path in paths]
    columns = []
    for index, level in enumerate(levels):
        interner = Interner()
        codes = [MISSING if path[index] is None else interner.code(path[index]) for path in given]
        title = level.rpartition("/")[2]
        columns.append(LevelColumn(level, title, np.array(codes, np.int32), tuple(interner.values)))
    rows = np.arange(len(given))
    names = names or [f"node-{row:04}" for row in range(len(given))]
    return TopologyTree(columns, rows, names, capacity=len(given), with_gaps=with_gaps)


def make_hypernode(
    name: str,
    tier: int = 1,
    *,
    nodes: Iterable[str] = (),
    hypernodes: Iterable[str] = (),
    patterns: Iterable[str] = (),
    hypernode_patterns: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    tier_name: str = "",
) -> HyperNode:
    """A HyperNode with these members: nodes by name, by pattern or by labels, HyperNodes by name or pattern."""
    selectors: list[tuple[str, MemberSelector]] = []
    selectors += [(NODE_MEMBER, MemberSelector(exact_match=ExactMatch(name=member))) for member in nodes]
    selectors += [(NODE_MEMBER, MemberSelector(regex_match=RegexMatch(pattern=pattern))) for pattern in patterns]
    if labels is not None:
        selectors.append((NODE_MEMBER, MemberSelector(label_match=LabelSelector(match_labels=dict(labels)))))
    selectors += [(HYPERNODE_MEMBER, MemberSelector(exact_match=ExactMatch(name=member))) for member in hypernodes]
    selectors += [
        (HYPERNODE_MEMBER, MemberSelector(regex_match=RegexMatch(pattern=pattern))) for pattern in hypernode_patterns
    ]
    members = [HyperNodeMember(type=type_, selector=selector) for type_, selector in selectors]
    spec = HyperNodeSpec(tier=tier, tier_name=tier_name, members=members)
    return HyperNode(metadata=ObjectMeta(name=name), spec=spec)
