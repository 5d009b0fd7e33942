"""Several actions meet the same pods: nobody is evicted who does not run, nobody twice, whoever it is for."""

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from mooring.assembly import assemble
from mooring.engine.cycle import Scheduler
from mooring.engine.plugin import Depends, Filter, Mask
from mooring.model.api.pods import PodStatus
from mooring.model.decisions import Bind, Decision, Evict, Wait
from mooring.model.events import GangSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import GANG_NAME, PLAIN_KIND
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import build_manifests
from mooring.state.pods import UNBOUND
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.testing.builders import make_node, make_pod, make_scheduler
from mooring.testing.queueing_builders import make_group, make_queue, make_quota
from mooring.testing.tenant_builders import TenantWorld, make_job


def volcano_queue(name: str) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    return {**kind, "metadata": {"name": name}, "spec": {"weight": 1}}


def gpu_node(name: str, gpus: int) -> dict[str, Any]:
    status = {"allocatable": {"pods": "110", "cpu": "64", "nvidia.com/gpu": str(gpus)}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def gpu_pod(name: str, *, queue: str = "", on: str = "", gpus: int = 1) -> dict[str, Any]:
    annotations = {"scheduling.volcano.sh/queue-name": queue} if queue else {}
    resources = {"requests": {"nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}}
    spec = {"nodeName": on, "containers": [{"name": "main", "image": "i", "resources": resources}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def evicted(decisions: Iterable[Decision]) -> Counter[str]:
    return Counter(found.pod for found in decisions if isinstance(found, Evict))


def started(documents: list[dict[str, Any]]) -> Scheduler:
    scheduler = assemble().new_scheduler()
    scheduler.load(build_manifests(documents), 0.0)
    return scheduler


def test_who_is_nominated_by_reclaim_gives_way_without_having_run() -> None:
    hogs = [gpu_pod(f"hog-{i}", queue="rich", on="n") for i in range(4)]
    scheduler = started(
        [gpu_node("n", 4), volcano_queue("rich"), volcano_queue("poor"), *hogs, gpu_pod("starved", queue="poor")]
    )
    first = scheduler.cycle(1.0)
    (victim,) = evicted(first)
    assert victim.startswith("default/hog")

    urgent = make_pod("urgent", gpu=1, priority=1000)
    scheduler.handle(PodSeen(urgent))
    second = scheduler.cycle(2.0)

    assert evicted(second) == {}, "the victim is on its way out, and who was nominated never ran"
    scheduler.handle(PodLost(victim))
    third = scheduler.cycle(3.0)
    assert [found for found in third if isinstance(found, Bind)] == [Bind("default/urgent", "n")]


def test_two_preemptors_evict_a_pod_once() -> None:
    queue = make_queue("queue", make_group(cpu=make_quota(4)), within_queue="LowerPriority")
    world = TenantWorld([queue], nodes=[make_node("node", cpu=4)])
    world.finishes_evictions = False
    low = make_job("low", pods=1, cpu=4)
    world.submit(low)
    world.cycle()
    world.cycle(1.0)
    assert world.running() == ["low-0"]

    world.submit(make_job("high", pods=1, cpu=4, priority=10, second=1))
    world.scheduler.handle(PodSeen(make_pod("urgent", cpu=4, priority=1000)))
    decisions = world.cycle(1.0)
    decisions += world.cycle(1.0)

    assert evicted(decisions) == {"default/low-0": 1}


class FailsOnce(Filter):
    """Raises when it is asked for the first time, as a bug would."""

    depends_on = Depends.NODE_USAGE
    asked = 0

    def filter(self, pod: Shape, nodes: NodeRows, prepared: Any = None) -> Mask:
        type(self).asked += 1
        if type(self).asked == 1:
            raise ZeroDivisionError("of course")
        return np.ones(len(nodes), np.bool_)


@pytest.mark.faults
def test_a_plugin_that_raises_once_costs_its_pod_one_turn() -> None:
    FailsOnce.asked = 0
    scheduler = make_scheduler(nodes=[make_node("n", cpu=4)], pods=[make_pod("a", cpu=1)], plugins=[FailsOnce])

    first = scheduler.cycle(1.0)
    second = scheduler.cycle(30.0)

    (wait,) = first
    assert isinstance(wait, Wait) and wait.pod == "default/a" and wait.plugins == ("FailsOnce",)
    assert "ZeroDivisionError: of course" in wait.message
    assert second == [Bind("default/a", "n")]


@pytest.mark.faults
def test_a_plugin_that_raises_in_a_gangs_turn_leaves_nothing_behind() -> None:
    FailsOnce.asked = 0
    members = [make_pod(f"m-{i}", cpu=1, annotations={GANG_NAME: "train"}) for i in range(3)]
    scheduler = make_scheduler(nodes=[make_node("n", cpu=4)], pods=members, plugins=[FailsOnce])
    scheduler.handle(GangSeen(Gang(gang_key(PLAIN_KIND, "default", "train"), "default/train", 3)))

    first = scheduler.cycle(1.0)

    assert {type(found) for found in first} == {Wait}
    assert not scheduler.cluster.is_trying
    assert [record.row for record in scheduler.cluster.pods.records.values()] == [UNBOUND] * 3
    second = scheduler.cycle(30.0)
    assert Counter(type(found) for found in second) == {Bind: 3}


def test_a_what_if_that_was_undone_does_not_move_the_start_of_the_sample() -> None:
    def decide(*, asks: bool) -> list[Decision]:
        nodes = [make_node(f"n{i:03}", cpu=4) for i in range(300)]
        scheduler = make_scheduler(nodes=nodes, profile={"percentageOfNodesToScore": 34})
        if asks:  # a gang whose small members fit, and with them its large ones do not: all of it is undone
            members = [make_pod(f"s-{i}", cpu=1, annotations={GANG_NAME: "huge"}) for i in range(1153)]
            members += [make_pod(f"l-{i}", cpu=4, annotations={GANG_NAME: "huge"}) for i in range(20)]
            gang = Gang(gang_key(PLAIN_KIND, "default", "huge"), "default/huge", len(members))
            scheduler.handle(GangSeen(gang), *(PodSeen(pod) for pod in members))
            assert {type(found) for found in scheduler.cycle(1.0)} == {Wait}
        scheduler.handle(*(PodSeen(make_pod(f"p-{i}", cpu=1)) for i in range(5)))
        return [found for found in scheduler.cycle(2.0) if isinstance(found, Bind)]

    assert decide(asks=True) == decide(asks=False)


def calls_in_a_cycle(running: int) -> int:
    """How many functions are called to place one pod of a Volcano queue, beside so many that run."""
    documents = [volcano_queue("mine"), volcano_queue("other"), *(gpu_node(f"n{i}", 100) for i in range(10))]
    documents += [gpu_pod(f"runs-{i}", queue=("mine", "other")[i % 2], on=f"n{i % 10}") for i in range(running)]
    scheduler = started(documents)
    scheduler.cycle(1.0)
    calls = Counter[str]()

    def count(frame: object, event: str, detail: object) -> None:
        calls[event] += 1

    for second in (2.0, 3.0):  # the first of them is the first of its shape
        name = f"new-{second:g}"
        scheduler.handle(PodSeen(make_pod(name, gpu=1, annotations={"scheduling.volcano.sh/queue-name": "mine"})))
        calls.clear()
        sys.setprofile(count)
        try:
            decisions = scheduler.cycle(second)
        finally:
            sys.setprofile(None)
        assert [found.pod for found in decisions if isinstance(found, Bind)] == [f"default/{name}"]
    return calls["call"]


def test_a_pod_of_a_volcano_queue_costs_no_more_where_more_pods_run() -> None:
    assert calls_in_a_cycle(running=800) <= 1.1 * calls_in_a_cycle(running=40)


def test_a_pod_of_a_shared_queue_goes_where_a_later_turn_put_the_pod_that_it_wants() -> None:
    """When the second was bound, the first had been refused and not yet set aside: no change would bring it back."""
    near = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    wants = gpu_pod("a-wants", queue="a", gpus=1)
    wants["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    wanted = gpu_pod("b-wanted", queue="b", gpus=1)
    wanted["metadata"]["labels"] = {"app": "x"}
    node = gpu_node("n", 4)
    node["metadata"]["labels"] = {"kubernetes.io/hostname": "n"}
    scheduler = started([node, volcano_queue("a"), volcano_queue("b"), wants, wanted])

    binds = [found for found in (*scheduler.cycle(1.0), *scheduler.cycle(2.0)) if isinstance(found, Bind)]
    assert [found.pod for found in binds] == ["default/b-wanted", "default/a-wants"]


def test_a_gang_that_lost_a_member_is_not_completed_beyond_the_limit_of_its_queue() -> None:
    """Another pod of the queue has taken what the lost member left: the gang waits for it, or is released in time."""
    queue = volcano_queue("q")
    queue["spec"]["capability"] = {"cpu": "4"}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}}
    group["spec"] = {"minMember": 2, "queue": "q"}
    gang = [gpu_pod(f"g-{i}", on="n", gpus=1) for i in range(2)]
    for pod in gang:
        pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    other = gpu_pod("other", queue="q", gpus=1)
    for pod in (*gang, other):
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    scheduler = started([gpu_node("n", 8), queue, group, *gang, other])
    assert not [found for found in scheduler.cycle(1.0) if isinstance(found, Bind)]

    lost = scheduler.cluster.pods.records[PodKey("default/g-1")].pod
    scheduler.handle(PodLost("default/g-1"))
    assert [found.pod for found in scheduler.cycle(2.0) if isinstance(found, Bind)] == ["default/other"]
    scheduler.handle(PodSeen(replace(lost, spec=replace(lost.spec, node_name=""), status=PodStatus(phase="Pending"))))

    decisions = scheduler.cycle(3.0)
    assert not [found for found in decisions if isinstance(found, Bind)]
    messages = [found.message for found in decisions if isinstance(found, Wait) and found.pod == "default/g-1"]
    assert messages and "q" in messages[-1] and "cpu" in messages[-1]
