"""Groups of Volcano whose pods are made only once they are let in: who is, who is told why not, and what counts."""

from typing import Any

from mooring.assembly import assemble
from mooring.config.settings import parse_settings
from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind, Enqueue, KeepOut
from mooring.model.events import Failed, GangLost
from mooring.model.loading.catalog import Catalog
from mooring.model.objects.kinds import decode, find_kind
from mooring.model.places import Place

GROUP, BATCH = "scheduling.volcano.sh/v1beta1", "batch.volcano.sh/v1alpha1"
KEY = "PodGroup.scheduling.volcano.sh/default/"


def node(name: str, cpu: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}


def queue(name: str = "team", state: str = "Open", **capability: str) -> dict[str, Any]:
    spec = {"weight": 1, "capability": capability}
    return {"apiVersion": GROUP, "kind": "Queue", "metadata": {"name": name}, "spec": spec, "status": {"state": state}}


def group(name: str, cpu: str = "", phase: str = "Pending", created: int = 0, **more: Any) -> dict[str, Any]:
    """A group on a cluster, with what it needs at least."""
    metadata = {
        "name": name,
        "namespace": "default",
        "resourceVersion": "1",
        "creationTimestamp": f"2026-01-01T00:00:{created:02}Z",
    }
    spec = {"minMember": 2, "queue": "team", **({"minResources": {"cpu": cpu}} if cpu else {})}
    status = {"phase": phase} if phase else {}
    return {"apiVersion": GROUP, "kind": "PodGroup", "metadata": {**metadata, **more}, "spec": spec, "status": status}


def pod(name: str, of: str, scheduler: str = "default-scheduler") -> dict[str, Any]:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "annotations": {"scheduling.k8s.io/group-name": of},
        },
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


def job(name: str, scheduler: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    spec = {"schedulerName": scheduler, "tasks": [{"name": "worker", "replicas": 2, "template": template}]}
    return {
        "apiVersion": BATCH,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "resourceVersion": "1", "uid": name},
        "spec": spec,
    }


def owned_by(name: str) -> dict[str, Any]:
    owner = {"apiVersion": BATCH, "kind": "Job", "name": name, "uid": name, "controller": True}
    return {"ownerReferences": [owner]}


class World:
    """A cluster that is followed, as a driver would."""

    def __init__(self, *documents: dict[str, Any], actions: str = "enqueue, allocate", plugins: str = "") -> None:
        named = [{"name": name} for name in ("priority", "proportion", *plugins.split())]
        settings = parse_settings([{"actions": actions, "tiers": [{"plugins": named}]}], "volcano-scheduler.conf")
        self.catalog = Catalog(expands=False)
        self.scheduler: Scheduler = assemble(settings).new_scheduler()
        self.now = 0.0
        self.put(*documents)

    def put(self, *documents: dict[str, Any]) -> None:
        for document in documents:
            kind = find_kind(document["apiVersion"], document["kind"])
            assert kind is not None
            self.catalog.put(decode(document, kind.type, Place("test"), kind.name), Place("test"))
        self.scheduler.handle(*self.catalog.changes())

    def cycle(self) -> list[Any]:
        self.now += 1.0
        return self.scheduler.cycle(self.now)


def short(name: str, others: str, own: str) -> KeepOut:
    message = f"queue team can have 4 cpu; jobs that were let in need {others}, and this one {own}"
    return KeepOut(KEY + name, message)


def test_a_group_without_pods_is_let_in_while_its_queue_has_room_for_what_it_needs() -> None:
    world = World(node("n", "16"), queue(cpu="4"), group("a", "3", created=1), group("b", "3", created=2))

    assert world.cycle() == [Enqueue(KEY + "a"), short("b", "3", "3")]
    assert world.cycle() == []  # it was said

    world.scheduler.handle(GangLost(KEY + "a"))
    assert world.cycle() == [Enqueue(KEY + "b")]


def test_what_it_needs_counts_until_its_pods_are_there_and_with_them() -> None:
    world = World(node("n", "16"), queue(cpu="4"), group("a", "2", phase="Inqueue"))
    world.put(group("b", "3"))
    assert world.cycle() == [short("b", "2", "3")]

    world.put(pod("a-0", "a"))  # one of two: it waits for the other, and is in all the same
    assert world.cycle() == []
    world.put(pod("a-1", "a"))
    bound = world.cycle()

    assert [found.pod for found in bound if isinstance(found, Bind)] == ["default/a-0", "default/a-1"]
    assert world.cycle() == []


def test_a_queue_lets_in_beside_another_that_has_taken_everything() -> None:
    """It can only reclaim for pods that are there."""
    other = group("b", "3")
    other["spec"]["queue"] = "other"
    world = World(node("n", "4"), queue(), queue("other"), group("a", "4", phase="Running"), other)
    world.put(*(pod(f"a-{i}", "a") | {"spec": {**pod("", "")["spec"], "nodeName": "n"}} for i in range(4)))

    assert world.cycle() == [Enqueue(KEY + "b")]


def test_a_group_that_was_let_in_before_a_restart_is_in() -> None:
    world = World(
        node("n", "16"),
        queue(cpu="4"),
        group("late", "3", phase="Inqueue", created=9),
        group("early", "3", created=1),
        group("over", "3", phase="Completed", created=0),
    )

    assert world.cycle() == [short("early", "3", "3")]  # the oldest, but the other is in; who is over needs nothing


def test_without_minimum_resources_a_group_is_let_in_at_once_if_its_queue_is_open() -> None:
    world = World(node("n", "1"), queue(cpu="1"), group("a"), group("b", phase=""))
    assert world.cycle() == [Enqueue(KEY + "a"), Enqueue(KEY + "b")]

    world = World(node("n", "1"), queue(state="Closed"), group("a"))
    assert world.cycle() == [KeepOut(KEY + "a", "queue team is not open")]
    world.put(queue())
    assert world.cycle() == [Enqueue(KEY + "a")]


def test_a_group_of_a_queue_that_is_not_there_is_told_so() -> None:
    world = World(node("n", "1"), queue("other"), group("a", "1"))

    assert world.cycle() == [KeepOut(KEY + "a", "queue team does not exist")]


def test_where_volcano_has_no_queues_every_group_is_let_in() -> None:
    world = World(group("a", "99"))

    assert world.cycle() == [Enqueue(KEY + "a")]


def test_without_the_action_enqueue_every_group_is_let_in() -> None:
    world = World(node("n", "16"), queue(cpu="4"), group("a", "99"), actions="allocate, backfill")

    assert world.cycle() == [Enqueue(KEY + "a")]


def test_groups_without_pods_are_promised_no_more_than_overcommit_allows() -> None:
    other = pod("other", "")
    other["metadata"]["annotations"] = {}
    other["spec"] |= {"nodeName": "n"}
    other["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "5"}}
    world = World(
        node("n", "10"),
        queue(),
        other,
        group("a", "3", phase="Inqueue"),
        group("b", "5", created=2),
        group("c", "4", created=3),
        plugins="overcommit",
    )

    # 1.2 times 10 CPUs, without the 5 in use and the 3 that were promised.
    why = "4 cpu is left for jobs to be let in for, and this one needs 5"
    assert world.cycle() == [KeepOut(KEY + "b", why), Enqueue(KEY + "c")]


def test_another_group_of_the_same_name_is_told_again() -> None:
    world = World(group("a", created=1))
    assert world.cycle() == [Enqueue(KEY + "a")]
    world.put(group("a", created=2))

    assert world.cycle() == [Enqueue(KEY + "a")]


def test_who_its_job_or_its_pods_wait_for_lets_a_group_in() -> None:
    world = World(
        node("n", "16"),
        queue(cpu="4"),
        job("theirs", "volcano"),
        job("ours", "default-scheduler"),
        group("a", "3", created=1, **owned_by("theirs")),
        group("b", "3", created=2, **owned_by("ours")),
        group("c", "1", created=3),
        pod("c-0", "c", "volcano"),
    )

    assert world.cycle() == [Enqueue(KEY + "b")]  # what others' groups need counts once they are in
    world.put(group("a", "1", phase="Inqueue", created=1, **owned_by("theirs")), group("d", "1", created=4))
    assert world.cycle() == [short("d", "4", "1")]


def test_a_pod_of_a_group_does_not_make_its_job_forgotten() -> None:
    world = World(job("theirs", "volcano"), group("a", **owned_by("theirs")))
    assert world.cycle() == []
    world.put(pod("a-0", "a"))  # names the group, and was made by nobody

    assert [found for found in world.cycle() if isinstance(found, Enqueue)] == []


def test_a_group_whose_phase_could_not_be_written_is_told_again() -> None:
    world = World(node("n", "16"), queue(cpu="4"), group("a", "3", created=1), group("b", "3", created=2))
    said = world.cycle()
    assert said == [Enqueue(KEY + "a"), short("b", "3", "3")]

    world.scheduler.handle(*(Failed(decision, "the webhook is down") for decision in said))
    assert world.cycle() == said
    assert world.cycle() == []
