"""A permit plugin may let pods wait in their places: until all allow them, or for as long as it said."""

from typing import ClassVar

import pytest

from mooring.engine.cycle import Scheduler
from mooring.errors import PluginError
from mooring.model.decisions import Bind, Decision, Wait
from mooring.model.events import GangSeen, NodeLost, PodLost, PodSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import PLAIN_KIND
from mooring.model.keys import PodKey
from mooring.plugin import (
    ClusterView,
    Permit,
    PodView,
    Rejection,
)
from mooring.plugin import Wait as NotYet
from mooring.testing.builders import make_node, make_pod, make_pods, make_scheduler

MESSAGE = "waits for the permission of Approval, 30 s at most: not approved"
GIVEN_BACK = "gave back its place, because Approval had not permitted it in time"


class Approval(Permit):
    """Pods wait until somebody has approved them."""

    approved: ClassVar[set[str]] = set()
    rejected: ClassVar[set[str]] = set()

    def permit(self, pod: PodView, cluster: ClusterView, row: int) -> Rejection | NotYet | None:
        if pod.key in self.rejected:
            return Rejection(("somebody said no",))
        return None if pod.key in self.approved else NotYet(30, "not approved")


@pytest.fixture(autouse=True)
def _nobody_is_approved() -> None:
    Approval.approved.clear()
    Approval.rejected.clear()


def approve(*names: str) -> None:
    Approval.approved.update(f"default/{name}" for name in names)


def one_waits(*others: str) -> tuple[Scheduler, list[Decision]]:
    """A node for one pod, which waits in it."""
    pods = [make_pod(name, cpu=4) for name in ("first", *others)]
    scheduler = make_scheduler(nodes=[make_node("a", cpu=4)], pods=pods, plugins=[Approval])
    return scheduler, scheduler.cycle(0.0)


def test_a_pod_that_waits_holds_its_room_and_is_bound_when_it_is_allowed() -> None:
    scheduler, decisions = one_waits("second")
    full = "0/1 nodes are available: 1 Insufficient cpu. preemption: "
    assert [type(decision).__name__ for decision in decisions] == ["Wait", "Wait"]
    assert Wait("default/first", MESSAGE, ("Approval",), "a") in decisions
    assert all(d.message.startswith(full) for d in decisions if isinstance(d, Wait) and d.pod == "default/second")

    assert scheduler.cycle(10.0) == []
    approve("first")

    assert scheduler.cycle(20.0) == [Bind("default/first", "a")]


def test_a_pod_that_is_not_allowed_in_time_gives_its_room_back() -> None:
    scheduler, _ = one_waits("second")
    approve("second")
    assert scheduler.next_wake(0.0) == 30.0

    assert scheduler.cycle(30.0) == [Wait("default/first", GIVEN_BACK, ("Approval",))]
    assert Bind("default/second", "a") in scheduler.cycle(31.0)


def test_a_later_refusal_gives_the_room_back_too() -> None:
    scheduler, _ = one_waits()
    Approval.rejected.add("default/first")

    scheduler.cycle(1.0)

    assert scheduler.cluster.view.bound_pods()[1].tolist() == []
    assert scheduler.cluster.plan_of(PodKey("default/first")) is None


def test_a_pod_that_is_deleted_while_it_waits_leaves_nothing_behind() -> None:
    scheduler, _ = one_waits("second")
    approve("second")

    scheduler.handle(PodLost("default/first"))

    assert scheduler.cycle(5.0) == [Bind("default/second", "a")]


def test_a_pod_whose_node_goes_while_it_waits_waits_for_another() -> None:
    scheduler, _ = one_waits()

    scheduler.handle(NodeLost("a"))
    scheduler.cycle(5.0)

    key = PodKey("default/first")
    assert (scheduler.cluster.plan_of(key), key in scheduler.queue) == (None, True)


def test_pods_of_one_shape_wait_side_by_side() -> None:
    scheduler = make_scheduler(nodes=[make_node("a", cpu=4)], pods=make_pods(3, cpu=1), plugins=[Approval])
    approve("pod-1")

    decisions = scheduler.cycle(0.0)
    approve("pod-0", "pod-2")

    assert [d for d in decisions if isinstance(d, Bind)] == [Bind("default/pod-1", "a")]
    assert sorted(map(str, scheduler.cycle(1.0))) == [str(Bind(f"default/pod-{i}", "a")) for i in (0, 2)]


def test_a_more_important_pod_takes_the_room_without_evicting_who_never_ran() -> None:
    scheduler, _ = one_waits()
    urgent = make_pod("urgent", cpu=4, priority=1000)
    approve("urgent")

    scheduler.handle(PodSeen(urgent))
    decisions = [*scheduler.cycle(1.0), *scheduler.cycle(2.0)]

    assert Bind("default/urgent", "a") in decisions
    assert [d for d in decisions if type(d).__name__ == "Evict"] == []


MEMBERS = ["train-0", "train-1"]


def gang_of_two() -> Scheduler:
    """A gang that takes all of a node."""
    scheduler = make_scheduler(nodes=[make_node("a", cpu=4)], plugins=[Approval])
    gang = Gang(gang_key(PLAIN_KIND, "default", "train"), "default/train", 2)
    members = [make_pod(name, cpu=2, annotations={"mooring.dev/gang-name": "train"}) for name in MEMBERS]
    scheduler.handle(GangSeen(gang), *map(PodSeen, members))
    return scheduler


def test_a_gang_waits_together_and_starts_together() -> None:
    scheduler = gang_of_two()
    approve(MEMBERS[0])

    first = scheduler.cycle(0.0)
    second = scheduler.cycle(1.0)
    approve(MEMBERS[1])

    assert first == [Wait(f"default/{name}", MESSAGE, ("Approval",), "a") for name in MEMBERS]
    assert second == []
    assert scheduler.cycle(2.0) == [Bind(f"default/{name}", "a") for name in MEMBERS]


def test_a_gang_that_is_not_allowed_in_time_gives_all_its_room_back() -> None:
    scheduler = gang_of_two()
    approve(MEMBERS[0])
    scheduler.cycle(0.0)

    decisions = scheduler.cycle(30.0)

    assert decisions == [Wait(f"default/{name}", GIVEN_BACK, ("Approval",)) for name in MEMBERS]
    assert scheduler.cluster.view.bound_pods()[1].tolist() == []


def test_a_gang_of_which_one_is_refused_does_not_wait() -> None:
    scheduler = gang_of_two()
    Approval.rejected.add(f"default/{MEMBERS[1]}")

    scheduler.cycle(0.0)

    assert scheduler.cluster.view.bound_pods()[1].tolist() == []


class Forever(Permit):
    def permit(self, pod: PodView, cluster: ClusterView, row: int) -> NotYet:
        return NotYet(0)


@pytest.mark.faults
def test_to_wait_for_no_time_is_a_mistake() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")], pods=[make_pod("pod")], plugins=[Forever])
    scheduler.cycle(0.0)
    (fault,) = scheduler.take_faults()

    assert isinstance(fault.error, PluginError)
    assert (fault.error.plugin, fault.error.point) == ("Forever", "permit")
    assert "expected to wait for some time, found Wait(seconds=0, reason='')" in str(fault.error)
