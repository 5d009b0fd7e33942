"""Checks of what describes and asks for a topology: levels, HyperNodes alone and together, annotations of pods."""

from collections.abc import Iterable, Mapping

from mooring.model.api.kueue import Topology
from mooring.model.api.meta import Labels
from mooring.model.places import Place, show
from mooring.model.topology.hypernodes import Overlap, PatternError, compile_pattern, map_hypernodes, members_of
from mooring.model.topology.requests import (
    HYPERNODE_MEMBER,
    NODE_MEMBER,
    HyperNode,
    HyperNodeMember,
    TopologyRequest,
    TopologyRequestError,
    is_label_key,
    topology_request_of,
)
from mooring.model.validation.terms import Subject, check_choice, check_label_selector

LONGEST_TIER_NAME = 253
_SELECTORS = "exactMatch, regexMatch or labelMatch"


def check_topology_request(
    subject: Subject, path: str, annotations: Mapping[str, str] | None
) -> TopologyRequest | None:
    """Read the topology request that annotations state; refuse those that contradict one another or cannot be read."""
    try:
        return topology_request_of(annotations, path)
    except TopologyRequestError as error:
        subject.refuse(error.field, expected=error.expected, found=error.found)


def validate_hypernode(found: HyperNode, place: Place) -> None:
    """Raise ManifestError for the first thing that is wrong with a HyperNode on its own."""
    subject = Subject(found, place)
    if not found.metadata.name:
        subject.refuse("metadata.name", expected="a name", found="none")
    if found.spec.tier < 0:
        subject.refuse("spec.tier", expected="a number of at least 0", found=show(found.spec.tier))
    if len(found.spec.tier_name) > LONGEST_TIER_NAME:
        length = f"{len(found.spec.tier_name)} characters"
        subject.refuse("spec.tierName", expected=f"at most {LONGEST_TIER_NAME} characters", found=length)
    if not found.spec.members:
        subject.refuse("spec.members", expected="at least one member", found="none")
    for index, member in enumerate(found.spec.members):
        _check_member(subject, f"spec.members[{index}]", member)


def _check_member(subject: Subject, path: str, member: HyperNodeMember) -> None:
    check_choice(subject, f"{path}.type", member.type, (NODE_MEMBER, HYPERNODE_MEMBER))
    selector = member.selector
    ways = {
        "exactMatch": selector.exact_match,
        "regexMatch": selector.regex_match,
        "labelMatch": selector.label_match,
    }
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        subject.refuse(f"{path}.selector", expected=f"one of {_SELECTORS}", found=" and ".join(given) or "none")
    if selector.exact_match is not None and not selector.exact_match.name:
        subject.refuse(f"{path}.selector.exactMatch.name", expected="a name", found="none")
    if selector.regex_match is not None:
        _check_pattern(subject, f"{path}.selector.regexMatch.pattern", selector.regex_match.pattern)
    if selector.label_match is not None:
        if member.type == HYPERNODE_MEMBER:
            expected = "exactMatch or regexMatch, as labels select nodes only"
            subject.refuse(f"{path}.selector", expected=expected, found="labelMatch")
        check_label_selector(subject, f"{path}.selector.labelMatch", selector.label_match)


def _check_pattern(subject: Subject, path: str, pattern: str) -> None:
    if not pattern:
        subject.refuse(path, expected="a regular expression", found="none")
    try:
        compile_pattern(pattern)
    except PatternError as error:
        subject.refuse(path, expected="a regular expression", found=f"{show(pattern)} ({error})")


def validate_topology_labels(topologies: Iterable[tuple[Topology, Place]]) -> None:
    """Refuse levels that no node can have."""
    for found, place in topologies:
        for index, level in enumerate(found.spec.levels):
            if not is_label_key(level.node_label):
                expected, shown = "the key of a node label", show(level.node_label) if level.node_label else "none"
                raise place.error(f"spec.levels[{index}].nodeLabel", expected=expected, found=shown, subject=found)


def validate_hypernode_tree(
    hypernodes: Iterable[tuple[HyperNode, Place]], nodes: Mapping[str, Labels | None] | None = None
) -> None:
    """Refuse HyperNodes that are no forest, given that each is right on its own.

    Members that are missing are no mistake: objects arrive in any order. Nodes are checked as far as they are known:
    the given ones (names with labels), and those that are named exactly.
    """
    placed = {found.metadata.name: (found, place) for found, place in hypernodes}
    _refuse_wrong_tiers(placed)
    known = dict(nodes or {})
    for found, _ in placed.values():
        for _, member in members_of(found, NODE_MEMBER):
            if member.selector.exact_match is not None:
                known.setdefault(member.selector.exact_match.name, None)
    overlaps = map_hypernodes((found for found, _ in placed.values()), known).overlaps
    if overlaps:
        _refuse_overlap(placed, min(overlaps))


def _named_children(found: HyperNode) -> list[tuple[int, str]]:
    """The HyperNodes that are named exactly, with the numbers of the members that name them."""
    members = members_of(found, HYPERNODE_MEMBER)
    return [(index, member.selector.exact_match.name) for index, member in members if member.selector.exact_match]


def _refuse_wrong_tiers(placed: Mapping[str, tuple[HyperNode, Place]]) -> None:
    """Members are of lower tiers, so that none can be inside itself; say so if one is."""
    for name, (found, place) in sorted(placed.items()):
        for index, child in _named_children(found):
            if child not in placed or placed[child][0].spec.tier < found.spec.tier:
                continue
            way_back = _way(placed, child, name)
            if way_back:
                expected = "a HyperNode that this one is not inside of"
                shown = f"a cycle, {' -> '.join([name, *way_back])}"
            else:
                expected = f"a HyperNode of a tier below {found.spec.tier}"
                shown = f"{child} of tier {placed[child][0].spec.tier}"
            raise place.error(f"spec.members[{index}]", expected=expected, found=shown, subject=found)


def _way(placed: Mapping[str, tuple[HyperNode, Place]], start: str, goal: str) -> list[str]:
    """The HyperNodes from one down to another inside it, both included; none if it is not inside."""
    came_from: dict[str, str] = {start: ""}
    for name in (queue := [start]):  # grows while it is read
        if name == goal:
            way = [name]
            while came_from[way[0]]:
                way.insert(0, came_from[way[0]])
            return way
        for _, child in _named_children(placed[name][0]):
            if child in placed and child not in came_from:
                came_from[child] = name
                queue.append(child)
    return []


def _refuse_overlap(placed: Mapping[str, tuple[HyperNode, Place]], overlap: Overlap) -> None:
    found, place = placed[overlap.second]
    raise place.error(
        "spec.members",
        expected=f"each member in one HyperNode of tier {overlap.tier} only",
        found=f"{overlap.member} also in {overlap.first}",
        subject=found,
    )
