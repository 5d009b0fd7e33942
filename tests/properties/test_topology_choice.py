"""What holds for the choice of domains whatever the topology: compared with trying everything."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plain_topology import Path, Plain, fewest

from mooring.actions.gangs.topology.domains import (
    Assignment,
    MemberKind,
    TooSmall,
    candidates,
    choose,
    choose_together,
    fill,
    fits_by_level,
)
from mooring.model.topology.requests import TopologyRequest
from mooring.state.topology import TopologyTree
from mooring.testing.topology_builders import make_tree

LEVELS = ("zone", "block", "rack")


@dataclass(frozen=True)
class Setting:
    """A topology, what fits where, and how many members there are."""

    plain: Plain
    tree: TopologyTree
    fits: np.ndarray[tuple[int], np.dtype[np.int64]]
    need: int

    @property
    def depths(self) -> range:
        return range(1, self.tree.leaf + 1)

    def level(self, depth: int) -> str:
        return self.tree.levels[depth - 1]


@st.composite
def settings_of_gangs(draw: st.DrawFn, *, most_rows: int = 9) -> Setting:
    depth = draw(st.integers(1, 3))
    paths: list[Path] = draw(st.lists(st.tuples(*[st.sampled_from("xyz")] * depth), min_size=1, max_size=most_rows))
    fits = draw(st.lists(st.integers(0, 5), min_size=len(paths), max_size=len(paths)))
    need = draw(st.integers(1, 12))
    return Setting(Plain(paths, fits), make_tree(LEVELS[:depth], paths), np.array(fits, np.int64), need)


def check_sound(setting: Setting, answer: Assignment, fits: list[int]) -> None:
    """All members have a place, none too many, and each domain has its ranks in one run."""
    assert answer.counts.sum() == setting.need
    assert len(set(answer.rows.tolist())) == len(answer.rows)
    assert all(0 < count <= fits[row] for row, count in answer)
    ranks = answer.by_rank().tolist()
    for depth in setting.depths:
        seen = [setting.plain.paths[row][:depth] for row in ranks]
        changes = sum(one != other for one, other in pairwise(seen))
        assert changes == len(set(seen)) - 1, f"depth {depth}: {seen}"
    if answer.level:
        chosen = setting.tree.depth_of(answer.level)
        assert {"/".join(setting.plain.paths[row][:chosen]) for row in ranks} == {answer.domain}


@given(settings_of_gangs(), st.data())
def test_a_required_domain_is_found_if_and_only_if_there_is_one_and_it_is_the_tightest(
    setting: Setting, data: st.DataObject
) -> None:
    depth = data.draw(st.sampled_from(setting.depths))

    answer = choose(setting.tree, setting.fits, setting.need, TopologyRequest(required=setting.level(depth)))

    totals = {path: setting.plain.total(rows) for path, rows in setting.plain.domains(depth).items()}
    enough = {path: total for path, total in totals.items() if total >= setting.need}
    if not enough:
        assert isinstance(answer, TooSmall)
        assert answer.rooms[answer.decisive].holds == max(totals.values())
        return
    assert isinstance(answer, Assignment)
    check_sound(setting, answer, setting.plain.fits)
    path = tuple(answer.domain.split("/"))
    assert totals[path] == min(enough.values())
    parents = {parent: setting.plain.total(rows) for parent, rows in setting.plain.domains(depth - 1).items()}
    equal = [found for found, total in enough.items() if total == totals[path]]
    assert parents[path[:-1]] == min(parents[found[:-1]] for found in equal)


@given(settings_of_gangs(), st.data())
def test_inside_a_domain_as_few_of_the_next_level_are_used_as_possible(setting: Setting, data: st.DataObject) -> None:
    depth = data.draw(st.sampled_from(setting.depths))

    answer = choose(setting.tree, setting.fits, setting.need, TopologyRequest(required=setting.level(depth)))

    if isinstance(answer, TooSmall):
        return
    path = tuple(answer.domain.split("/"))
    inside = setting.plain.domains(depth)[path]
    if depth == setting.tree.leaf:
        used, sizes = len(answer.rows), [setting.plain.fits[row] for row in inside]
    else:
        finer = {key: rows for key, rows in setting.plain.domains(depth + 1).items() if key[:depth] == path}
        used = len({setting.plain.paths[row][: depth + 1] for row in answer.rows.tolist()})
        sizes = [setting.plain.total(rows) for rows in finer.values()]
    assert used == fewest(sizes, setting.need)


@given(settings_of_gangs(), st.data())
def test_a_preferred_level_gives_way_to_the_first_coarser_one_that_holds_all(
    setting: Setting, data: st.DataObject
) -> None:
    depth = data.draw(st.sampled_from(setting.depths))

    answer = choose(setting.tree, setting.fits, setting.need, TopologyRequest(preferred=setting.level(depth)))

    for tried in range(depth, -1, -1):
        sizes = [setting.plain.total(rows) for rows in setting.plain.domains(tried).values()]
        if max(sizes) >= setting.need:
            assert isinstance(answer, Assignment)
            assert answer.level == (setting.level(tried) if tried else "")
            check_sound(setting, answer, setting.plain.fits)
            if not tried:
                used = len({setting.plain.paths[row][:1] for row in answer.rows.tolist()})
                blocks = [setting.plain.total(rows) for rows in setting.plain.domains(1).values()]
                assert used == fewest(blocks, setting.need)
            return
    assert isinstance(answer, TooSmall)
    assert answer.message == f"the topology holds {sum(setting.plain.fits)} of {setting.need} members"


@given(settings_of_gangs(), st.data())
def test_slices_have_a_place_if_and_only_if_packing_them_one_by_one_finds_one(
    setting: Setting, data: st.DataObject
) -> None:
    required = data.draw(st.sampled_from([None, *setting.depths]))
    slices = data.draw(st.sampled_from(setting.depths))
    size = data.draw(st.integers(2, 4))
    topology_request = TopologyRequest(
        required=setting.level(required) if required else None, slice_size=size, slice_level=setting.level(slices)
    )

    answer = choose(setting.tree, setting.fits, setting.need, topology_request)

    holding = {
        path
        for path, rows in setting.plain.domains(required or 0).items()
        if setting.plain.holds(rows, setting.need, size, slices)
    }
    assert isinstance(answer, Assignment) == bool(holding)
    if isinstance(answer, TooSmall):
        assert answer.rooms[answer.decisive].holds < setting.need
        return
    check_sound(setting, answer, setting.plain.fits)
    if required:
        assert tuple(answer.domain.split("/")) in holding
    ranks = answer.by_rank().tolist()
    for start in range(0, setting.need, size):
        assert len({setting.plain.paths[row][:slices] for row in ranks[start : start + size]}) == 1


@given(settings_of_gangs(), st.data())
def test_a_leader_has_a_place_beside_its_members_if_and_only_if_trying_every_row_finds_one(
    setting: Setting, data: st.DataObject
) -> None:
    required = data.draw(st.sampled_from([None, *setting.depths]))
    slices = data.draw(st.sampled_from(setting.depths))
    size = data.draw(st.integers(1, 3))
    beside = [data.draw(st.integers(-1, room)) for room in setting.plain.fits]
    topology_request = TopologyRequest(
        required=setting.level(required) if required else None, slice_size=size, slice_level=setting.level(slices)
    )

    answer = choose(setting.tree, setting.fits, setting.need, topology_request, leader_fits=np.array(beside, np.int64))

    plain = setting.plain
    can_be = any(
        seated.holds(rows, setting.need, size, slices)
        for rows in plain.domains(required or 0).values()
        for seated in Plain(plain.paths, [room if row in rows else 0 for row, room in enumerate(plain.fits)]).seated(
            [room if row in rows else -1 for row, room in enumerate(beside)]
        )
    )
    if setting.need % size == 0:  # a smaller last slice counts as a whole one beside a leader
        assert isinstance(answer, Assignment) == can_be
    if isinstance(answer, Assignment):
        assert can_be and beside[answer.leader] >= 0
        room = list(plain.fits)
        room[answer.leader] = beside[answer.leader]
        check_sound(setting, answer, room)
        if answer.level:
            depth = setting.tree.depth_of(answer.level)
            assert "/".join(plain.paths[answer.leader][:depth]) == answer.domain


@given(settings_of_gangs())
def test_the_room_of_each_level_is_that_of_its_largest_domain(setting: Setting) -> None:
    rooms = fits_by_level(setting.tree, setting.fits)

    assert [(room.holds, room.domains) for room in rooms] == [
        (
            max(setting.plain.total(rows) for rows in setting.plain.domains(depth).values()),
            len(setting.plain.domains(depth)),
        )
        for depth in range(setting.tree.leaf + 1)
    ]


@given(settings_of_gangs(most_rows=6), st.data())
def test_a_domain_that_holds_several_kinds_together_is_among_the_candidates(
    setting: Setting, data: st.DataObject
) -> None:
    # Kinds of different weight compete for the rows: `fits` is what a row has, each kind takes some of it.
    weights = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    needs = [data.draw(st.integers(1, 3)) for _ in weights]
    required = data.draw(st.sampled_from([None, *setting.depths]))
    topology_request = TopologyRequest(
        required=setting.level(required) if required else None,
        preferred=setting.level(data.draw(st.sampled_from(setting.depths))) if data.draw(st.booleans()) else None,
    )
    kinds = [MemberKind(setting.fits // weight, need) for weight, need in zip(weights, needs, strict=True)]

    def place(rows: list[int]) -> bool:
        rooms = tuple(sorted(setting.plain.fits[row] for row in rows))
        return _all_fit(rooms, [weight for weight, need in zip(weights, needs, strict=True) for _ in range(need)])

    def plan(found: object) -> bool | None:
        return place(found.rows.tolist()) or None  # type: ignore[attr-defined]

    answer = choose_together(setting.tree, kinds, topology_request, plan)

    can_be = any(place(rows) for rows in setting.plain.domains(required or 0).values())
    assert (answer is True) == can_be
    for candidate in candidates(setting.tree, kinds, topology_request):
        inside = set(candidate.rows.tolist())
        assert all(sum(kind.fits[row] for row in inside) >= kind.need for kind in kinds)
        assert candidate.rows.tolist() == [row for row in setting.tree.rows.tolist() if row in inside]


def _all_fit(rooms: tuple[int, ...], weights: list[int]) -> bool:
    if not weights:
        return True
    return any(
        room >= weights[0] and _all_fit((*rooms[:index], room - weights[0], *rooms[index + 1 :]), weights[1:])
        for index, room in enumerate(rooms)
        if room not in rooms[:index]
    )


@given(st.lists(st.tuples(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 12)), min_size=1))
def test_many_parents_are_filled_at_once_as_they_would_be_one_by_one(parents: list[tuple[list[int], int]]) -> None:
    sizes = [np.array(found, np.int64) for found, _ in parents]
    wanted = [min(want, int(found.sum())) for found, (_, want) in zip(sizes, parents, strict=True)]
    owner = np.repeat(np.arange(len(parents)), [len(found) for found in sizes])

    together = fill(owner, np.array(wanted, np.int64), np.concatenate(sizes), np.concatenate(sizes))

    alone = [_fill_plainly(found.tolist(), want) for found, want in zip(sizes, wanted, strict=True)]
    assert together.tolist() == [taken for found in alone for taken in found]


def _fill_plainly(sizes: list[int], wanted: int) -> list[int]:
    taken = [0] * len(sizes)
    left = sorted(range(len(sizes)), key=lambda index: -sizes[index])
    while wanted:
        holding = [index for index in left if sizes[index] >= wanted]
        index = min(holding, key=lambda found: sizes[found]) if holding else left[0]
        taken[index] = min(wanted, sizes[index])
        wanted -= taken[index]
        left.remove(index)
    return taken
