"""HyperNodes: who belongs to which, and one clear line for what is wrong with them."""

from collections.abc import Iterable

import msgspec
import pytest

from mooring.errors import ManifestError
from mooring.model.places import Place
from mooring.model.topology.hypernodes import Overlap, PatternError, compile_pattern, literal_start, map_hypernodes
from mooring.model.topology.requests import HyperNode, HyperNodeSpec
from mooring.model.validation.topology import validate_hypernode, validate_hypernode_tree
from mooring.testing.topology_builders import make_hypernode

PLACE = Place("network.yaml", 1)
NODES = {f"node{index}": {"rack": f"rack-{index // 2}"} for index in range(6)}


def complaint(error: pytest.ExceptionInfo[ManifestError]) -> str:
    # Whether a kind is shown with a namespace is decided in one place for all kinds, and not here.
    return str(error.value).removeprefix("network.yaml: document 1 ").replace("default/", "", 1)


def refused(found: HyperNode) -> str:
    with pytest.raises(ManifestError) as raised:
        validate_hypernode(found, PLACE)
    return complaint(raised)


def tree_refused(*found: HyperNode) -> str:
    with pytest.raises(ManifestError) as raised:
        validate_hypernode_tree([(hypernode, PLACE) for hypernode in found], dict(NODES))
    return complaint(raised)


def chains(hypernodes: Iterable[HyperNode]) -> dict[str, dict[int, str]]:
    return {name: dict(chain) for name, chain in map_hypernodes(hypernodes, dict(NODES)).chains.items()}


def test_a_manifest_is_read_as_volcano_writes_it() -> None:
    document = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "s0"},
        "spec": {
            "tier": 1,
            "tierName": "rack",
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "node0"}}},
                {"type": "Node", "selector": {"regexMatch": {"pattern": "^node[1-2]$"}}},
                {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "rack-2"}}}},
            ],
        },
    }

    found = msgspec.convert(document, HyperNode)

    validate_hypernode(found, PLACE)
    assert msgspec.to_builtins(found)["spec"] == document["spec"]
    assert sorted(chains([found])) == ["node0", "node1", "node2", "node4", "node5"]


def test_each_node_has_a_chain_of_hypernodes_one_a_tier() -> None:
    found = map_hypernodes(
        [
            make_hypernode("top", 3, hypernode_patterns=["^spine-"]),
            make_hypernode("spine-0", 2, hypernodes=["leaf-0", "leaf-1"]),
            make_hypernode("leaf-0", 1, nodes=["node0", "node1"], tier_name="leaf"),
            make_hypernode("leaf-1", 1, patterns=["^node[23]$"]),
            make_hypernode("alone", 2, nodes=["node4"]),
        ],
        dict(NODES),
    )

    assert found.tiers == (3, 2, 1)
    assert found.titles == {1: "leaf"}
    assert found.overlaps == ()
    assert {name: dict(chain) for name, chain in found.chains.items()} == {
        "node0": {1: "leaf-0", 2: "spine-0", 3: "top"},
        "node1": {1: "leaf-0", 2: "spine-0", 3: "top"},
        "node2": {1: "leaf-1", 2: "spine-0", 3: "top"},
        "node3": {1: "leaf-1", 2: "spine-0", 3: "top"},
        "node4": {2: "alone"},
    }


def test_of_two_that_claim_a_member_the_first_by_name_has_it() -> None:
    found = map_hypernodes([make_hypernode("b", nodes=["node0"]), make_hypernode("a", nodes=["node0"])], dict(NODES))

    assert dict(found.chains["node0"]) == {1: "a"}
    assert found.overlaps == (Overlap("node0", 1, "a", "b"),)


def test_members_of_higher_tiers_are_not_followed() -> None:
    cyclic = [
        make_hypernode("a", 1, hypernodes=["b"], nodes=["node0"]),
        make_hypernode("b", 2, hypernodes=["a"]),
        make_hypernode("c", 2, hypernode_patterns=["."], nodes=["node1"]),
    ]

    # c's pattern means b and itself too, which are no members of a HyperNode of their own tier.
    assert chains(cyclic) == {"node0": {1: "a", 2: "b"}, "node1": {2: "c"}}


@pytest.mark.parametrize(
    ("pattern", "start"),
    [
        ("^node", "node"),
        (r"^node-1\.example", "node-1.example"),
        ("^node[0-9]+$", "node"),
        ("^nodes?", "node"),
        ("^node+", "node"),
        ("^node{2}", "nod"),
        ("^node*", "nod"),
        ("node", ""),
        ("^(node)", ""),
        ("^a|b", ""),
    ],
)
def test_the_literal_start_of_a_pattern_narrows_the_names_it_can_match(pattern: str, start: str) -> None:
    assert literal_start(pattern) == start


def test_patterns_are_read_as_go_reads_them() -> None:
    assert compile_pattern(r"^node[[:digit:]]+\z").search("node12")
    assert compile_pattern("ode1").search("node12")
    with pytest.raises(PatternError):
        compile_pattern("[[:animal:]]")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            HyperNode(spec=HyperNodeSpec(tier=1)),
            "(HyperNode): metadata.name: expected a name, found none",
            id="no name",
        ),
        pytest.param(
            make_hypernode("s0", -1, nodes=["node0"]),
            "(HyperNode s0): spec.tier: expected a number of at least 0, found -1",
            id="negative tier",
        ),
        pytest.param(
            make_hypernode("s0"),
            "(HyperNode s0): spec.members: expected at least one member, found none",
            id="no members",
        ),
        pytest.param(
            make_hypernode("s0", patterns=["^(node"]),
            "(HyperNode s0): spec.members[0].selector.regexMatch.pattern: expected a regular expression, "
            'found "^(node" (missing ), unterminated subpattern)',
            id="bad pattern",
        ),
        pytest.param(
            make_hypernode("s0", nodes=[""]),
            "(HyperNode s0): spec.members[0].selector.exactMatch.name: expected a name, found none",
            id="empty name of a member",
        ),
        pytest.param(
            msgspec.convert({"metadata": {"name": "s0"}, "spec": {"tier": 1, "members": [{"type": "Pod"}]}}, HyperNode),
            '(HyperNode s0): spec.members[0].type: expected one of Node, HyperNode, found "Pod"',
            id="unknown type",
        ),
        pytest.param(
            msgspec.convert(
                {"metadata": {"name": "s0"}, "spec": {"tier": 1, "members": [{"type": "Node"}]}}, HyperNode
            ),
            "(HyperNode s0): spec.members[0].selector: expected one of exactMatch, regexMatch or labelMatch, "
            "found none",
            id="no selector",
        ),
        pytest.param(
            msgspec.convert(
                {
                    "metadata": {"name": "s0"},
                    "spec": {
                        "tier": 1,
                        "members": [
                            {"type": "Node", "selector": {"exactMatch": {"name": "a"}, "labelMatch": {}}},
                        ],
                    },
                },
                HyperNode,
            ),
            "(HyperNode s0): spec.members[0].selector: expected one of exactMatch, regexMatch or labelMatch, "
            "found exactMatch and labelMatch",
            id="two selectors",
        ),
        pytest.param(
            msgspec.convert(
                {
                    "metadata": {"name": "s0"},
                    "spec": {"tier": 1, "members": [{"type": "HyperNode", "selector": {"labelMatch": {}}}]},
                },
                HyperNode,
            ),
            "(HyperNode s0): spec.members[0].selector: expected exactMatch or regexMatch, as labels select nodes only, "
            "found labelMatch",
            id="HyperNodes by label",
        ),
    ],
)
def test_what_is_wrong_with_one_is_said_in_one_line(found: HyperNode, expected: str) -> None:
    assert refused(found) == expected


def test_a_cycle_is_shown_whole() -> None:
    assert tree_refused(
        make_hypernode("a", 1, hypernodes=["b"]),
        make_hypernode("b", 2, hypernodes=["c"]),
        make_hypernode("c", 3, hypernodes=["a"]),
    ) == (
        "(HyperNode a): spec.members[0]: expected a HyperNode that this one is not inside of, "
        "found a cycle, a -> b -> c -> a"
    )


def test_a_hypernode_inside_itself_is_a_cycle() -> None:
    assert tree_refused(make_hypernode("a", 1, nodes=["node0"], hypernodes=["a"])) == (
        "(HyperNode a): spec.members[1]: expected a HyperNode that this one is not inside of, found a cycle, a -> a"
    )


def test_members_are_of_lower_tiers() -> None:
    assert tree_refused(make_hypernode("a", 2, hypernodes=["b"]), make_hypernode("b", 2, nodes=["node0"])) == (
        "(HyperNode a): spec.members[0]: expected a HyperNode of a tier below 2, found b of tier 2"
    )


@pytest.mark.parametrize(
    ("found", "member", "first", "second"),
    [
        pytest.param(
            [make_hypernode("a", nodes=["node0"]), make_hypernode("b", nodes=["node0"])], "node0", "a", "b", id="a node"
        ),
        pytest.param(
            [make_hypernode("a", nodes=["node9"]), make_hypernode("b", nodes=["node9"])],
            "node9",
            "a",
            "b",
            id="a node that is not known yet",
        ),
        pytest.param(
            [make_hypernode("a", patterns=["^node[0-2]"]), make_hypernode("b", labels={"rack": "rack-1"})],
            "node2",
            "a",
            "b",
            id="a node by pattern and by label",
        ),
        pytest.param(
            [
                make_hypernode("leaf", 0, nodes=["node0"]),
                make_hypernode("a", 1, hypernodes=["leaf"]),
                make_hypernode("b", 1, hypernodes=["leaf"]),
            ],
            "leaf",
            "a",
            "b",
            id="a HyperNode",
        ),
        pytest.param(
            [
                make_hypernode("leaf", 0, nodes=["node0"]),
                make_hypernode("middle", 1, hypernodes=["leaf"]),
                make_hypernode("a", 2, hypernodes=["middle"]),
                make_hypernode("b", 2, hypernodes=["leaf"]),
            ],
            "leaf",
            "b",
            "a",
            id="a HyperNode, by way of another",
        ),
    ],
)
def test_a_member_of_two_in_one_tier_is_refused(found: list[HyperNode], member: str, first: str, second: str) -> None:
    tier = found[-1].spec.tier

    assert tree_refused(*found) == (
        f"(HyperNode {second}): spec.members: expected each member in one HyperNode of tier {tier} only, "
        f"found {member} also in {first}"
    )


def test_members_that_are_missing_are_no_mistake() -> None:
    found = [make_hypernode("a", 2, hypernodes=["later"]), make_hypernode("b", 1, nodes=["node9"], patterns=["^new-"])]

    validate_hypernode_tree([(hypernode, PLACE) for hypernode in found], dict(NODES))

    assert chains(found) == {}
