"""Moves that make room in KAI's queues, on any cluster: nobody loses its place, and no node is overfull."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from mooring.assembly import assemble
from mooring.drivers.offline.driver import Offline
from mooring.model.decisions import Evict
from mooring.model.loading.manifests import build_manifests
from mooring.observe.progress import Progress
from mooring.state.pods import UNBOUND

GPU = "nvidia.com/gpu"
ANY = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
Json = dict[str, Any]


def node(name: str, gpus: int) -> Json:
    amounts = {"cpu": "64", "memory": "1Ti", "pods": "100", GPU: str(gpus)}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": amounts}}


def pod(name: str, gpus: float, on: str, *, owner: str, group: str, at: int) -> Json:
    part = {"gpu-fraction": str(gpus)} if gpus < 1 else {}
    metadata: Json = {
        "name": name,
        "labels": {"kai.scheduler/queue": "team", "priorityClassName": "train"},
        "annotations": {"pod-group-name": group, **part},
        "creationTimestamp": f"2026-01-01T00:00:{at:02}Z",
    }
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    container = {"name": "main", "image": "i", "resources": {"limits": {} if part else {GPU: str(gpus)}}}
    spec = {"containers": [container], "nodeName": on}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def gang(name: str, minimum: int) -> Json:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": minimum, "queue": "team", "priorityClassName": "train"},
    }


@st.composite
def clusters(draw: st.DrawFn) -> list[Json]:
    """Nodes that are partly full of jobs, and jobs that wait; all of one queue that may have everything."""
    free = {f"node{at}": draw(st.sampled_from([4, 8])) for at in range(draw(st.integers(2, 4)))}
    queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "team"}}
    documents = [node(name, gpus) for name, gpus in free.items()]
    documents.append({**queue, "spec": {"resources": {"gpu": ANY, "cpu": ANY, "memory": ANY}}})
    for at in range(draw(st.integers(3, 7))):
        name, runs = f"job{at}", draw(st.integers(0, 2)) > 0
        gpus, count = draw(st.sampled_from([0.5, 1, 2] if runs else [0.5, 2, 4, 8])), draw(st.integers(1, 3))
        places = [draw(st.sampled_from(sorted(free))) if runs else "" for _ in range(count)]
        if runs and any(free[home] < max(1, gpus) * times for home, times in Counter(places).items()):
            places = [""] * count
        for home in places if places[0] else ():
            free[home] -= int(max(1, gpus))
        owner = name if draw(st.integers(0, 3)) else ""
        documents.append(gang(name, draw(st.integers(1, count))))
        documents += [
            pod(f"{name}-{index}", gpus, home, owner=owner, group=name, at=at) for index, home in enumerate(places)
        ]
    return documents


@examples(80)
@given(clusters())
def test_nobody_loses_its_place_and_no_node_is_overfull(documents: list[Json]) -> None:
    manifests = build_manifests(documents, source="cluster")
    scheduler = assemble(None).new_scheduler()
    scheduler.load(manifests, 0.0)
    ran = {pod.key for pod in manifests.pods if pod.spec.node_name}
    with_owner = {pod.key for pod in manifests.pods if pod.metadata.owner_references}

    decisions = Offline(scheduler, 0.0, manifests).decide(Progress())

    cluster = scheduler.cluster
    bound = {key for key, record in cluster.pods.records.items() if record.row != UNBOUND and not record.nominated}
    evicted = {found.pod for found in decisions if isinstance(found, Evict)}
    assert evicted <= with_owner
    assert ran <= bound, "each pod that moved has its new place"
    assert (cluster.rows().free(GPU) >= 0).all()
    assert not cluster.has_plans
    for root in cluster.gangs.records.values():
        assert not root.bound() or root.is_whole()
    assert max(Counter(found.pod for found in decisions if isinstance(found, Evict)).values(), default=0) <= 3
