"""Pods are resized where they run: they grow where there is room or room is made, and shrink at once."""

import pytest
from msgspec.structs import replace
from rightsizing_world import autoscaler, confirmed, decided, requested_cpu, resized, web

from mooring.drivers.offline.driver import Offline
from mooring.engine.cycle import Scheduler
from mooring.model.api.meta import Condition
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict, Resize
from mooring.model.events import Failed, ObjectSeen, PodLost
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import build_manifests
from mooring.observe.progress import Progress
from mooring.report.placements import DEFERRED, DONE
from mooring.testing.builders import make_node, make_pod, make_scheduler


def test_a_pod_grows_where_its_node_has_room() -> None:
    found = make_scheduler(nodes=[make_node("a", cpu=4)], pods=[web()], related=[autoscaler()])

    decisions = decided(found, 0)

    assert decisions == [resized("web-0")]
    assert requested_cpu(found) == 2000
    assert decided(found, 60, confirmed(found, resized("web-0"))) == []
    assert not found.cluster.has_plans


def test_a_pod_does_not_grow_where_its_node_has_no_room() -> None:
    found = make_scheduler(nodes=[make_node("a", cpu=2)], pods=[web(), make_pod("other", cpu=1, node="a")])

    assert decided(found, 0, ObjectSeen(autoscaler())) == []
    assert requested_cpu(found) == 2000


def test_what_shrinks_frees_its_room_at_once() -> None:
    pods = [web(cpu="3"), make_pod("waits", cpu=2)]
    found = make_scheduler(nodes=[make_node("a", cpu=4)], pods=pods, related=[autoscaler(cpu="1")])

    assert decided(found, 0) == [resized("web-0", cpu="1000m")]
    assert requested_cpu(found) == 1000
    assert decided(found, 20) == [Bind("default/waits", "a")]


def test_room_is_made_by_the_cheapest_pods_of_lower_priority_on_the_same_node() -> None:
    pods = [
        web(priority=10),
        make_pod("dear", cpu=1, node="a", priority=9),
        make_pod("cheap", cpu=1, node="a", priority=1),
        make_pod("elsewhere", cpu=1, node="b", priority=0),
    ]
    nodes = [make_node("a", cpu=3), make_node("b", cpu=3)]
    found = make_scheduler(nodes=nodes, pods=pods, related=[autoscaler()])

    message = "Preempted by default/web-0, which grows in place on node a"
    assert decided(found, 0) == [Evict("default/cheap", "a", "default/web-0", message), resized("web-0")]
    assert decided(found, 1, PodLost("default/cheap"), confirmed(found, resized("web-0"))) == []
    assert not found.cluster.has_plans


def test_pods_of_the_same_priority_stay() -> None:
    pods = [web(priority=1), make_pod("equal", cpu=1, node="a", priority=1)]
    found = make_scheduler(nodes=[make_node("a", cpu=2)], pods=pods, related=[autoscaler()])

    assert decided(found, 0) == []


def test_more_than_the_node_has_is_not_tried() -> None:
    nodes = [make_node("a", cpu=2), make_node("large", cpu=64)]
    found = make_scheduler(nodes=nodes, pods=[web(priority=5)], related=[autoscaler(cpu="8")])

    assert decided(found, 0) == []


def test_half_of_the_pods_of_a_controller_change_at_a_time() -> None:
    pods = [web(f"web-{number}") for number in range(4)]
    found = make_scheduler(nodes=[make_node("a", cpu=16)], pods=pods, related=[autoscaler()])

    first = decided(found, 0)
    unconfirmed = decided(found, 60)
    then = decided(found, 120, *(confirmed(found, one) for one in first if isinstance(one, Resize)))

    assert first == [resized("web-0"), resized("web-1")]
    assert unconfirmed == []
    assert then == [resized("web-2"), resized("web-3")]


def test_a_pod_without_room_does_not_keep_others_from_theirs() -> None:
    pods = [web("web-0", node="full"), web("web-1"), make_pod("other", cpu=1, node="full")]
    nodes = [make_node("a", cpu=4), make_node("full", cpu=2)]
    found = make_scheduler(nodes=nodes, pods=pods, related=[autoscaler()])

    assert decided(found, 0) == [resized("web-1")]


def gang(*pods: Pod) -> list[Pod]:
    return [
        replace(pod, metadata=replace(pod.metadata, labels={"scheduling.x-k8s.io/pod-group": "web"})) for pod in pods
    ]


def gang_scheduler(cpu_of_b: int) -> Scheduler:
    """Three members on two nodes; how much the second node has decides."""
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "web"},
        "spec": {"minMember": 3},
    }
    pods = gang(web("web-0"), web("web-1"), web("web-2", node="b"))
    nodes = [make_node("a", cpu=8), make_node("b", cpu=cpu_of_b)]
    found = make_scheduler()
    found.load(build_manifests([group, *nodes, *pods, autoscaler()]))
    return found


def test_the_members_of_a_gang_are_resized_alike() -> None:
    assert decided(gang_scheduler(8), 0) == [resized(f"web-{number}") for number in range(3)]


def test_a_gang_is_not_resized_in_part() -> None:
    assert decided(gang_scheduler(1), 0) == []


def test_a_resize_that_the_world_refuses_is_undone_and_tried_again_later() -> None:
    found = make_scheduler(nodes=[make_node("a", cpu=4)], pods=[web()], related=[autoscaler()])
    (resize,) = decided(found, 0)

    assert decided(found, 20, Failed(resize, "the kubelet says no")) == []
    assert requested_cpu(found) == 1000
    assert found.next_wake(20) == 80
    assert decided(found, 80) == [resize]


@pytest.mark.parametrize("mode", ["Off", "Initial"])
def test_modes_that_change_no_running_pods_leave_them_alone(mode: str) -> None:
    found = make_scheduler(nodes=[make_node("a", cpu=4)], pods=[web()], related=[autoscaler(mode=mode)])

    assert decided(found, 0) == []


def test_a_pod_that_its_kubelet_has_deferred_gets_room() -> None:
    deferred = web(cpu="3", priority=10)
    deferred.status.conditions = [Condition(type="PodResizePending", status="True", reason="Deferred")]
    victim = make_pod("batch", cpu=2, node="a", priority=0)
    found = make_scheduler(nodes=[make_node("a", cpu=4)], pods=[deferred, victim])

    message = "Preempted by default/web-0, which grows in place on node a"
    assert decided(found, 0) == [Evict("default/batch", "a", "default/web-0", message)]
    assert decided(found, 60) == []
    assert decided(found, 120, PodLost("default/batch")) == []
    assert not found.cluster.has_plans


def test_offline_a_deferred_resize_is_done_when_there_is_room() -> None:
    objects = [make_node("a", cpu=4), web(cpu="1", priority=10), make_pod("batch", cpu=2, node="a", priority=0)]
    before = build_manifests(objects)
    after = build_manifests([objects[0], web(cpu="3", priority=10), objects[2]])
    found = make_scheduler()
    found.load(before)
    offline = Offline(found, 0.0, before)
    offline.decide(Progress())
    offline.pass_time(60, Progress())
    offline.change(before, after)

    decisions = [one for one in offline.decide(Progress()) if isinstance(one, Evict)]

    assert [one.pod for one in decisions] == ["default/batch"]
    assert [(one.pod.key, one.outcome) for one in offline.resized] == [
        ("default/web-0", DEFERRED),
        ("default/web-0", DONE),
    ]
    record = found.cluster.pods.records[PodKey("default/web-0")]
    offline.run_cycle(1)
    assert not record.pod.status.conditions


def test_an_action_that_is_made_anew_in_every_cycle_decides_the_same() -> None:
    def story(*, is_rebuilt: bool) -> list[list[Decision]]:
        pods = [web(f"web-{number}") for number in range(4)]
        found = make_scheduler(nodes=[make_node("a", cpu=16)], pods=pods, related=[autoscaler()])
        made, told = list[list[Decision]](), list[Resize]()
        for now in range(0, 100, 4):
            if is_rebuilt:
                found.rebuild()
            made.append(decided(found, float(now), *(confirmed(found, one) for one in told if now % 3 == 0)))
            told = [one for one in made[-1] if isinstance(one, Resize)] or ([] if now % 3 == 0 else told)
        return made

    assert story(is_rebuilt=True) == story(is_rebuilt=False)
    assert sum(len(decisions) for decisions in story(is_rebuilt=True)) == 4
