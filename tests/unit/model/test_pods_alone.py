"""Pods that have to do with nobody are translated on their own, and with others as soon as they have."""

from typing import Any, NoReturn

import pytest

from mooring.model.events import Event, GangLost, GangSeen, PodLost, PodSeen, WorkloadLost, WorkloadSeen
from mooring.model.loading import catalog as catalog_module
from mooring.model.loading.catalog import Catalog
from mooring.model.objects.kinds import decode, find_kind
from mooring.model.places import Place

Document = dict[str, Any]
QUEUE = "kueue.x-k8s.io/queue-name"
PLACE = Place("<test>")
CONTAINERS = {"containers": [{"name": "main"}]}
BOUND = {**CONTAINERS, "nodeName": "a"}


def document(api_version: str, kind: str, name: str, spec: Document, **metadata: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def owned_by(api_version: str, kind: str, name: str) -> list[Document]:
    return [{"apiVersion": api_version, "kind": kind, "name": name, "controller": True}]


def pod(name: str, spec: Document | None = None, **metadata: Any) -> Document:
    return document("v1", "Pod", name, spec or CONTAINERS, **metadata)


def of_set(name: str, spec: Document | None = None) -> Document:
    return pod(name, spec, ownerReferences=owned_by("apps/v1", "ReplicaSet", "web-1"))


def replica_set(priority_class: str = "", **metadata: Any) -> Document:
    template = {"spec": {**CONTAINERS, "priorityClassName": priority_class}}
    owners = owned_by("apps/v1", "Deployment", "web")
    return document("apps/v1", "ReplicaSet", "web-1", {"template": template}, ownerReferences=owners, **metadata)


def deployment(**metadata: Any) -> Document:
    return document("apps/v1", "Deployment", "web", {"template": {"spec": CONTAINERS}}, **metadata)


def put(catalog: Catalog, *documents: Document) -> list[Event]:
    for each in documents:
        kind = find_kind(each["apiVersion"], each["kind"])
        assert kind is not None
        catalog.put(decode(each, kind.type, PLACE, kind.name), PLACE)
    return catalog.changes()


def remove(catalog: Catalog, each: Document) -> list[Event]:
    kind = find_kind(each["apiVersion"], each["kind"])
    assert kind is not None
    catalog.remove(kind.type, "default", each["metadata"]["name"])
    return catalog.changes()


def seen(events: list[Event]) -> list[str]:
    return [event.pod.metadata.name for event in events if isinstance(event, PodSeen)]


@pytest.fixture
def catalog() -> Catalog:
    """A cluster with a Deployment, its ReplicaSet and somebody else."""
    found = Catalog(expands=False)
    put(found, deployment(), replica_set(), pod("other"))
    return found


@pytest.mark.parametrize("make", [pod, of_set], ids=["of nobody", "of a ReplicaSet"])
def test_they_are_not_read_with_others(make: Any, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def collect(*args: object, **kwargs: object) -> NoReturn:
        raise AssertionError("nothing else has to be read")

    monkeypatch.setattr(catalog_module, "Collection", collect)

    assert seen(put(catalog, make("p"))) == ["p"]
    assert seen(put(catalog, make("p", BOUND))) == ["p"]
    assert put(catalog, make("p", BOUND)) == []
    assert remove(catalog, make("p")) == [PodLost("default/p")]


def test_they_are_told_in_order_between_those_that_are_read_together(catalog: Catalog) -> None:
    crew = {"mooring.dev/gang-name": "crew"}
    put(catalog, pod("a", annotations=crew), pod("b"), pod("c", annotations=crew), pod("d"))

    events = put(catalog, pod("d", BOUND), pod("c", BOUND, annotations=crew), pod("b", BOUND))

    assert seen(events) == ["b", "c", "d"]
    assert catalog.translated == 4, "with the other one of the gang"


def test_they_are_told_in_the_order_in_which_they_came(catalog: Catalog) -> None:
    put(catalog, pod("a"), pod("b"))

    assert seen(put(catalog, pod("b", BOUND), pod("a", BOUND))) == ["a", "b"]


def test_a_deployment_of_kai_has_its_pods_in_its_queue(catalog: Catalog) -> None:
    put(catalog, deployment(labels={"kai.scheduler/queue": "research"}))

    (event,) = put(catalog, of_set("p"))

    assert isinstance(event, PodSeen)
    assert event.pod.metadata.labels == {"kai.scheduler/queue": "research"}


def test_one_that_joins_a_gang_and_leaves_it_is_read_with_it(catalog: Catalog) -> None:
    crew = {"mooring.dev/gang-name": "crew"}
    put(catalog, pod("a", annotations=crew), pod("b"))

    joined = put(catalog, pod("b", annotations=crew))
    left = put(catalog, pod("b"))

    assert [event.gang.minimum for event in (*joined, *left) if isinstance(event, GangSeen)] == [2, 1]


@pytest.mark.parametrize("says", [{"annotations": {"mooring.dev/gang": "true"}}, {"labels": {QUEUE: "team"}}])
def test_an_owner_that_has_a_word_for_its_pods_is_read_with_them(says: Document, catalog: Catalog) -> None:
    put(catalog, deployment(**says))

    came = put(catalog, of_set("p"))
    put(catalog, deployment())
    went = put(catalog, of_set("p", BOUND))

    assert any(isinstance(event, GangSeen | WorkloadSeen) for event in came)
    assert seen(went) == ["p"]
    assert len(went) == 1


def test_one_of_a_job_in_the_default_queue_is_read_with_it(catalog: Catalog) -> None:
    job = document("batch/v1", "Job", "train", {"template": {"spec": {**CONTAINERS, "restartPolicy": "Never"}}})
    queue = document("kueue.x-k8s.io/v1beta2", "LocalQueue", "default", {"clusterQueue": "all"})
    put(catalog, queue, job)

    events = put(catalog, pod("p", ownerReferences=owned_by("batch/v1", "Job", "train")))

    assert [type(event) for event in events] == [PodSeen, WorkloadSeen]


def test_a_gang_that_one_was_of_goes_though_another_of_its_owner_cannot_be_read(catalog: Catalog) -> None:
    put(catalog, replica_set(annotations={"mooring.dev/gang": "true"}), of_set("p"))
    put(catalog, of_set("q", {**CONTAINERS, "priorityClassName": "gone"}))

    events = put(catalog, replica_set(), of_set("p", BOUND))

    assert [type(event) for event in events] == [PodSeen, GangLost]
    assert catalog.problems


def test_what_queued_for_one_goes_when_its_deployment_leaves_the_queue_as_it_changes(catalog: Catalog) -> None:
    put(catalog, deployment(labels={QUEUE: "team"}), of_set("p"))

    events = put(catalog, deployment(), of_set("p", BOUND))

    assert seen(events) == ["p"]
    assert [type(event) for event in events if not isinstance(event, PodSeen)] == [WorkloadLost]


def test_what_queued_for_one_goes_though_another_of_its_deployment_cannot_be_read(catalog: Catalog) -> None:
    put(catalog, deployment(labels={QUEUE: "team"}), of_set("p"))
    put(catalog, of_set("q", {**CONTAINERS, "priorityClassName": "gone"}))

    events = put(catalog, deployment(), of_set("p", BOUND))

    assert [type(event) for event in events] == [PodSeen, WorkloadLost]
    assert catalog.problems


def test_one_whose_class_nobody_knows_does_not_keep_others_from_being_told(catalog: Catalog) -> None:
    events = put(catalog, pod("a", {**CONTAINERS, "priorityClassName": "gone"}), pod("b"))

    assert seen(events) == ["b"]
    assert len(catalog.problems) == 1


def test_the_doubt_about_a_template_is_one_about_its_pods(catalog: Catalog) -> None:
    put(catalog, replica_set("gone"))

    assert seen(put(catalog, of_set("p"), pod("b"))) == ["b"]
    assert len(catalog.problems) == 2


def test_one_that_the_api_server_has_given_its_priority_is_told_as_it_is(catalog: Catalog) -> None:
    given = {**CONTAINERS, "priority": 7, "preemptionPolicy": "Never", "priorityClassName": "gone"}

    (event,) = put(catalog, pod("p", given, resourceVersion="1"))

    assert isinstance(event, PodSeen)
    assert (event.pod.spec.priority, event.pod.spec.preemption_policy) == (7, "Never")
