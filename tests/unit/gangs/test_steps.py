"""What plugins do once nodes are chosen, for gangs: for all members, or given back for all."""

from typing import ClassVar

import pytest
from gang_builders import NO_PREEMPTION, RACK, bound, make_gang, make_members, rack_nodes, start, waiting

from mooring.actions.gangs.placing import GangPlacer
from mooring.actions.place.action import Place
from mooring.assembly import assemble
from mooring.config.scheduler import parse_config
from mooring.engine.cycle import Scheduler
from mooring.engine.plugin import Permit, PreBind, Reserve
from mooring.engine.verdict import Rejection
from mooring.model.events import Event, GangSeen, NodeSeen, PodSeen
from mooring.model.topology.requests import TopologyRequest
from mooring.state.views import ClusterView, PodView
from mooring.testing.builders import make_config, make_node


class Ledger(Reserve, Permit, PreBind):
    """Counts what is reserved and prepared; refuses to reserve for, or to permit, the pods that it is told to."""

    reserved: ClassVar[list[str]] = []
    prepared: ClassVar[list[str]] = []
    reserves_not_for: ClassVar[str] = ""
    permits_not: ClassVar[str] = ""

    def reserve(self, pod: PodView, cluster: ClusterView, row: int) -> list[Event] | Rejection:
        if pod.key == self.reserves_not_for:
            return Rejection(("nothing left",))
        self.reserved.append(pod.key)
        return []

    def unreserve(self, pod: PodView, cluster: ClusterView, row: int) -> list[Event]:
        if pod.key in self.reserved:
            self.reserved.remove(pod.key)
        return []

    def permit(self, pod: PodView, cluster: ClusterView, row: int) -> Rejection | None:
        return Rejection(("not today",)) if pod.key == self.permits_not else None

    def pre_bind(self, pod: PodView, cluster: ClusterView, row: int) -> Rejection | None:
        self.prepared.append(pod.key)
        return None


@pytest.fixture(autouse=True)
def empty_ledger() -> None:
    Ledger.reserved, Ledger.prepared = [], []
    Ledger.reserves_not_for = Ledger.permits_not = ""


WISHES = [None, TopologyRequest(required=RACK), TopologyRequest(required=RACK, slice_size=2, slice_level=RACK)]
with_and_without_wish = pytest.mark.parametrize("topology_request", WISHES, ids=["anywhere", "in a rack", "in slices"])


@with_and_without_wish
def test_plugins_have_their_say_for_every_member(topology_request: TopologyRequest | None) -> None:
    members = make_members(3, gpu=1)
    scheduler = start(
        make_gang(minimum=3, topology_request=topology_request),
        nodes=rack_nodes({"a1": 2}),
        pods=members,
        plugins=[Ledger],
    )

    assert len(bound(scheduler.cycle(1.0))) == 3
    assert sorted(Ledger.reserved) == sorted(Ledger.prepared) == [pod.key for pod in members]


@with_and_without_wish
def test_a_reservation_that_fails_is_given_back_for_all(topology_request: TopologyRequest | None) -> None:
    Ledger.reserves_not_for = "default/train-2"
    members = make_members(3, gpu=1)
    scheduler = start(
        make_gang(minimum=3, topology_request=topology_request),
        nodes=rack_nodes({"a1": 2}),
        pods=members,
        plugins=[Ledger],
    )

    decisions = scheduler.cycle(1.0)

    assert not bound(decisions)
    assert len(waiting(decisions)) == 3
    assert not Ledger.reserved
    assert not Ledger.prepared
    assert not scheduler.cluster.pods.on_row


@with_and_without_wish
def test_nobody_is_prepared_before_all_are_permitted(topology_request: TopologyRequest | None) -> None:
    Ledger.permits_not = "default/train-2"
    members = make_members(3, gpu=1)
    scheduler = start(
        make_gang(minimum=3, topology_request=topology_request),
        nodes=rack_nodes({"a1": 2}),
        pods=members,
        plugins=[Ledger],
    )

    decisions = scheduler.cycle(1.0)

    assert set(waiting(decisions).values()) == {"gang default/train: Ledger refuses one of them: not today"}
    assert not Ledger.reserved
    assert not Ledger.prepared


def test_asking_whether_a_gang_would_fit_reserves_nothing() -> None:
    members = make_members(3, gpu=1)
    scheduler = start(make_gang(minimum=3), nodes=[make_node("a", gpu=2)], pods=members, plugins=[Ledger])
    scheduler.cycle(1.0)
    (gang,) = scheduler.queue.gangs
    placer = placer_of(scheduler)

    scheduler.cluster.observe(NodeSeen(make_node("b", gpu=2)))

    assert placer.place_message(scheduler.cluster, gang) == ""
    assert not Ledger.reserved
    assert not scheduler.cluster.pods.on_row


def placer_of(scheduler: Scheduler) -> GangPlacer:
    return next(action for action in scheduler.actions if isinstance(action, Place)).gangs


def test_a_gang_is_placed_whole_however_short_the_time_of_a_batch_is() -> None:
    ticks = iter(range(10_000))
    profile = {**NO_PREEMPTION, "pluginConfig": [{"name": "Batching", "args": {"mode": "Time", "milliseconds": 1}}]}
    assembly = assemble(parse_config(make_config(profile), "profile"))
    scheduler = assembly.new_scheduler(clock=lambda: float(next(ticks)))
    scheduler.handle(NodeSeen(make_node("n", gpu=200, pods=200)), GangSeen(make_gang(minimum=150)))
    scheduler.handle(*map(PodSeen, make_members(150, gpu=1)))

    assert len(bound(scheduler.cycle(1.0))) == 150
