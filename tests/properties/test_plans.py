"""Plans of all kinds, adopted, renewed, settled, dropped and failing in any order, leave nothing behind when undone."""

from dataclasses import replace
from typing import Any

from drawing import choices
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as replace_struct
from test_rollback import fingerprint, random_patch

from mooring.engine.disruption import successor_of
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import ContainerImage, Node
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetSpec
from mooring.model.decisions import Launch, Resize, Terminate
from mooring.model.events import Failed, ObjectSeen
from mooring.model.keys import PodKey
from mooring.model.node_offer import NodeOffer
from mooring.state.cluster import Cluster
from mooring.state.plans import Amend, Held, Plan, Reason, Successor
from mooring.state.pods import UNBOUND, Leaving, PodRecord
from mooring.testing.builders import make_node, make_selector
from mooring.testing.random_clusters import Choose, one_in, one_of, random_cluster


def everything(cluster: Cluster) -> dict[str, Any]:
    """All that a plan may touch."""
    return fingerprint(cluster) | {
        "plans": dict(cluster.plans()),
        "setbacks": dict(cluster.setbacks),
        "evictions": dict(cluster.evictions),
        "spent": cluster.budgets.fingerprint(),
        "allowed": cluster.budgets.allowed().tolist(),
        "guarded": sorted(record.key for record, _ in cluster.guarded),
        "barred": sorted(cluster.barred_rows),
        "order of nodes": list(cluster.nodes.row_of),
        "live": cluster.nodes.live_rows().tolist(),
        "images": {name: sorted(image.rows) for name, image in cluster.nodes.images.items()},
    }


def random_offer(choose: Choose) -> NodeOffer:
    """A kind of node, with the zones that other nodes have or one of its own, with images or cards or neither."""
    zone = one_of(choose, ("zone-0", "zone-1", "zone-new"))
    node = make_node("offer", cpu=1 + choose(8), gpu=one_of(choose, (0, 0, 4)), zone=zone)
    return NodeOffer(one_of(choose, (node, with_image(node))))


def with_image(node: Node) -> Node:
    return replace_struct(node, status=replace_struct(node.status, images=[ContainerImage(["app:v1"], 1 << 20)]))


def random_plan(cluster: Cluster, choose: Choose) -> Plan:
    """Some pods leave, pods and successors hold rows, some pods are changed, and nodes come and go."""
    records = list(cluster.pods.records.values())
    rows = cluster.nodes.live_rows()

    def row() -> int:
        return int(rows[choose(len(rows))])

    running = [record for record in records if record.row != UNBOUND and not record.nominated]
    waiting = [record for record in records if record.row == UNBOUND and not record.node_name]
    leaves = list[Leaving]()
    for record in running:
        if one_in(choose, 3):
            cluster.mark_leaving(record.key)
            cluster.count_eviction(record.key, float(choose(3)))
            assert record.leaving is not None
            leaves.append(record.leaving)
    opens = [random_offer(choose)] * choose(3) + [random_offer(choose) for _ in range(choose(2))]

    def held(holder: PodKey | Successor) -> Held:
        if opens and choose(2):
            return Held(holder, UNBOUND, offer=choose(len(opens)))
        return Held(holder, row())

    holds = [held(record.key) for record in waiting if one_in(choose, 3)]
    holds += [held(successor_of(cluster, record)) for record in running if one_in(choose, 4)]
    barred = set(cluster.barred_rows)
    closes = [cluster.nodes.name(one) for one in rows.tolist() if one not in barred and one_in(choose, 4)]
    kept = [record for record in running if one_in(choose, 4)]
    amends = [Amend(record.key, random_patch(choose, record.pod)) for record in kept]
    reason = one_of(choose, tuple(Reason))
    until = one_of(choose, (None, 10.0))
    return Plan(
        reason,
        tuple(holds),
        tuple(leaves),
        amends=tuple(amends),
        opens=tuple(opens),
        closes=tuple(closes),
        until=until,
        subject=f"s{choose(3)}",
    )


def do_something(cluster: Cluster, choose: Choose) -> None:
    """Adopt a plan, or go on with one that was adopted."""
    plans = list(cluster.plans())
    what = choose(10)
    if what < 3 or not plans:
        cluster.adopt(random_plan(cluster, choose))
        return
    plan_id, plan = plans[choose(len(plans))]
    if what == 3 and can_settle(cluster, plan):
        cluster.settle(plan_id)
    elif what == 4:
        cluster.drop(plan_id, float(choose(5)), is_setback=bool(choose(2)))
    elif what == 5:
        cluster.renew(plan_id, replace(plan, until=20.0, leaves=(), is_closing=bool(choose(2))))
    elif what == 6 and plan.leaves:
        cluster.keep_running(plan.leaves[choose(len(plan.leaves))].key)  # the eviction failed
    elif what == 7:
        with cluster.lifted(plan_id):
            check(cluster)
    elif what >= 8:
        decisions = steps_of(plan)
        if decisions:
            cluster.observe(Failed(decisions[choose(len(decisions))]))


def can_settle(cluster: Cluster, plan: Plan) -> bool:
    """Whether nothing is left to wait for but the plan's own nodes."""
    others = replace(plan, opened=(), holds=tuple(held for held in plan.holds if held.node not in plan.opened))
    return not cluster.awaits_nodes(others) and not any(isinstance(held.holder, Successor) for held in plan.holds)


def steps_of(plan: Plan) -> list[Launch | Terminate | Resize]:
    """What the world may refuse of a plan, besides evictions."""
    return [
        *(Launch(name, offer) for name, offer in zip(plan.opened, plan.opens, strict=True)),
        *(Terminate(name, "") for name in plan.closes),
        *(Resize(amend.key, amend.patch.resources) for amend in plan.amends),
    ]


def tentative_by_walk(cluster: Cluster) -> dict[PodKey, tuple[int, int]]:
    """The pods that hold rows and do not run, or leave for such a pod, by looking at all plans."""
    found = set[PodKey]()
    for _, plan in cluster.plans():
        if plan.reason is not Reason.PERMIT:
            found |= {held.key for held in plan.holds if is_held(cluster, held.key)}
            found |= {leaving.key for leaving in plan.leaves if not cluster.is_out_of_the_way(leaving)}
    return {key: (cluster.pods.records[key].shape.id, cluster.pods.records[key].row) for key in found}


def is_held(cluster: Cluster, key: PodKey) -> bool:
    record = cluster.pods.records.get(key)
    return record is not None and record.nominated and record.row != UNBOUND


def check(cluster: Cluster) -> None:
    """Every column adds up to what its pods are, and plans say of pods what these say of themselves."""
    pods = cluster.pods
    for record in pods.records.values():
        assert pods.by_slot[record.slot] is record
        assert int(pods.row.values[record.slot]) == record.row
        assert int(pods.shape.values[record.slot]) == record.shape.id
        assert record.row == UNBOUND or record.slot in pods.on_row[record.row]
        assert record.leaving is None or not record.nominated
    on_rows = {slot: row for row, slots in pods.on_row.items() for slot in slots}
    assert on_rows == {record.slot: record.row for record in pods.records.values() if record.row != UNBOUND}
    for row in cluster.nodes.live_rows().tolist():
        for resource in ("cpu", "memory"):
            requested = sum(found.shape.request(resource) for found in pods.on(row))
            assert int(cluster.nodes.requested(resource)[row]) == requested, resource
    barred = set(cluster.barred_rows)
    tentative = cluster.view.tentative_pods()
    found = {key: (shape.id, row) for shape, row_of in tentative.items() for key, row in row_of.items()}
    assert found == tentative_by_walk(cluster)
    for plan_id, plan in cluster.plans():
        for held in plan.holds:
            assert cluster.plan_of(held.key) == plan_id
            if isinstance(held.holder, Successor) and held.holder.owner:
                expected = cluster.successor_hold(cluster.pods.records[held.key])
                assert expected is not None and expected[0] <= plan_id, "the first plan that holds a row for such a pod"
        for name, offer in zip(plan.opened, plan.opens, strict=True):
            if cluster.plan_for(Launch(name, offer)) is not None:
                assert cluster.nodes.row_of[name] in barred
        for name in plan.closes:
            assert cluster.plan_for(Terminate(name, "")) == plan_id
    for row in barred:
        assert cluster.nodes.alive.values[row]
        is_launched = any(cluster.nodes.name(row) in plan.opened for _, plan in cluster.plans())
        assert not is_launched or all(record.nominated for record in pods.on(row)), "no pod runs on what is not there"
    assert sorted(cluster.nodes.row_of.values()) == cluster.nodes.live_rows().tolist()
    for _, spent in cluster.budgets.fingerprint().items():
        assert spent, "what is spent of nothing is not remembered"


def with_budgets(choose: Choose) -> Cluster:
    cluster = random_cluster(choose, nodes=4, pods=10, templates=3)
    for index, app in enumerate(("web", "other")):
        spec = PodDisruptionBudgetSpec(min_available=index, selector=make_selector({"app": app}))
        cluster.observe(ObjectSeen(PodDisruptionBudget(metadata=ObjectMeta(name=app, namespace="default"), spec=spec)))
    return cluster


@given(choose=choices(), depths=st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_plans_that_are_undone_leave_identical_columns(choose: Choose, depths: list[int]) -> None:
    cluster = with_budgets(choose)
    for _ in range(choose(3)):
        do_something(cluster, choose)

    def try_out(depths: list[int]) -> None:
        before = everything(cluster)
        with cluster.what_if():
            for _ in range(depths[0]):
                do_something(cluster, choose)
                check(cluster)
            if depths[1:]:
                try_out(depths[1:])
        assert everything(cluster) == before
        check(cluster)

    try_out(depths)


@given(choose=choices(), steps=st.integers(1, 8))
def test_plans_that_are_all_dropped_leave_the_rows_as_they_were(choose: Choose, steps: int) -> None:
    cluster = with_budgets(choose)

    def placed() -> dict[str, tuple[int, int]]:
        return {key: (record.row, record.shape.id) for key, record in cluster.pods.records.items()}

    before, nodes = placed(), cluster.rows().names
    for _ in range(steps):
        cluster.adopt(random_plan(cluster, choose))
        check(cluster)
    for plan_id, _ in reversed(list(cluster.plans())):
        cluster.drop(plan_id)
        check(cluster)

    assert placed() == before
    assert cluster.rows().names == nodes
    assert not cluster.barred_rows
    assert not any(record.nominated for record in cluster.pods.records.values())


def test_a_pod_that_a_controller_makes_takes_over_the_row_of_its_predecessor() -> None:
    """Only a pod of the same owner and shape does."""
    from mooring.testing.builders import make_cluster, make_node, make_owner, make_pod

    def member(name: str, owner: str, cpu: int, node: str = "") -> PodRecord:
        pod = make_pod(name, cpu=cpu, node=node, owner=make_owner(owner))
        cluster.observe_many([], [pod])
        return cluster.pods.records[pod.key]

    cluster = make_cluster(nodes=[make_node("a", cpu=8), make_node("b", cpu=8)])
    row = cluster.nodes.row_of["b"]
    old = member("old", "web", 2, "a")
    cluster.mark_leaving(old.key)
    assert old.leaving is not None
    plan_id = cluster.adopt(Plan(Reason.MOVE, (Held(successor_of(cluster, old), row),), (old.leaving,)))
    assert int(cluster.nodes.requested("cpu")[row]) == 2000

    assert cluster.successor_hold(member("larger", "web", 3)) is None
    assert cluster.successor_hold(member("stranger", "other", 2)) is None
    new = member("new", "web", 2)
    expected = cluster.successor_hold(new)
    assert expected is not None and expected[0] == plan_id
    cluster.take_over(*expected, new)

    assert (new.row, new.nominated, cluster.plan_of(new.key)) == (row, True, plan_id)
    assert int(cluster.nodes.requested("cpu")[row]) == 2000
