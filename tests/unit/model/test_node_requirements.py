"""The algebra of requirements on labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.model.capacity.labels import WELL_KNOWN, ZONE, is_restricted
from mooring.model.capacity.requirements import (
    ABSENT,
    ANY,
    Requirement,
    Requirements,
    collect,
    from_labels,
    is_in,
    make_requirement,
)

VALUES = ("1", "2", "3", "10", "x")
REQUIREMENTS = st.one_of(
    st.sets(st.sampled_from(VALUES)).map(lambda values: make_requirement("In", values)),
    st.sets(st.sampled_from(VALUES), min_size=1).map(lambda values: make_requirement("NotIn", values)),
    st.sampled_from([ANY, ABSENT]),
    st.sampled_from(["Gt", "Lt", "Gte", "Lte"]).flatmap(
        lambda operator: st.sampled_from(["1", "2", "9"]).map(lambda bound: make_requirement(operator, [bound]))
    ),
)


@given(REQUIREMENTS, REQUIREMENTS)
def test_an_intersection_has_what_both_have(one: Requirement, other: Requirement) -> None:
    both = one.intersection(other)

    assert [value for value in VALUES if both.has(value)] == [
        value for value in VALUES if one.has(value) and other.has(value)
    ]


@given(REQUIREMENTS, REQUIREMENTS)
def test_intersecting_does_not_depend_on_the_order(one: Requirement, other: Requirement) -> None:
    assert one.intersection(other) == other.intersection(one)
    assert one.intersects(other) == other.intersects(one)


@given(REQUIREMENTS, REQUIREMENTS)
def test_what_has_a_value_in_common_intersects(one: Requirement, other: Requirement) -> None:
    if any(one.has(value) and other.has(value) for value in VALUES):
        assert one.intersects(other)


@pytest.mark.parametrize(
    ("operator", "values", "written"),
    [
        ("In", ["a"], "In"),
        ("In", [], "DoesNotExist"),
        ("NotIn", ["a"], "NotIn"),
        ("Exists", [], "Exists"),
        ("DoesNotExist", [], "DoesNotExist"),
        ("Gt", ["4"], "Exists"),
    ],
)
def test_operators_are_those_of_what_is_left(operator: str, values: list[str], written: str) -> None:
    assert make_requirement(operator, values).operator == written


def test_bounds_are_inclusive_once_they_are_read() -> None:
    above, below = make_requirement("Gt", ["4"]), make_requirement("Lt", ["9"])

    both = above.intersection(below)

    assert (both.at_least, both.at_most) == (5, 8)
    assert [both.has(value) for value in ("4", "5", "8", "9", "five")] == [False, True, True, False, False]
    assert above.intersection(make_requirement("Lt", ["5"])).operator == "DoesNotExist"


def test_the_larger_of_two_min_values_holds() -> None:
    one = make_requirement("Exists", min_values=2)

    assert one.intersection(make_requirement("In", ["a", "b", "c"], 3)).min_values == 3


def test_a_custom_label_has_to_be_named_and_a_well_known_one_need_not() -> None:
    pool = from_labels({"team": "ai"})

    assert pool.accepts({"team": is_in("ai", "web")})
    assert not pool.accepts({"team": is_in("web")})
    assert not pool.accepts({"rack": is_in("r1")})
    assert pool.accepts({"rack": make_requirement("NotIn", ["r1"])})
    assert not pool.accepts({ZONE: is_in("a")})
    assert pool.accepts({ZONE: is_in("a")}, WELL_KNOWN)


def test_two_that_may_both_lack_a_label_agree() -> None:
    without = Requirements({"gpu": ABSENT})

    assert without.overlaps({"gpu": make_requirement("NotIn", ["a100"])})
    assert not without.overlaps({"gpu": is_in("a100")})


def test_old_names_of_labels_mean_the_new_ones() -> None:
    found = collect([("failure-domain.beta.kubernetes.io/zone", is_in("a", "b")), (ZONE, is_in("b", "c"))])

    assert found == Requirements({ZONE: is_in("b")})


@pytest.mark.parametrize(
    ("key", "restricted"),
    [
        ("kubernetes.io/hostname", True),
        ("karpenter.sh/registered", True),
        ("karpenter.sh/nodepool", False),
        ("team", False),
    ],
)
def test_pods_may_not_select_by_labels_that_karpenter_decides_on(key: str, restricted: bool) -> None:
    assert is_restricted(key) is restricted
