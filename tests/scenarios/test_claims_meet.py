"""Claims and everything else at once: preemption of those who share one, gangs, nodes that go, plugins that raise."""

from collections.abc import Sequence
from typing import ClassVar

import pytest

from mooring.engine.cycle import Scheduler
from mooring.engine.plugin import Reserve
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.events import Event, GangSeen, NodeLost, NodeSeen, ObjectLost, PodLost, PodSeen, Related
from mooring.model.loading.manifests import build_manifests
from mooring.state.views import ClusterView, PodView
from mooring.testing.builders import make_node, make_pod, make_scheduler
from mooring.testing.claim_builders import (
    make_claim,
    make_claiming_pod,
    make_class,
    make_request,
    make_slice,
    make_template,
)
from mooring.testing.claim_worlds import wrong_with_devices

ONE = make_template("one", make_request())
SHARED = make_claim("shared", make_request())


def bound(decisions: Sequence[Decision]) -> set[str]:
    return {found.pod.removeprefix("default/") for found in decisions if isinstance(found, Bind)}


def evict(scheduler: Scheduler, now: float) -> set[str]:
    """Who is evicted, once they are gone."""
    victims = [found.pod for found in scheduler.cycle(now) if isinstance(found, Evict)]
    scheduler.handle(*map(PodLost, victims))
    return {pod.removeprefix("default/") for pod in victims}


def sharing_one_gpu(*priorities: int) -> Scheduler:
    """Pods that share the claim to the only GPU of a node with four CPUs, and run."""
    users = [make_claiming_pod(f"u{each}", claims=["shared"], cpu=1, priority=each) for each in priorities]
    related: list[Related] = [make_class(), ONE, SHARED, make_slice("a", 1)]
    scheduler = make_scheduler(nodes=[make_node("a", cpu=4)], pods=users, related=related)
    assert len(bound(scheduler.cycle(1.0))) == len(priorities)
    return scheduler


def test_a_claim_stays_with_the_others_when_one_of_its_pods_is_preempted() -> None:
    scheduler = sharing_one_gpu(0, 5)
    scheduler.handle(PodSeen(make_pod("big", cpu=3, priority=9)), PodSeen(make_claiming_pod("late", templates=["one"])))

    assert evict(scheduler, 2.0) == {"u0"}
    assert bound(scheduler.cycle(3.0)) == {"big"}
    assert scheduler.cluster.claims.state("default/shared").users == {"default/u5"}
    assert list(wrong_with_devices(scheduler.cluster)) == []


@pytest.mark.parametrize(("priorities", "victims"), [((0, 5), {"u0", "u5"}), ((0, 50), set())])
def test_the_gpu_of_a_shared_claim_costs_all_of_its_pods_or_none(
    priorities: tuple[int, ...], victims: set[str]
) -> None:
    scheduler = sharing_one_gpu(*priorities)
    scheduler.handle(PodSeen(make_claiming_pod("urgent", templates=["one"], priority=10)))

    assert evict(scheduler, 2.0) == victims
    assert bound(scheduler.cycle(3.0)) == ({"urgent"} if victims else set())
    assert list(wrong_with_devices(scheduler.cluster)) == []


def gang(priority: int = 0) -> list[Event]:
    document = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"minMember": 3},
    }
    labels = {"pod-group.scheduling.sigs.k8s.io": "gang"}
    members = [
        make_claiming_pod(f"m{index}", templates=["one"], labels=labels, priority=priority) for index in range(3)
    ]
    return [*map(GangSeen, build_manifests([document], source="gang").gangs), *map(PodSeen, members)]


def three_gpus(*pods: Pod, plugins: Sequence[type[Reserve]] = ()) -> Scheduler:
    related: list[Related] = [make_class(), ONE, SHARED, make_slice("a", 2), make_slice("b", 1)]
    return make_scheduler(nodes=[make_node("a"), make_node("b")], pods=pods, related=related, plugins=plugins)


def test_a_gang_waits_without_holding_devices_until_a_claim_is_given_up() -> None:
    scheduler = three_gpus(make_claiming_pod("holds", claims=["shared"]))
    scheduler.cycle(1.0)
    scheduler.handle(*gang())

    assert bound(scheduler.cycle(2.0)) == set()
    assert set(scheduler.cluster.devices.held) == {"default/shared"}
    scheduler.handle(PodLost("default/holds"), ObjectLost("ResourceClaim", "default/shared"))

    assert bound(scheduler.cycle(3.0)) == {"m0", "m1", "m2"}
    assert list(wrong_with_devices(scheduler.cluster)) == []


def test_a_gang_takes_the_device_of_a_claim_that_matters_less() -> None:
    scheduler = three_gpus(make_claiming_pod("holds", claims=["shared"]))
    scheduler.cycle(1.0)
    scheduler.handle(*gang(priority=9))

    assert evict(scheduler, 2.0) == {"holds"}
    assert bound(scheduler.cycle(3.0)) == {"m0", "m1", "m2"}
    assert list(wrong_with_devices(scheduler.cluster)) == []


def test_who_shares_a_claim_goes_where_its_devices_are_also_after_the_nodes_came_back() -> None:
    scheduler = three_gpus(make_claiming_pod("first", claims=["shared"]))
    placed = {found.pod: found.node for found in scheduler.cycle(1.0) if isinstance(found, Bind)}

    scheduler.handle(NodeLost("a"), NodeLost("b"))
    scheduler.cycle(2.0)
    scheduler.handle(NodeSeen(make_node("a")), NodeSeen(make_node("b")))
    scheduler.handle(PodSeen(make_claiming_pod("second", claims=["shared"])))

    assert [found.node for found in scheduler.cycle(3.0) if isinstance(found, Bind)] == list(placed.values())
    assert list(wrong_with_devices(scheduler.cluster)) == []


class Stumbles(Reserve):
    """Raises over a pod that has its devices already."""

    over: ClassVar[str] = ""

    def reserve(self, pod: PodView, cluster: ClusterView, row: int) -> tuple[Event, ...]:
        if pod.key == self.over:
            raise RuntimeError("stumbled")
        return ()


@pytest.mark.faults
@pytest.mark.parametrize("pods", [[PodSeen(make_claiming_pod("m2", templates=["one"]))], gang()], ids=["alone", "gang"])
def test_a_plugin_that_raises_over_a_pod_leaves_no_device_with_it(
    pods: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stumbles, "over", "default/m2")
    scheduler = three_gpus(plugins=[Stumbles])
    scheduler.handle(*pods)

    assert bound(scheduler.cycle(1.0)) == set()
    assert ["stumbled" in fault.message for fault in scheduler.take_faults()] == [True]
    assert scheduler.cluster.devices.held == {}

    monkeypatch.setattr(Stumbles, "over", "")
    assert bound(scheduler.cycle(100.0)) == {event.pod.metadata.name for event in pods if isinstance(event, PodSeen)}
