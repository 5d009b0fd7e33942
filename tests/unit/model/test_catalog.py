"""The catalog: one object added, changed or deleted, and what the engine is told because of it."""

from itertools import chain
from typing import Any

import pytest

from mooring.errors import ManifestError
from mooring.model.api.kueue import Workload
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Container, Pod, PodSpec
from mooring.model.api.workloads import Job
from mooring.model.events import (
    Event,
    GangLost,
    GangSeen,
    NodeSeen,
    ObjectSeen,
    PodLost,
    PodSeen,
    WorkloadLost,
    WorkloadSeen,
)
from mooring.model.loading.catalog import Catalog
from mooring.model.objects.kinds import decode, find_kind
from mooring.model.places import Place

Document = dict[str, Any]
QUEUE = "kueue.x-k8s.io/queue-name"


def put(catalog: Catalog, *documents: Document) -> list[Event]:
    """Put documents, each from a place of its own, and ask for the changes."""
    for number, document in enumerate(documents, start=1):
        kind = find_kind(document["apiVersion"], document["kind"])
        assert kind is not None
        place = Place("<test>", number)
        catalog.put(decode(document, kind.type, place, kind.name), place)
    return catalog.changes()


def live(*documents: Document) -> Catalog:
    catalog = Catalog(expands=False)
    put(catalog, *documents)
    return catalog


def files(*documents: Document) -> Catalog:
    catalog = Catalog()
    put(catalog, *documents)
    return catalog


def document(api_version: str, kind: str, name: str, spec: Document | None = None, **metadata: Any) -> Document:
    found: Document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}}
    return found if spec is None else {**found, "spec": spec}


def pod(name: str, *, priority_class: str = "", node: str = "", **metadata: Any) -> Document:
    spec: Document = {"containers": [{"name": "main"}], "nodeName": node, "priorityClassName": priority_class}
    return document("v1", "Pod", name, spec, **metadata)


def member(name: str, gang: str) -> Document:
    return pod(name, annotations={"scheduling.k8s.io/group-name": gang})


def group(name: str, minimum: int) -> Document:
    return document("scheduling.volcano.sh/v1beta1", "PodGroup", name, {"minMember": minimum})


def job(name: str, *, pods: int = 1, queue: str = "", **metadata: Any) -> Document:
    template = {"spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"}}
    labels = {QUEUE: queue} if queue else {}
    return document("batch/v1", "Job", name, {"parallelism": pods, "template": template}, labels=labels, **metadata)


def of_job(name: str, job_name: str) -> Document:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job_name, "controller": True}
    return pod(name, ownerReferences=[owner])


def priority_class(name: str, value: int, **more: Any) -> Document:
    return {**document("scheduling.k8s.io/v1", "PriorityClass", name), "value": value, **more}


def shown(events: list[Event]) -> list[str]:
    """Events in few words."""
    words = []
    for event in events:
        match event:
            case PodSeen(found):
                words.append(f"pod {found.metadata.name}")
            case NodeSeen(node):
                words.append(f"node {node.name}")
            case GangSeen(gang):
                words.append(f"gang {gang.name} of {gang.minimum}")
            case WorkloadSeen(queued):
                words.append(f"workload of {' '.join(queued.owner_key)}: {sorted(chain(*queued.pods.values()))}")
            case ObjectSeen(found):
                words.append(f"{found.kind} {found.metadata.name}")
            case _:
                words.append(str(event))
    return words


def test_the_first_changes_are_everything_and_the_next_are_none() -> None:
    catalog = Catalog(expands=False)

    events = put(catalog, member("a", "crew"), group("crew", 1), document("v1", "Node", "n1"))

    assert shown(events) == ["node n1", "gang default/crew of 1", "pod a"]
    assert catalog.changes() == []


def test_a_gang_is_told_again_when_its_object_changes_and_its_members_are_not() -> None:
    catalog = live(member("a", "crew"), member("b", "crew"), group("crew", 1))

    assert shown(put(catalog, group("crew", 2))) == ["gang default/crew of 2"]


def test_a_gang_that_only_its_pods_declare_grows_with_them() -> None:
    mark = {"mooring.dev/gang-name": "crew"}
    catalog = live(pod("a", annotations=mark))

    assert shown(put(catalog, pod("b", annotations=mark))) == ["gang default/crew of 2", "pod b"]
    catalog.remove(Pod, "default", "a")
    assert shown(catalog.changes()) == ["gang default/crew of 1", "PodLost(key='default/a')"]
    catalog.remove(Pod, "default", "b")
    assert catalog.changes() == [PodLost("default/b"), GangLost("Gang.mooring.dev/default/crew")]


def test_a_change_is_about_its_gang_and_nobody_else() -> None:
    gangs = [member(f"{gang}-{number}", f"gang-{gang}") for gang in range(50) for number in range(4)]
    catalog = live(*gangs, *(group(f"gang-{gang}", 4) for gang in range(50)))

    events = put(catalog, {**member("7-0", "gang-7"), "status": {"phase": "Running"}})

    assert shown(events) == ["pod 7-0"]
    assert catalog.translated == 4


def test_a_pod_of_a_large_replica_set_is_translated_alone() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}
    spec = {"replicas": 100, "template": template, "selector": {"matchLabels": {"app": "web"}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
    pods = [pod(f"web-{number}", ownerReferences=[owner]) for number in range(100)]
    catalog = live(document("apps/v1", "ReplicaSet", "web", spec), *pods)

    events = put(catalog, pod("web-7", node="n1", ownerReferences=[owner]))

    assert shown(events) == ["pod web-7"]
    assert catalog.translated == 1


def test_controllers_make_their_pods_on_a_cluster_and_the_catalog_makes_them_for_files() -> None:
    assert shown(put(Catalog(expands=False), job("train"))) == []
    assert shown(put(Catalog(), job("train"))) == ["pod train-96gf9"]


def test_a_job_that_queues_is_a_workload_that_its_pods_join_as_they_come() -> None:
    catalog = Catalog(expands=False)

    assert shown(put(catalog, job("train", pods=2, queue="team"))) == ["workload of Job default train: []"]
    assert shown(put(catalog, of_job("a", "train"))) == ["pod a", "workload of Job default train: ['default/a']"]


def test_a_job_finds_its_way_into_a_default_queue_that_comes_later() -> None:
    catalog = live(job("train"), of_job("a", "train"))
    queue = document("kueue.x-k8s.io/v1beta2", "LocalQueue", "default", {"clusterQueue": "all"})

    assert shown(put(catalog, queue)) == [
        "LocalQueue default",
        "pod a",  # which waits behind Kueue's gate now
        "workload of Job default train: ['default/a']",
    ]


def test_a_workload_whose_job_goes_stands_for_itself_until_it_goes_too() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "main"}]}}}
    spec = {"queueName": "team", "podSets": [pod_set]}
    given = document("kueue.x-k8s.io/v1beta2", "Workload", "job-train", spec, ownerReferences=[owner])
    catalog = live(given, job("train", queue="team"), of_job("a", "train"))

    catalog.remove(Job, "default", "train")
    after_the_job = catalog.changes()
    catalog.remove(Workload, "default", "job-train")

    assert shown(after_the_job) == ["pod a", "workload of Job default train: []"]
    assert catalog.changes() == [WorkloadLost("default/job-train")]


def test_a_class_that_changes_changes_the_pods_and_gangs_that_name_it() -> None:
    catalog = files(priority_class("urgent", 10), pod("a", priority_class="urgent"), pod("b"))

    events = put(catalog, priority_class("urgent", 20))

    assert shown(events) == ["PriorityClass urgent", "pod a"]
    (seen,) = (event.pod for event in events if isinstance(event, PodSeen))
    assert seen.spec.priority == 20


def test_a_default_class_is_for_those_that_name_none() -> None:
    catalog = files(priority_class("low", 1), pod("a", priority_class="low"), pod("b"))

    assert shown(put(catalog, priority_class("low", 1, globalDefault=True))) == ["PriorityClass low", "pod b"]


def test_an_object_that_is_written_again_without_a_change_is_not_told() -> None:
    queue = document("kueue.x-k8s.io/v1beta2", "ClusterQueue", "all", {"namespaceSelector": {}}, resourceVersion="1")
    catalog = live(queue, pod("a", queue="x", resourceVersion="1"), job("train", queue="team", resourceVersion="1"))
    written = {**queue, "metadata": {"name": "all", "resourceVersion": "2"}, "status": {"pendingWorkloads": 7}}

    assert put(catalog, written, pod("a", queue="x", resourceVersion="9")) == []
    assert catalog.translated == 0


def test_a_heartbeat_of_a_node_is_not_told() -> None:
    node = document("v1", "Node", "n1")
    catalog = live({**node, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})

    assert put(catalog, {**node, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}) == []


def test_an_object_that_is_put_and_removed_in_between_is_never_told() -> None:
    catalog = live()

    catalog.put(
        Pod(metadata=ObjectMeta(name="a"), spec=PodSpec(containers=[Container(name="main")])), Place("<test>", 1)
    )

    assert (catalog.remove(Pod, "default", "a"), catalog.remove(Pod, "default", "a")) == (True, False)
    assert catalog.changes() == []


def test_on_a_cluster_who_contradicts_another_is_left_out_until_that_is_mended() -> None:
    topology = "kueue.x-k8s.io/podset-required-topology"
    first = pod("a", annotations={"mooring.dev/gang-name": "crew", topology: "rack"})
    other = pod("b", annotations={"mooring.dev/gang-name": "crew", topology: "zone"})
    catalog = Catalog(expands=False)

    events = put(catalog, first, other, pod("c"))

    assert shown(events) == ["gang default/crew of 1", "pod a", "pod c"]
    assert [str(problem).partition("expected")[2] for problem in catalog.problems] == [
        " the topology that Pod default/a asks for, as they are one gang, found another"
    ]
    other["metadata"]["annotations"][topology] = "rack"
    assert shown(put(catalog, other)) == ["gang default/crew of 2", "pod b"]
    assert catalog.problems == []


def test_in_files_a_contradiction_is_refused() -> None:
    catalog = files(priority_class("one", 1, globalDefault=True))

    with pytest.raises(ManifestError, match="a second one besides one"):
        put(catalog, priority_class("two", 2, globalDefault=True))
