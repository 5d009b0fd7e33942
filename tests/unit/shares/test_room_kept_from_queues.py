"""Room that is held for a more urgent pod is not taken by a pod of any family of queues."""

from typing import Any

import pytest

from mooring.assembly import assemble
from mooring.model.decisions import Bind, Evict
from mooring.model.events import PodLost, PodSeen
from mooring.model.loading.manifests import build_manifests

Json = dict[str, Any]
UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def node() -> Json:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": allocatable}}


def pod(name: str, cpu: str, priority: int = 0, **metadata: Any) -> Json:
    resources = {"requests": {"cpu": cpu}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}], "priority": priority}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "e", **metadata, "name": name}, "spec": spec}


FAMILIES: dict[str, tuple[Json, Json]] = {
    "volcano": (
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": "q"},
            "spec": {"weight": 1},
        },
        {"annotations": {"scheduling.volcano.sh/queue-name": "q"}},
    ),
    "kai": (
        {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": "q"},
            "spec": {"resources": {"cpu": UNLIMITED, "memory": UNLIMITED, "gpu": UNLIMITED}},
        },
        {"labels": {"kai.scheduler/queue": "q"}},
    ),
    "elastic quota": (
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "quota", "namespace": "e"},
            "spec": {"min": {"cpu": "4"}, "max": {"cpu": "4"}},
        },
        {},
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_room_that_was_made_for_an_urgent_pod_is_kept_from_pods_of_queues(family: str) -> None:
    queue, metadata = FAMILIES[family]
    scheduler = assemble().new_scheduler()
    victim = pod("victim", "4", namespace="other")
    victim["spec"]["nodeName"] = "n"
    scheduler.load(build_manifests([node(), queue, victim, pod("urgent", "4", 100, namespace="other")]), 0.0)

    assert [found.pod for found in scheduler.cycle(1.0) if isinstance(found, Evict)] == ["other/victim"]
    (late,) = build_manifests([node(), queue, pod("late", "1", **metadata)]).pods
    scheduler.handle(PodSeen(late))
    assert [found for found in scheduler.cycle(2.0) if isinstance(found, Bind)] == []
    scheduler.handle(PodLost("other/victim"))
    assert [found.pod for found in scheduler.cycle(3.0) if isinstance(found, Bind)] == ["other/urgent"]
