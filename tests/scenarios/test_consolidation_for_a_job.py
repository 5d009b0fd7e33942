"""Room for a job of KAI's queue by moving another: step by step, as pods take their time to leave and to come back."""

from mooring.assembly import assemble
from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Evict, Wait
from mooring.model.events import Failed, PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.model.loading.manifests import build_manifests

GPU = "nvidia.com/gpu"
ANY = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def node(name: str) -> dict[str, object]:
    amounts = {"cpu": "64", "memory": "1Ti", "pods": "100", GPU: "4"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}


def pod(name: str, gpus: int, on: str = "") -> dict[str, object]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
    labels = {"kai.scheduler/queue": "team", "priorityClassName": "train"}
    container = {"name": "main", "image": "i", "resources": {"limits": {GPU: str(gpus)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": f"{name}-1", "labels": labels, "ownerReferences": [owner]},
        "spec": {"containers": [container], "nodeName": on},
    }


QUEUE = {
    "apiVersion": "scheduling.run.ai/v2",
    "kind": "Queue",
    "metadata": {"name": "team"},
    "spec": {"resources": {"gpu": ANY, "cpu": ANY, "memory": ANY}},
}
MOVES = Evict(
    "default/y", "b", "default/new", "Moved to make room for pod default/new in queue team", "a", via="eviction"
)
WAITS = Wait("default/new", "room is made for it by moving others to other nodes, in queue team", ("KaiQueue",), "b")


def make_scheduler() -> Scheduler:
    """Two nodes with a pod each, and one that needs a whole node."""
    documents = [node("a"), node("b"), QUEUE, pod("x", 1, "a"), pod("y", 1, "b"), pod("new", 4)]
    scheduler = assemble(None).new_scheduler()
    scheduler.load(build_manifests(documents, source="cluster"), 0.0)
    return scheduler


def as_made_anew(name: str, gpus: int) -> Pod:
    made = pod(name, gpus)
    made["metadata"] = {**made["metadata"], "name": f"{name}-anew", "uid": f"{name}-2"}  # type: ignore[dict-item]
    return build_manifests([made], source="pod").pods[0]


def test_the_job_starts_once_the_other_has_left_and_the_other_gets_the_place_that_was_held() -> None:
    scheduler = make_scheduler()

    assert [found for found in scheduler.cycle(1.0) if isinstance(found, Evict | Bind)] == [MOVES]
    assert not [found for found in scheduler.cycle(2.0) if isinstance(found, Bind)], "it has not left yet"
    scheduler.handle(PodLost("default/y"))
    assert [found for found in scheduler.cycle(3.0) if isinstance(found, Bind)] == [Bind("default/new", "b")]
    scheduler.handle(PodSeen(as_made_anew("y", 1)))
    assert scheduler.cycle(4.0) == [Bind("default/y-anew", "a")]
    assert not scheduler.cluster.has_plans


def test_who_waits_is_told_where_room_is_made() -> None:
    assert WAITS in make_scheduler().cycle(1.0)


def test_nothing_is_held_any_more_if_the_other_could_not_be_evicted() -> None:
    scheduler = make_scheduler()
    scheduler.cycle(1.0)

    scheduler.handle(Failed(MOVES, "a disruption budget would be exceeded"))
    later = scheduler.cycle(2.0)

    assert not [found for found in later if isinstance(found, Bind | Evict)], "it is not tried again at once"
    assert scheduler.cluster.pods.records[PodKey("default/y")].leaving is None
    assert not scheduler.cluster.has_plans


def test_room_on_its_way_is_not_given_to_others() -> None:
    scheduler = make_scheduler()
    scheduler.cycle(1.0)

    scheduler.handle(PodSeen(build_manifests([pod("late", 3)], source="pod").pods[0]))
    decisions = scheduler.cycle(2.0)

    assert not [found for found in decisions if isinstance(found, Bind)], "two GPUs of a are free, and b is promised"
