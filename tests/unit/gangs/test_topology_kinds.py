"""Several kinds of members in one domain: which may hold them all, in which order, and why none does."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from topology_cases import BLOCK, IN_BLOCK, IN_RACK, RACK, column, reason, small

from mooring.actions.gangs.topology.domains import Candidate, MemberKind, candidates, choose_together
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.topology_builders import make_tree


def names(found: Sequence[Candidate]) -> list[str]:
    return [candidate.domain for candidate in found]


def test_candidates_hold_each_kind_alone_the_tightest_first() -> None:
    servers = MemberKind(column(4, 4, 2, 2, 2, 1, 8, 8), 3)
    workers = MemberKind(column(9, 9, 9, 9, 9, 9, 0, 1), 2)

    assert names(list(candidates(small(), [servers, workers], IN_RACK))) == ["b/1", "a/2", "a/1"]


def test_candidates_go_from_the_preferred_level_up_to_several_domains() -> None:
    kinds = [MemberKind(column(2, 0, 2, 0, 2, 0, 0, 0), 4), MemberKind(column(1, 1, 1, 1, 1, 1, 1, 1), 2)]

    found = list(candidates(small(), kinds, TopologyRequest(preferred=RACK)))

    assert [(candidate.level, candidate.domain) for candidate in found] == [(BLOCK, "a"), ("", "")]
    assert found[-1].rows.tolist() == list(range(8))


def test_several_domains_are_as_few_as_possible_and_the_whole_topology_at_last() -> None:
    tree = make_tree([BLOCK], [(block,) for block in "abcd"])
    kinds = [MemberKind(column(1, 4, 2, 4), 6), MemberKind(column(9, 9, 9, 9), 3)]

    found = list(candidates(tree, kinds, TopologyRequest()))

    assert [candidate.rows.tolist() for candidate in found] == [[1, 3], [1, 2, 3], [0, 1, 2, 3]]


def test_several_domains_hold_a_last_slice_that_is_smaller_in_what_is_left_over() -> None:
    tree = make_tree([BLOCK], [("a",), ("b",)])
    slices = TopologyRequest(slice_size=2, slice_level=BLOCK)

    def is_held(need: int) -> bool:
        return any(candidates(tree, [MemberKind(column(3, 2), need, slices)], TopologyRequest()))

    assert [need for need in range(4, 8) if is_held(need)] == [4, 5]


def test_a_part_without_a_name_is_a_candidate_as_a_part_of_the_whole() -> None:
    tree = make_tree([BLOCK, RACK], [(None, "1"), (None, "2")], with_gaps=True)

    found = list(candidates(tree, [MemberKind(column(1, 1), 2)], TopologyRequest(preferred=BLOCK)))

    assert [(candidate.level, candidate.rows.tolist()) for candidate in found] == [("", [0, 1])]


def test_a_kind_with_a_level_of_its_own_needs_one_domain_of_it_inside_the_common_one() -> None:
    together = MemberKind(column(2, 2, 2, 2, 3, 3, 0, 0), 5, TopologyRequest(required=RACK))

    assert names(list(candidates(small(), [together], IN_BLOCK))) == ["b"]


def test_the_first_candidate_in_which_all_find_a_place_is_taken() -> None:
    kinds = [MemberKind(column(2, 2, 2, 2, 4, 4, 0, 0), 4), MemberKind(column(2, 2, 2, 2, 4, 4, 0, 0), 4)]
    tried = []

    def place(candidate: Candidate) -> str | None:
        tried.append(candidate.domain)
        return candidate.domain if candidate.domain == "b/1" else None

    assert choose_together(small(), kinds, IN_RACK, place) == "b/1"
    assert tried == ["a/1", "a/2", "b/1"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(
            column(4, 4, 4, 4, 4, 4, 4, 4),
            column(4, 4, 4, 4, 4, 4, 4, 4),
            "no rack holds all kinds of members together, though 4 hold each alone",
            id="they compete",
        ),
        pytest.param(
            column(8, 0, 0, 0, 0, 0, 0, 0),
            column(0, 0, 8, 0, 0, 0, 0, 0),
            "no rack holds all kinds of members together",
            id="they fit into different racks",
        ),
        pytest.param(
            column(8, 8, 0, 0, 0, 0, 0, 0),
            column(3, 0, 0, 0, 0, 0, 0, 0),
            "largest rack holds 3 of 8 members, of 16 in all",
            id="one fits none",
        ),
    ],
)
def test_why_several_kinds_have_no_place(first: NDArray[np.int64], second: NDArray[np.int64], expected: str) -> None:
    kinds = [MemberKind(first, 8), MemberKind(second, 8)]

    assert reason(choose_together(small(), kinds, IN_RACK, lambda candidate: None)) == expected


def test_the_common_level_is_blamed_where_kinds_that_ask_for_the_same_fill_it_together() -> None:
    """Each of three has a rack of its own; a block has two racks."""
    kinds = [MemberKind(column(*[4] * 8), 8, IN_RACK, asks="gpu") for _ in range(3)]

    answer = choose_together(small(), kinds, IN_BLOCK, lambda candidate: None)

    assert reason(answer) == "largest block holds 16 of 24 members"


def test_kinds_that_ask_for_different_things_are_not_counted_together() -> None:
    kinds = [MemberKind(column(*[4] * 8), 8, IN_RACK, asks=asks) for asks in ("gpu", "cpu", "fpga")]

    answer = choose_together(small(), kinds, IN_BLOCK, lambda candidate: None)

    assert reason(answer) == "no block holds all kinds of members together, though 2 hold each alone"


def test_members_of_one_kind_that_keep_one_another_out_are_not_called_kinds() -> None:
    answer = choose_together(small(), [MemberKind(column(*[4] * 8), 8)], IN_RACK, lambda candidate: None)

    assert reason(answer) == "no rack takes all 8 members, though 4 have room for as many"


def test_a_role_that_is_short_is_named() -> None:
    kinds = [MemberKind(column(*[0] * 8), 1, role="leader"), MemberKind(column(*[4] * 8), 3, role="worker")]

    answer = choose_together(small(), kinds, IN_RACK, lambda candidate: None)

    assert reason(answer) == "largest rack holds 0 of 1 leader members, of 4 in all"


def test_several_kinds_with_a_level_that_is_missing() -> None:
    kinds = [MemberKind(column(*[1] * 8), 1, TopologyRequest(required="example.com/row"))]

    answer = choose_together(small(), kinds, IN_RACK, lambda candidate: candidate)

    assert reason(answer) == "the topology has no level example.com/row"
