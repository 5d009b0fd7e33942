"""Pods are evicted to be made anew with what is recommended, never in vain; and what keeps pods as they are is said."""

from typing import Any

import msgspec
from msgspec.structs import replace
from rightsizing_world import autoscaler, confirmed, decided, requested_cpu, resized, web

from mooring.actions.resize.section import SizingSection
from mooring.drivers.offline.driver import Offline
from mooring.engine.cycle import Scheduler
from mooring.model.api.autoscaling import HorizontalPodAutoscaler
from mooring.model.api.meta import Condition, ObjectMeta, timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetSpec
from mooring.model.decisions import Bind, Evict, Resize
from mooring.model.events import ObjectSeen, PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import build_manifests
from mooring.model.objects.picture import Related
from mooring.model.pod_patch import ContainerResources
from mooring.model.quotas.objects import LimitRange
from mooring.model.rightsizing.admission import patch_for_new_pod
from mooring.observe.progress import Progress
from mooring.testing.builders import make_node, make_owner, make_pod, make_scheduler, make_selector

BUDGET = PodDisruptionBudget(
    metadata=ObjectMeta(name="web", namespace="default"),
    spec=PodDisruptionBudgetSpec(max_unavailable=0, selector=make_selector({"app": "web"})),
)


def evicted(name: str, why: str) -> Evict:
    return Evict(f"default/{name}", "a", "", f"Evicted by right-sizing: {why}", via="eviction")


def notes(found: Scheduler) -> list[str]:
    return [note for section in found.sections(SizingSection) for told in section.notes.values() for note in told]


def started(pod: Pod, at: float) -> Pod:
    return replace(pod, status=replace(pod.status, start_time=timestamp_text(at), phase="Running"))


def replaced(found: Scheduler, name: str, cpu: str, now: float) -> list[Any]:
    """What happens after an eviction: the pod goes, and its controller makes another one with these amounts."""
    anew = web(name, cpu=cpu, node="")
    binds = decided(found, now, PodLost(f"default/{name}"), PodSeen(anew))
    bind = next(one for one in binds if isinstance(one, Bind))
    found.handle(PodSeen(started(web(name, cpu=cpu, node=bind.node), now)))
    return binds


def test_in_mode_recreate_half_of_the_pods_are_evicted_at_a_time() -> None:
    pods = [web(f"web-{number}") for number in range(4)]
    related = [autoscaler(memory="1Gi", mode="Recreate")]
    found = make_scheduler(nodes=[make_node("a", cpu=16)], pods=pods, related=related)
    why = "update mode Recreate"

    assert decided(found, 0) == [evicted("web-0", why), evicted("web-1", why)]
    assert decided(found, 20, PodLost("default/web-0"), PodLost("default/web-1")) == []
    assert replaced(found, "web-0", "2", 40) == [Bind("default/web-0", "a")]
    assert replaced(found, "web-1", "2", 60) == [Bind("default/web-1", "a"), evicted("web-2", why)]
    assert decided(found, 80) == [evicted("web-3", why)]


def test_pods_that_come_back_with_the_old_amounts_are_not_evicted_in_a_loop() -> None:
    related = [autoscaler(memory="1Gi", mode="Recreate")]
    found = make_scheduler(nodes=[make_node("a", cpu=16)], pods=[web()], related=related)
    assert decided(found, 0) == [evicted("web-0", "update mode Recreate")]
    replaced(found, "web-0", "1", 20)

    assert [decided(found, float(now)) for now in (40, 600, 3000)] == [[], [], []]
    assert notes(found) == [
        "default/web-0: update mode Recreate; and it was made anew and has not got what is recommended: nothing gives "
        "new pods their amounts"
    ]
    assert decided(found, 3600) == [evicted("web-0", "update mode Recreate")]


def test_a_budget_and_a_pod_that_says_so_are_respected() -> None:
    related: list[Related] = [autoscaler(mode="Recreate"), BUDGET]
    pods = [web(labels={"app": "web"}), web("web-1", annotations={"karpenter.sh/do-not-disrupt": "true"})]
    found = make_scheduler(nodes=[make_node("a", cpu=16)], pods=pods, related=related)

    assert decided(found, 0) == []
    assert notes(found) == [
        "default/web-0: update mode Recreate; and it is not evicted, as a disruption budget has none to give",
        "default/web-1: update mode Recreate; and it is not evicted, as its annotation karpenter.sh/do-not-disrupt is "
        "true",
    ]


def test_nothing_is_evicted_that_would_then_wait() -> None:
    pods = [web(), make_pod("other", cpu=1, node="a")]
    found = make_scheduler(nodes=[make_node("a", cpu=2)], pods=pods, related=[autoscaler(mode="Recreate")])

    assert decided(found, 0) == []
    assert "it would wait: pod default/web-0 cannot be placed: 0/1 nodes are available" in notes(found)[0]


def test_what_no_node_could_hold_is_said_to_be_infeasible() -> None:
    policy = {"containerPolicies": [{"containerName": "main", "minAllowed": {"cpu": "8"}}]}
    related = [autoscaler(cpu="8", mode="Recreate", resourcePolicy=policy)]
    found = make_scheduler(nodes=[make_node("a", cpu=4)], pods=[web()], related=related)

    assert decided(found, 0) == []
    assert notes(found) == [
        "default/web-0: infeasible: minAllowed of container main is 8000m of cpu, and the pod would be larger than a"
    ]


def test_no_recommendation_exceeds_the_largest_node_that_the_pod_may_use() -> None:
    nodes = [make_node("a", cpu=4, labels={"pool": "small"}), make_node("b", cpu=64, labels={"pool": "large"})]
    pods = [web(node_selector={"pool": "small"})]
    found = make_scheduler(nodes=nodes, pods=pods, related=[autoscaler(cpu="32")])

    assert decided(found, 0) == [resized("web-0", cpu="4000m")]


def test_where_its_node_has_no_room_the_pod_is_made_anew_elsewhere() -> None:
    pods = [web(), make_pod("other", cpu=1, node="a")]
    nodes = [make_node("a", cpu=2), make_node("b", cpu=4)]
    found = make_scheduler(nodes=nodes, pods=pods, related=[autoscaler(mode="InPlaceOrRecreate")])

    assert decided(found, 0) == [evicted("web-0", "deferred in place: its node has no room for it now")]


def test_a_pod_that_its_kubelet_has_deferred_for_five_minutes_is_made_anew() -> None:
    pod = web(cpu="2")
    said = Condition(type="PodResizePending", status="True", reason="Deferred", last_transition_time=timestamp_text(0))
    pod.status.conditions = [said]
    related = [autoscaler(memory="1Gi", mode="InPlaceOrRecreate")]
    pods = [pod, make_pod("other", cpu=1, node="a")]
    found = make_scheduler(nodes=[make_node("a", cpu=2), make_node("b", cpu=4)], pods=pods, related=related)

    assert decided(found, 100) == []
    assert found.next_wake(100) == 300
    assert decided(found, 300) == [evicted("web-0", "its kubelet has deferred it for five minutes")]


def test_a_pod_that_fits_elsewhere_moves_for_one_of_equal_priority_that_grows() -> None:
    other = make_pod("other", cpu=1, node="a", owner=make_owner("other", kind="StatefulSet"))
    nodes = [make_node("a", cpu=2), make_node("b", cpu=2)]
    found = make_scheduler(nodes=nodes, pods=[web(), other], related=[autoscaler()])

    message = "Moved for default/web-0, which grows in place on node a"
    assert decided(found, 0) == [Evict("default/other", "a", "", message, "b", "eviction"), resized("web-0")]
    anew = replace(other, spec=replace(other.spec, node_name=""), metadata=replace(other.metadata, uid="again"))
    assert decided(found, 20, PodLost("default/other"), PodSeen(anew)) == [Bind("default/other", "b")]
    assert decided(found, 40, confirmed(found, resized("web-0"))) == []
    assert requested_cpu(found) == 2000


def test_a_deferred_pod_gets_room_by_a_move_once() -> None:
    deferred = web(cpu="2")
    deferred.status.conditions = [Condition(type="PodResizePending", status="True", reason="Deferred")]
    owner = make_owner("other", kind="StatefulSet")
    pods = [deferred, *(make_pod(f"other-{number}", cpu="500m", node="a", owner=owner) for number in range(2))]
    found = make_scheduler(nodes=[make_node("a", cpu="2500m"), make_node("b", cpu=2)], pods=pods)

    message = "Moved for default/web-0, which grows in place on node a"
    assert decided(found, 0) == [Evict("default/other-0", "a", "", message, "b", "eviction")]
    assert [decided(found, float(now)) for now in (20, 40)] == [[], []]


def horizontal(resource: str) -> HorizontalPodAutoscaler:
    metric = {"type": "Resource", "resource": {"name": resource}}
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}
    document = {
        "metadata": {"name": "more", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "metrics": [metric]},
    }
    return msgspec.convert(document, HorizontalPodAutoscaler)


def test_a_resource_by_which_another_autoscaler_scales_is_left_as_it_is() -> None:
    related: list[Related] = [autoscaler(), horizontal("cpu")]
    found = make_scheduler(nodes=[make_node("a", cpu=4)], pods=[web()], related=related)

    only_memory = Resize("default/web-0", (ContainerResources("main", (("memory", str(2 << 30)),)),))
    assert decided(found, 0) == [only_memory]
    assert notes(found) == ["requests are left as they are of cpu, by which HorizontalPodAutoscaler more scales"]


def test_a_limit_range_holds_what_a_pod_gets_and_counts_once_it_comes() -> None:
    item = {"type": "Container", "max": {"cpu": "1500m"}}
    document = {"metadata": {"name": "limits", "namespace": "default"}, "spec": {"limits": [item]}}
    limits = msgspec.convert(document, LimitRange)
    pod = web()
    assert pod.spec.containers[0].resources is not None
    pod.spec.containers[0].resources.limits = {"cpu": "1"}
    found = make_scheduler(nodes=[make_node("a", cpu=8)], pods=[pod], related=[limits])

    decisions = decided(found, 0, ObjectSeen(autoscaler(cpu="4", memory="1Gi")))

    (resize,) = [one for one in decisions if isinstance(one, Resize)]
    assert dict(resize.resources[0].requests) == {"cpu": "1500m"}
    assert dict(resize.resources[0].limits) == {"cpu": "1500m"}


def test_offline_a_pod_that_is_made_anew_has_what_is_recommended() -> None:
    objects = [make_node("a", cpu=4), web(), autoscaler(memory="1Gi", mode="Recreate")]
    found = make_scheduler()
    manifests = build_manifests(objects)
    found.load(manifests)
    offline = Offline(found, 0.0, manifests)

    decisions = offline.decide(Progress())

    assert [type(one) for one in decisions] == [Evict, Bind]
    (main,) = found.cluster.pods.records[PodKey("default/web-0")].pod.spec.containers
    assert main.resources is not None
    assert main.resources.requests == {"cpu": "2000m", "memory": "1Gi"}


def test_a_new_pod_keeps_the_resource_by_which_another_autoscaler_scales() -> None:
    vpa = autoscaler(mode="Initial")

    patches = [patch_for_new_pod(web(), vpa, (), given) for given in ((), [horizontal("cpu")])]

    requests = [dict(patch.resources[0].requests) for patch in patches]
    assert requests == [{"cpu": "2000m", "memory": str(2 << 30)}, {"memory": str(2 << 30)}]
