"""Queues whose parents are missing or in a circle: they come one by one from a cluster, and stop no other queue."""

from typing import Any

import pytest

from mooring.assembly import assemble
from mooring.engine.cycle import Scheduler
from mooring.model.api.kai_queue import KaiQueue, KaiQueueSpec, KaiResource, KaiResources
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.volcano_queue import Queue
from mooring.model.decisions import Bind, Wait
from mooring.model.events import ObjectSeen, PodSeen
from mooring.model.loading.manifests import build_manifests
from mooring.report.queues.report import make_queues_result

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}},
}
VOLCANO = "scheduling.volcano.sh/v1beta1"


def pod(name: str, annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    metadata = {"name": name, "namespace": "default", "annotations": annotations or {}, "labels": labels or {}}
    spec = {"containers": [{"name": "main", "image": "main:1", "resources": resources}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def loaded(*objects: dict[str, Any]) -> Scheduler:
    scheduler = assemble().new_scheduler()
    scheduler.load(build_manifests([NODE, *objects]), 0.0)
    return scheduler


def volcano_queue(name: str, parent: str) -> Queue:
    queue = Queue()
    queue.metadata.name, queue.spec.parent, queue.status.state = name, parent, "Open"
    return queue


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        pytest.param({"bad": "nope"}, "queue bad is not used: bad is below nope, which does not exist", id="missing"),
        pytest.param(
            {"bad": "worse", "worse": "bad"}, "queue bad is not used: bad is below worse is below bad", id="circle"
        ),
    ],
)
def test_a_volcano_queue_that_no_path_leads_to_stops_no_other_queue(bad: dict[str, str], why: str) -> None:
    good = {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": "good"}, "spec": {"weight": 1}}
    name_of = "scheduling.volcano.sh/queue-name"
    scheduler = loaded(good, pod("in-good", {name_of: "good"}), pod("in-bad", {name_of: "bad"}))
    for name, parent in bad.items():
        scheduler.handle(ObjectSeen(volcano_queue(name, parent)))

    decisions = scheduler.cycle(1.0)

    assert [found.pod for found in decisions if isinstance(found, Bind)] == ["default/in-good"]
    assert {found.pod: found.message for found in decisions if isinstance(found, Wait)} == {"default/in-bad": why}
    report = make_queues_result(scheduler, decisions, 0.0).volcano_queues
    assert [[found.message for found in queue.waiting_reasons] for queue in report if queue.name == "bad"] == [[why]]

    for name in bad:
        scheduler.handle(ObjectSeen(volcano_queue(name, "root")))
    assert [found.pod for found in scheduler.cycle(2.0) if isinstance(found, Bind)] == ["default/in-bad"]


def kai_queue(name: str, parent: str) -> KaiQueue:
    free = KaiResource(quota=-1, limit=-1, over_quota_weight=1)
    spec = KaiQueueSpec(parent_queue=parent, resources=KaiResources(gpu=free, cpu=free, memory=free))
    return KaiQueue(metadata=ObjectMeta(name=name), spec=spec)


def test_a_kai_queue_that_no_path_leads_to_stops_no_other_queue() -> None:
    scheduler = loaded()
    for name, parent in {"good": "", "bad": "nope", "one": "two", "two": "one"}.items():
        scheduler.handle(ObjectSeen(kai_queue(name, parent)))
    manifests = build_manifests(
        [pod(f"in-{name}", labels={"kai.scheduler/queue": name}) for name in ("good", "bad", "one")]
    )
    for found in manifests.pods:
        scheduler.handle(PodSeen(found))

    decisions = scheduler.cycle(1.0)

    assert [found.pod for found in decisions if isinstance(found, Bind)] == ["default/in-good"]
    assert {found.pod: found.message for found in decisions if isinstance(found, Wait)} == {
        "default/in-bad": "queue bad is not used: bad is below nope, which does not exist",
        "default/in-one": "queue one is not used: one is below two is below one",
    }
