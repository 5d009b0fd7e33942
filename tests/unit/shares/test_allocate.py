"""Volcano's queues through the whole cycle: turns by shares, limits, reclaim."""

from collections import Counter
from typing import Any

from mooring.assembly import assemble
from mooring.config.settings import parse_settings
from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind, Evict, Wait
from mooring.model.events import ObjectLost, PodLost
from mooring.model.loading.manifests import build_manifests

POLICY = {"apiVersion": "config.mooring.dev/v1alpha1", "kind": "TenantPolicy"}


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }


def node(name: str, **amounts: str) -> dict[str, Any]:
    given = {key.replace("gpu", "nvidia.com/gpu"): value for key, value in amounts.items()}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"pods": "110", **given}}}


def pod(name: str, queue_name: str, on: str = "", **amounts: str) -> dict[str, Any]:
    given = {key.replace("gpu", "nvidia.com/gpu"): value for key, value in amounts.items()}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"scheduling.volcano.sh/queue-name": queue_name}},
        "spec": {"nodeName": on, "containers": [{"name": "main", "image": "i", "resources": {"limits": given}}]},
    }


def job(name: str, queue_name: str, members: int, minimum: int, **amounts: str) -> dict[str, Any]:
    template = pod(name, queue_name, **amounts)["spec"]
    task = {"name": "worker", "replicas": members, "template": {"spec": template}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "default-scheduler",
            "minAvailable": minimum,
            "queue": queue_name,
            "tasks": [task],
        },
    }


def start(*documents: dict[str, Any], **shares: Any) -> Scheduler:
    settings = parse_settings([{**POLICY, "shares": shares}], "policy")
    scheduler = assemble(settings).new_scheduler()
    scheduler.load(build_manifests(documents), 0.0)
    return scheduler


def placed(decisions: list[Any]) -> Counter[str]:
    return Counter(found.pod.partition("/")[2].partition("-")[0] for found in decisions if isinstance(found, Bind))


def test_dominant_shares_come_out_equal_as_far_as_whole_tasks_allow() -> None:
    scheduler = start(
        node("n", cpu="8", memory="32Gi"),
        queue("default"),
        job("a", "default", 8, 1, cpu="2", memory="4Gi"),
        job("b", "default", 8, 1, cpu="1", memory="8Gi"),
    )

    decisions = scheduler.cycle(1.0)

    # By turns, the smaller dominant share first, until the next task of neither fits: 6 of 8 CPUs, 16 of 32 GB.
    assert placed(decisions) == {"a": 3, "b": 2}
    order = [found.pod.partition("/")[2][0] for found in decisions if isinstance(found, Bind)]
    assert "".join(order) == "ababa"


def test_queues_share_by_their_weights() -> None:
    scheduler = start(
        *(node(f"n{i}", gpu="8") for i in range(3)),
        queue("small", weight=1),
        queue("large", weight=2),
        *(pod(f"small-{i}", "small", gpu="1") for i in range(24)),
        *(pod(f"large-{i}", "large", gpu="1") for i in range(24)),
    )

    assert placed(scheduler.cycle(1.0)) == {"small": 8, "large": 16}


def test_a_queue_never_holds_more_than_its_capability() -> None:
    capability = {"nvidia.com/gpu": "3"}
    scheduler = start(
        node("n", gpu="8"), queue("a", capability=capability), *(pod(f"a-{i}", "a", gpu="1") for i in range(8))
    )

    decisions = scheduler.cycle(1.0)

    assert placed(decisions) == {"a": 3}
    assert {found.plugins for found in decisions if isinstance(found, Wait)} == {("VolcanoQueue",)}


def test_a_queue_that_does_not_exist_is_said_to() -> None:
    scheduler = start(node("n", gpu="8"), queue("a"), pod("b-0", "b", gpu="1"))

    assert scheduler.cycle(1.0) == [Wait("default/b-0", "queue b does not exist", ("VolcanoQueue",))]


def test_who_names_no_queue_is_in_the_default_queue_though_nobody_wrote_one() -> None:
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}}
    member = pod("g-0", "", cpu="1")
    member["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    implied = pod("h-0", "", cpu="1")
    implied["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": "1"}
    scheduler = start(node("n", cpu="8"), queue("ml"), {**group, "spec": {"minMember": 1}}, member, implied)

    assert placed(scheduler.cycle(1.0)) == {"g": 1, "h": 1}


def test_a_starving_queue_reclaims_what_another_holds_beyond_its_share() -> None:
    scheduler = start(
        node("n", gpu="4"),
        queue("a"),
        queue("b"),
        *(pod(f"a-{i}", "a", on="n", gpu="1") for i in range(4)),
        job("b", "b", 2, 2, gpu="1"),
    )

    evicted = [found for found in scheduler.cycle(1.0) if isinstance(found, Evict)]

    assert len(evicted) == 2
    assert {found.pod.partition("/")[2][0] for found in evicted} == {"a"}
    assert {found.reason for found in evicted} == {"Reclaimed by queue b for gang default/b"}

    scheduler.handle(PodLost(evicted[0].pod))
    assert not placed(scheduler.cycle(2.0)), "a gang starts when all of its room is there"
    scheduler.handle(PodLost(evicted[1].pod))
    assert placed(scheduler.cycle(3.0)) == {"b": 2}


def test_a_queue_that_is_not_reclaimable_keeps_what_it_has() -> None:
    scheduler = start(
        node("n", gpu="4"),
        queue("a", reclaimable=False),
        queue("b"),
        *(pod(f"a-{i}", "a", on="n", gpu="1") for i in range(4)),
        job("b", "b", 2, 2, gpu="1"),
    )

    assert not [found for found in scheduler.cycle(1.0) if isinstance(found, Evict)]


def test_a_gpu_may_weigh_ten_cpus() -> None:
    documents = [
        node("n", cpu="16", gpu="16"),
        queue("default"),
        job("cpus", "default", 16, 1, cpu="1"),
        job("gpus", "default", 16, 1, gpu="1"),
    ]

    heavy = start(*documents, resourceWeights={"nvidia.com/gpu": 10}).cycle(1.0)
    order = [found.pod.partition("/")[2][0] for found in heavy if isinstance(found, Bind)]

    assert order[:12].count("c") == 11, "ten CPUs weigh as much as one GPU"


def test_nothing_is_collected_any_more_when_there_are_no_queues_left() -> None:
    scheduler = start(node("n", gpu="8"), queue("a"), pod("a-0", "a", gpu="1"))
    scheduler.cycle(1.0)
    scheduler.handle(ObjectLost("Queue", "a"))
    scheduler.cycle(2.0)

    assert scheduler.cluster.pods.watchers == []
