"""The choice of domains for a gang: required, preferred, slices, leaders; and why there is none."""

import pytest
from topology_cases import BLOCK, IN_BLOCK, IN_RACK, RACK, column, reason, small

from mooring.actions.gangs.topology.domains import Assignment, LevelRoom, TooSmall, choose, fits_by_level
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.topology_builders import make_tree


def chosen(answer: Assignment | TooSmall) -> list[tuple[int, int]]:
    assert isinstance(answer, Assignment), answer
    return list(answer)


def test_the_tightest_rack_that_holds_all_is_taken() -> None:
    answer = choose(small(), column(4, 4, 2, 3, 4, 4, 4, 2), 5, IN_RACK)

    assert chosen(answer) == [(2, 2), (3, 3)]
    assert isinstance(answer, Assignment) and (answer.level, answer.domain) == (RACK, "a/2")


def test_of_equal_racks_the_one_in_the_fuller_block_is_taken() -> None:
    answer = choose(small(), column(4, 4, 2, 2, 2, 2, 0, 0), 4, IN_RACK)

    assert chosen(answer) == [(4, 2), (5, 2)]


def test_members_go_to_as_few_nodes_as_possible_and_the_last_to_the_tightest() -> None:
    tree = make_tree([RACK], [("r",)] * 5)

    assert chosen(choose(tree, column(2, 8, 3, 4, 8), 11, IN_RACK)) == [(1, 8), (2, 3)]
    assert chosen(choose(tree, column(2, 8, 3, 4, 8), 20, IN_RACK)) == [(1, 8), (3, 4), (4, 8)]


def test_ranks_follow_the_path_not_the_order_in_which_rows_were_filled() -> None:
    answer = choose(small(), column(1, 1, 4, 4, 9, 9, 9, 9), 9, IN_BLOCK)

    assert isinstance(answer, Assignment)
    assert answer.by_rank().tolist() == [0] + [2] * 4 + [3] * 4


def test_a_required_rack_that_is_too_small_says_how_much_the_largest_holds() -> None:
    answer = choose(small(), column(1, 1, 4, 4, 2, 2, 2, 2), 16, IN_RACK)

    assert reason(answer) == "largest rack holds 8 of 16 members"
    assert isinstance(answer, TooSmall)
    assert answer.rooms == (
        LevelRoom("", "topology", "", 18, 1),
        LevelRoom(BLOCK, "block", "a", 10, 2),
        LevelRoom(RACK, "rack", "a/2", 8, 4),
    )


def test_a_preferred_rack_gives_way_to_a_block_and_that_to_several() -> None:
    fits = column(1, 1, 4, 4, 2, 2, 2, 2)
    topology_request = TopologyRequest(preferred=RACK)

    levels = []
    for need in (8, 9, 11):
        answer = choose(small(), fits, need, topology_request)
        assert isinstance(answer, Assignment) and answer.counts.sum() == need
        levels.append((answer.level, answer.domain))

    assert levels == [(RACK, "a/2"), (BLOCK, "a"), ("", "")]
    assert reason(choose(small(), fits, 19, topology_request)) == "the topology holds 18 of 19 members"


def test_preferred_within_required_goes_no_higher() -> None:
    fits = column(1, 1, 4, 4, 2, 2, 2, 2)
    topology_request = TopologyRequest(required=BLOCK, preferred=RACK)

    assert isinstance(choose(small(), fits, 10, topology_request), Assignment)
    assert reason(choose(small(), fits, 11, topology_request)) == "largest block holds 10 of 11 members"


def test_a_preferred_level_above_the_required_one_adds_nothing() -> None:
    fits = column(1, 1, 4, 4, 2, 2, 2, 2)

    both = choose(small(), fits, 4, TopologyRequest(required=RACK, preferred=BLOCK))

    assert chosen(both) == chosen(choose(small(), fits, 4, IN_RACK))


def test_over_several_blocks_as_few_as_possible() -> None:
    tree = make_tree([BLOCK], [(block,) for block in "abcd"])

    assert chosen(choose(tree, column(3, 5, 2, 4), 7, TopologyRequest(preferred=BLOCK))) == [(1, 5), (2, 2)]


def test_slices_are_each_within_one_rack() -> None:
    fits = column(3, 0, 2, 1, 3, 0, 1, 1)  # racks of 3, 3, 3 and 2
    topology_request = TopologyRequest(required=BLOCK, slice_size=2, slice_level=RACK)

    assert chosen(choose(small(), fits, 4, topology_request)) == [(4, 2), (6, 1), (7, 1)]
    answer = choose(small(), fits, 6, topology_request)
    assert reason(answer) == "largest block holds 4 of 6 members in slices of 2"


def test_slices_without_a_level_for_all_of_them_may_be_anywhere() -> None:
    fits = column(2, 0, 2, 0, 2, 0, 0, 0)

    answer = choose(small(), fits, 6, TopologyRequest(slice_size=2, slice_level=RACK))

    assert chosen(answer) == [(0, 2), (2, 2), (4, 2)]


def test_a_last_slice_that_is_smaller_takes_what_is_left_over_and_comes_last() -> None:
    fits = column(3, 2, 4, 0, 0, 0, 0, 0)  # racks of 5 and 4: two slices of 4, and one left over in the first
    topology_request = TopologyRequest(required=BLOCK, slice_size=4, slice_level=RACK)

    answer = choose(small(), fits, 9, topology_request)

    assert isinstance(answer, Assignment)
    assert answer.by_rank().tolist() == [2] * 4 + [0] * 3 + [1] * 2
    assert reason(choose(small(), fits, 10, topology_request)) == "largest block holds 8 of 10 members in slices of 4"


def test_slices_are_no_matter_within_one_of_their_domains() -> None:
    topology_request = TopologyRequest(required=RACK, slice_size=4, slice_level=BLOCK)

    assert chosen(choose(small(), column(3, 2, 0, 0, 0, 0, 0, 0), 5, topology_request)) == [(0, 3), (1, 2)]


def test_the_leader_sits_where_all_members_are() -> None:
    fits = column(4, 4, 8, 8, 0, 0, 0, 0)
    beside = column(3, 3, 7, 7, -1, -1, -1, -1)

    answer = choose(small(), fits, 15, IN_BLOCK, leader_fits=beside)

    assert isinstance(answer, Assignment)
    assert answer.leader in (2, 3)
    assert set(answer.rows.tolist()) == {2, 3}


def test_the_leader_does_not_take_the_place_of_members_that_have_no_other() -> None:
    tree = make_tree([RACK], [("r",), ("r",)])

    answer = choose(tree, column(10, 5), 15, IN_RACK, leader_fits=column(6, 5))

    assert isinstance(answer, Assignment)
    assert (list(answer), answer.leader) == ([(0, 10), (1, 5)], 1)


def test_a_rack_in_which_the_leader_has_no_place_is_not_taken() -> None:
    fits, beside = column(2, 2, 8, 8, 0, 0, 0, 0), column(-1, -1, 7, -1, 0, -1, -1, -1)

    answer = choose(small(), fits, 4, IN_RACK, leader_fits=beside)
    assert isinstance(answer, Assignment) and (answer.domain, answer.leader) == ("a/2", 2)

    nowhere = choose(small(), fits, 4, IN_RACK, leader_fits=column(*[-1] * 8))
    assert reason(nowhere) == "no node has a place for the leader"


def test_a_leader_may_sit_in_a_rack_with_no_place_for_a_member_beside_it() -> None:
    fits, beside = column(3, 0, 5, 0, 0, 0, 0, 0), column(0, -1, -1, -1, -1, -1, -1, -1)

    answer = choose(small(), fits, 5, IN_BLOCK, leader_fits=beside)

    assert isinstance(answer, Assignment)
    assert (list(answer), answer.leader) == ([(2, 5)], 0)


def test_members_that_run_already_pin_the_domain() -> None:
    tree = small()
    rack_of_row_6 = int(tree.codes(RACK)[6])

    answer = choose(tree, column(4, 4, 2, 3, 4, 4, 4, 4), 5, IN_RACK, among=tree.rows_of(2, rack_of_row_6))

    assert {row for row, _ in chosen(answer)} == {6, 7}


def test_domains_without_a_name_hold_members_but_cannot_be_asked_for() -> None:
    tree = make_tree([BLOCK, RACK], [("a", "1"), ("a", None), ("a", None)], with_gaps=True)
    fits = column(2, 4, 4)

    assert reason(choose(tree, fits, 4, IN_RACK)) == "largest rack holds 2 of 4 members"
    assert chosen(choose(tree, fits, 10, IN_BLOCK)) == [(1, 4), (2, 4), (0, 2)]
    slices = TopologyRequest(required=BLOCK, slice_size=2, slice_level=RACK)
    assert reason(choose(tree, fits, 4, slices)) == "largest block holds 2 of 4 members in slices of 2"
    assert reason(choose(tree, fits, 3, slices)) == "largest block holds 2 of 3 members in slices of 2"


@pytest.mark.parametrize("missing", ["required", "slice_level"])
def test_a_level_that_the_topology_lacks_is_named(missing: str) -> None:
    topology_request = TopologyRequest(**{"slice_size": 2, missing: "example.com/row"})  # type: ignore[arg-type]

    assert reason(choose(small(), column(*[9] * 8), 4, topology_request)) == "the topology has no level example.com/row"


def test_a_preferred_level_that_the_topology_lacks_keeps_nobody_waiting() -> None:
    fits = column(1, 1, 4, 4, 2, 2, 2, 2)

    preferred = choose(small(), fits, 8, TopologyRequest(required=BLOCK, preferred="example.com/row"))

    assert chosen(preferred) == chosen(choose(small(), fits, 8, IN_BLOCK))


def test_nothing_needs_no_place_and_an_empty_topology_has_none() -> None:
    empty = make_tree([BLOCK, RACK], [])

    assert chosen(choose(empty, column(), 0, IN_RACK)) == []
    assert reason(choose(empty, column(), 1, IN_RACK)) == (
        "no node has all labels of the topology (example.com/block, example.com/rack)"
    )
    assert reason(choose(make_tree([RACK], []), column(), 1, IN_RACK)) == "no node has the label example.com/rack"
    assert reason(choose(empty, column(), 1, TopologyRequest(preferred=RACK))) == "the topology holds 0 of 1 members"


def test_the_room_of_each_level_is_told_in_slices_where_they_matter() -> None:
    fits = column(3, 0, 2, 1, 3, 0, 1, 1)

    plain = fits_by_level(small(), fits)
    sliced = fits_by_level(small(), fits, TopologyRequest(slice_size=2, slice_level=RACK))

    assert [room.holds for room in plain] == [11, 6, 3]
    assert [room.holds for room in sliced] == [8, 4, 3]
