"""What holds of every preemption where gangs are about, as victims or as those for whom room is made."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from drawing import choices
from hypothesis import event, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from plain_gangs import (
    URGENT,
    Placing,
    candidate_units,
    check_no_gang_is_broken,
    crowded_with_gangs,
    fits_everywhere,
    gang_key,
    is_protected_by_budget,
    make_member,
    placing_in_one_domain,
    plain_placing,
    random_gang,
    units_of,
    victim_priority,
    without,
)
from plain_preemption import fits
from stories import assembled
from test_preemption import random_budget
from test_rollback import fingerprint

from examples import examples
from mooring.actions.preempt.gangs.search import GangFound, find_for_gang
from mooring.actions.preempt.pods.search import Found, InVain, VictimSearch, refusals
from mooring.model.api.pods import Pod
from mooring.model.events import GangLost, GangSeen, ObjectSeen, PodSeen
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape
from mooring.testing.builders import HOSTNAME, make_affinity, make_pod, make_pod_term, make_spread
from mooring.testing.random_clusters import APPS, Choose, one_in, one_of

PROFILE = assembled(None).default_profile
TERMS: tuple[dict[str, Any], ...] = (
    {"affinity": make_affinity(away=[make_pod_term(HOSTNAME, labels={"app": APPS[0]})])},
    {"host_ports": [80]},
)
WANTED: tuple[dict[str, Any], ...] = (
    {"spread": [make_spread(HOSTNAME, labels={"app": APPS[0]})]},
    {"affinity": make_affinity(away=[make_pod_term(HOSTNAME, labels={"app": APPS[1]})])},
    {"host_ports": [80]},
)


def with_budgets(choose: Choose, cluster: Cluster) -> Cluster:
    for index in range(choose(3)):
        cluster.observe(ObjectSeen(random_budget(choose, index)))
    return cluster


def wanted(choose: Choose, terms: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    more = dict(one_of(choose, terms)) if terms else {}
    shape = {
        "cpu": one_of(choose, ("1", "500m", "2", "1500m")),
        "gpu": choose(2),
        "labels": {"app": one_of(choose, APPS)},
    }
    return shape | more


def settled_fingerprint(cluster: Cluster, shapes: Sequence[Shape]) -> dict[str, Any]:
    """As `fingerprint`, with the columns that come into being when somebody first asks for a resource."""
    for shape in shapes:
        for resource in shape.requests:
            cluster.nodes.resource_code(resource)
    return fingerprint(cluster)


# A pod for which gangs may have to go.


def find(search: VictimSearch, pod: Pod) -> Found | InVain | None:
    answer = refusals(PROFILE, search.cluster, search.cluster.shape_for(pod))
    return None if len(answer.feasible) else search.find(answer, pod)


def check_pod(cluster: Cluster, pod: Pod, *, plain: bool) -> None:
    shape = cluster.shape_for(pod)
    before = settled_fingerprint(cluster, [shape])
    found = find(VictimSearch(cluster), pod)
    assert fingerprint(cluster) == before
    priority = pod.spec.priority or 0
    if isinstance(found, InVain):
        event("in vain")
        if plain:
            with without(cluster, [r for unit in candidate_units(cluster, priority) for r in unit]):
                assert not len(refusals(PROFILE, cluster, shape).feasible)
    if not isinstance(found, Found):
        return
    event("whole gangs" if found.gangs else "by themselves")
    assert all(victim_priority(cluster, victim) < priority for victim in found.victims)
    check_no_gang_is_broken(cluster, found.victims)
    units = units_of(cluster, found.victims)
    for spared in units:
        with without(cluster, [record for unit in units if unit is not spared for record in unit]):
            assert not fits(PROFILE, cluster, shape, found.row), f"{[r.key for r in spared]} need not go"
    with without(cluster, found.victims):
        assert fits(PROFILE, cluster, shape, found.row)


@examples(150)
@given(choose=choices(), nodes=st.integers(1, 5), pods=st.integers(0, 12), gangs=st.integers(1, 5))
def test_a_pod_breaks_no_gang(choose: Choose, nodes: int, pods: int, gangs: int) -> None:
    cluster = with_budgets(choose, crowded_with_gangs(choose, nodes=nodes, pods=pods, gangs=gangs))
    check_pod(cluster, make_pod("urgent", priority=URGENT, **wanted(choose)), plain=True)


@examples(100)
@given(choose=choices(), nodes=st.integers(1, 4), pods=st.integers(0, 10), gangs=st.integers(1, 4))
def test_a_pod_with_terms_about_others_breaks_no_gang(choose: Choose, nodes: int, pods: int, gangs: int) -> None:
    cluster = with_budgets(choose, crowded_with_gangs(choose, nodes=nodes, pods=pods, gangs=gangs, terms=TERMS))
    check_pod(cluster, make_pod("urgent", priority=URGENT, **wanted(choose, WANTED)), plain=False)


# A gang for which others have to go.


def add_gang(choose: Choose, cluster: Cluster, *, shapes: int, terms: Sequence[dict[str, Any]] = ()) -> list[PodRecord]:
    """A gang that waits, with members of so many shapes."""
    given_of = [wanted(choose, terms) for _ in range(shapes)]
    for index in range(1 + choose(5)):
        pod = make_member(f"new-{index}", "new", priority=URGENT, **given_of[index % shapes])
        cluster.observe(PodSeen(pod))
    gang = cluster.gangs.records[gang_key("new")]
    return list(gang.members.values())


def find_gang(
    search: VictimSearch, members: Sequence[PodRecord], domains: NDArray[np.int32] | None = None
) -> GangFound | InVain | None:
    """None where the gang fits as things are."""
    place = placing(members, domains)
    with search.cluster.what_if():
        fits_now = place(search.cluster) is not None
    if fits_now:
        return None
    return find_for_gang(search, [(record, PROFILE) for record in members], URGENT, place, domains=domains)


def placing(members: Sequence[PodRecord], domains: NDArray[np.int32] | None) -> Placing:
    if domains is None:
        return plain_placing(PROFILE, members)
    return placing_in_one_domain(PROFILE, members, domains.tolist())


def check_gang(
    cluster: Cluster, members: list[PodRecord], *, exact: bool, domains: NDArray[np.int32] | None = None
) -> None:
    before = settled_fingerprint(cluster, [record.shape for record in members])
    found = find_gang(VictimSearch(cluster), members, domains)
    assert fingerprint(cluster) == before
    place = placing(members, domains)
    if isinstance(found, InVain):
        event("in vain")
        if exact:
            everybody = [r for unit in candidate_units(cluster, URGENT, gang_key("new")) for r in unit]
            assert_no_place_without(cluster, everybody, place)
    if not isinstance(found, GangFound):
        return
    event("whole gangs" if found.gangs else "by themselves")
    assert sorted(record.key for record, _ in found.assignments) == sorted(record.key for record in members)
    assert all(victim_priority(cluster, victim) < URGENT for victim in found.victims)
    assert domains is None or len({int(domains[row]) for _, row in found.assignments} - {-1}) == 1
    check_no_gang_is_broken(cluster, found.victims)
    check_it_suffices(cluster, found)
    for spared in units_of(cluster, found.victims):
        names = {record.key for record in spared}
        others = [record for record in found.victims if record.key not in names]
        with without(cluster, others):
            for record, row in found.assignments:
                cluster.assume(record.key, row)
            assert not fits_everywhere(PROFILE, cluster, found.assignments), f"{names} need not go"
        if exact:
            assert_no_place_without(cluster, others, place)
    if found.violations and exact:
        units = candidate_units(cluster, URGENT, gang_key("new"))
        free = [unit for unit in units if not any(is_protected_by_budget(cluster, record) for record in unit)]
        assert_no_place_without(cluster, [record for unit in free for record in unit], place)


def assert_no_place_without(cluster: Cluster, victims: Sequence[PodRecord], place: Any) -> None:
    with without(cluster, victims):
        assert place(cluster) is None


def check_it_suffices(cluster: Cluster, found: GangFound) -> None:
    with without(cluster, found.victims):
        for record, row in found.assignments:
            cluster.assume(record.key, row)
        assert fits_everywhere(PROFILE, cluster, found.assignments)


@examples(200)
@given(choose=choices(), nodes=st.integers(1, 6), pods=st.integers(0, 15), gangs=st.integers(0, 5))
def test_a_gang_evicts_no_more_than_it_needs(choose: Choose, nodes: int, pods: int, gangs: int) -> None:
    cluster = with_budgets(choose, crowded_with_gangs(choose, nodes=nodes, pods=pods, gangs=gangs))
    check_gang(cluster, add_gang(choose, cluster, shapes=1), exact=True)


@examples(100)
@given(choose=choices(), nodes=st.integers(1, 5), pods=st.integers(0, 12), gangs=st.integers(0, 4))
def test_a_gang_of_several_shapes_evicts_whole_gangs_or_none(choose: Choose, nodes: int, pods: int, gangs: int) -> None:
    cluster = with_budgets(choose, crowded_with_gangs(choose, nodes=nodes, pods=pods, gangs=gangs))
    check_gang(cluster, add_gang(choose, cluster, shapes=2), exact=False)


@examples(100)
@given(choose=choices(), nodes=st.integers(1, 4), pods=st.integers(0, 10), gangs=st.integers(0, 3))
def test_a_gang_with_terms_about_others_evicts_whole_gangs_or_none(
    choose: Choose, nodes: int, pods: int, gangs: int
) -> None:
    cluster = crowded_with_gangs(choose, nodes=nodes, pods=pods, gangs=gangs, terms=TERMS)
    check_gang(cluster, add_gang(choose, cluster, shapes=1, terms=WANTED), exact=False)


@examples(100)
@given(choose=choices(), nodes=st.integers(2, 7), pods=st.integers(0, 12), gangs=st.integers(0, 4))
def test_a_gang_that_wants_one_domain_gets_room_in_one(choose: Choose, nodes: int, pods: int, gangs: int) -> None:
    cluster = crowded_with_gangs(choose, nodes=nodes, pods=pods, gangs=gangs)
    members = add_gang(choose, cluster, shapes=1)
    domains = np.full(cluster.nodes.capacity, -1, np.int32)
    domains[:nodes] = [choose(4) - 1 for _ in range(nodes)]
    found = find_gang(VictimSearch(cluster), members, domains)
    check_gang(cluster, members, exact=False, domains=domains)
    if isinstance(found, InVain):
        everybody = [r for unit in candidate_units(cluster, URGENT, gang_key("new")) for r in unit]
        assert_no_place_without(cluster, everybody, placing(members, domains))


@given(choose=choices(), changes=st.integers(1, 10))
def test_what_is_kept_about_gangs_changes_no_decision(choose: Choose, changes: int) -> None:
    cluster = crowded_with_gangs(choose, nodes=4, pods=8, gangs=4)
    members = add_gang(choose, cluster, shapes=1)
    pod = make_pod("urgent", priority=URGENT, **wanted(choose))
    kept = VictimSearch(cluster)
    for _ in range(changes):
        find(kept, pod)
        bound = [record for record in cluster.pods.records.values() if record.row >= 0]
        if not bound:
            return
        record = one_of(choose, bound)
        gang = f"gang-{choose(4)}"
        match choose(4):
            case 0:
                cluster.release(record.key)
            case 1:
                cluster.mark_leaving(record.key)
            case 2:
                cluster.observe(GangSeen(random_gang(choose, gang, 4)))
            case _:
                cluster.observe(GangLost(gang_key(gang)))
        if record.row < 0 and one_in(choose, 2):
            cluster.assume(record.key, one_of(choose, cluster.nodes.live_rows().tolist()))

        assert find(kept, pod) == find(VictimSearch(cluster), pod)
        assert find_gang(kept, members) == find_gang(VictimSearch(cluster), members)
