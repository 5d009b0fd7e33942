"""A rehearsal places pods with the real plugins, on all rows or on some, and leaves nothing behind if undone."""

from gang_builders import make_gang, make_members

from mooring.actions.batches import Batches
from mooring.actions.gangs.placing import GangPlacer
from mooring.actions.gangs.rehearsal import Rehearsal
from mooring.assembly import assemble
from mooring.model.events import GangSeen
from mooring.model.node_offer import NodeOffer
from mooring.state.cluster import Cluster
from mooring.state.plans import Held, Plan, Reason
from mooring.state.pods import UNBOUND
from mooring.testing.builders import make_cluster, make_node, make_pod


def rehearsal() -> Rehearsal:
    return Rehearsal(assemble().profiles, GangPlacer(Batches({})))


def two_nodes() -> Cluster:
    cluster = make_cluster(nodes=[make_node("a", gpu=4), make_node("b", gpu=2)], pods=make_members(4, gpu=1))
    cluster.observe(GangSeen(make_gang(minimum=4)))
    return cluster


def test_a_gang_goes_where_the_offered_rows_have_room_for_all_of_it() -> None:
    cluster = two_nodes()
    pods = [record.pod for record in cluster.pods.records.values()]
    row_of = cluster.nodes.row_of

    with cluster.what_if():
        on_a = rehearsal().place(cluster, pods, rows=[row_of["a"]])
    with cluster.what_if():
        on_b = rehearsal().place(cluster, pods, rows=[row_of["b"]])

    assert (set(on_a.rows.values()), on_a.problem) == ({row_of["a"]}, "")
    assert (on_b.rows, on_b.problem) == ({}, "gang default/train cannot be placed: room for 2 of 4 members")
    assert cluster.offered_rows is None
    assert not any(record.node_name for record in cluster.pods.records.values())


def test_rows_that_are_not_offered_are_refused_in_the_reason() -> None:
    cluster = make_cluster(nodes=[make_node("a"), make_node("b")], pods=[make_pod("one")])

    with cluster.what_if():
        found = rehearsal().place(cluster, [make_pod("one")], rows=[])

    said = "pod default/one cannot be placed: 0/2 nodes are available: 2 node(s) were not on offer."
    assert found.problem == said


def test_rows_that_were_free_a_moment_ago_are_not_filled_when_they_are_not_offered() -> None:
    """How many members each row takes is remembered."""
    cluster, found = two_nodes(), rehearsal()
    pods = [record.pod for record in cluster.pods.records.values()]
    row_of = cluster.nodes.row_of

    outcomes = []
    for rows in (None, [row_of["b"]], [row_of["a"]], [], None):
        with cluster.what_if():
            outcomes.append(found.place(cluster, pods, rows=rows))

    assert [bool(outcome.problem) for outcome in outcomes] == [False, True, False, True, False]


def test_a_gang_goes_to_nodes_on_offer_where_there_is_no_other_room() -> None:
    cluster = two_nodes()
    pods = [record.pod for record in cluster.pods.records.values()]
    small, large = NodeOffer(make_node("small", gpu=1)), NodeOffer(make_node("large", gpu=2))
    found = rehearsal()

    with cluster.what_if():
        too_few = found.place(cluster, pods, rows=[], offers=[small, large])
    with cluster.what_if():
        enough = found.place(cluster, pods, rows=[], offers=[small, small, large])

    assert too_few.problem == "gang default/train cannot be placed: room for 3 of 4 members"
    assert sorted(enough.offers.values()) == [0, 1, 2, 2]
    assert list(cluster.nodes.row_of) == ["a", "b"]


def test_pods_that_nodes_on_offer_do_not_hold_are_told_so() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=1)], pods=[make_pod("one", cpu=4)])

    with cluster.what_if():
        found = rehearsal().place(cluster, [make_pod("one", cpu=4)], offers=[NodeOffer(make_node("offer", cpu=2))])

    assert found.problem == "pod default/one cannot be placed: 0/2 nodes are available: 2 Insufficient cpu."


def test_a_rehearsal_on_offers_becomes_a_plan() -> None:
    """The rows are others by then, if another plan was adopted in between: an offer is named by its index."""
    cluster = make_cluster(nodes=[make_node("a", cpu=1)], pods=[make_pod("one", cpu=4), make_pod("two", cpu=4)])
    offer = NodeOffer(make_node("large", cpu=4))
    pods = [record.pod for record in cluster.pods.records.values()]
    with cluster.what_if():
        found = rehearsal().place(cluster, pods, offers=[offer, offer])
    cluster.open_row(NodeOffer(make_node("other", cpu=1)))

    holds = tuple(Held(key, UNBOUND, offer=index) for key, index in found.offers.items())
    plan = cluster.plan(cluster.adopt(Plan(Reason.SCALE_UP, holds, opens=(offer, offer))))

    assert sorted(held.node for held in plan.holds) == sorted(plan.opened)
    assert all(cluster.nodes.name(cluster.pods.records[held.key].row) == held.node for held in plan.holds)


def test_nodes_that_are_being_launched_count_where_they_are_asked_for() -> None:
    cluster = make_cluster(nodes=[make_node("a", cpu=1)], pods=[make_pod("one", cpu=2)])
    plan = cluster.plan(cluster.adopt(Plan(Reason.SCALE_UP, opens=(NodeOffer(make_node("large", cpu=4)),))))
    row = cluster.nodes.row_of[plan.opened[0]]

    with cluster.what_if():
        everywhere = rehearsal().place(cluster, [make_pod("one", cpu=2)])
    with cluster.what_if():
        there = rehearsal().place(cluster, [make_pod("one", cpu=2)], rows=[row])

    assert "1 node(s) were being launched or terminated" in everywhere.problem
    assert there.rows == {"default/one": row}
