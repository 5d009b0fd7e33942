"""However objects come, change and go, the engine knows what it would, had they all come at once as they are now."""

from collections.abc import Iterable, Mapping
from dataclasses import replace as replace_fields
from typing import Any

import pytest
from catalog_objects import WORLD, Document
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from examples import examples
from mooring.engine.cycle import Scheduler
from mooring.errors import ManifestError
from mooring.model.events import (
    Event,
    GangLost,
    GangSeen,
    NodeLost,
    NodeSeen,
    ObjectLost,
    ObjectSeen,
    PodLost,
    PodSeen,
    WorkloadLost,
    WorkloadSeen,
    object_key,
)
from mooring.model.loading.catalog import Catalog
from mooring.model.objects.kinds import Kind, decode, find_kind
from mooring.model.places import Place
from mooring.model.queued.gathering import QueuedWorkload
from mooring.model.queued.workloads import queued_workloads
from mooring.model.what_matters import is_same_to_engine
from mooring.testing.builders import make_scheduler

PLACE = Place("<test>", 1)
Told = dict[tuple[str, str], Any]


def kind_of(document: Document) -> Kind:
    kind = find_kind(document["apiVersion"], document["kind"])
    assert kind is not None
    return kind


def put(catalog: Catalog, document: Document) -> None:
    kind = kind_of(document)
    catalog.put(decode(document, kind.type, PLACE, kind.name), PLACE)


def remove(catalog: Catalog, document: Document) -> None:
    kind = kind_of(document)
    catalog.remove(kind.type, "default" if kind.is_namespaced else "", document["metadata"]["name"])


def tell(told: Told, events: Iterable[Event]) -> None:
    """Follow events as the engine does; an event that is no news is a fault."""
    for event in events:
        match event:
            case ObjectSeen(found):
                _see(told, (found.kind, object_key(found)), found)
            case NodeSeen(node):
                _see(told, ("Node", node.name), node)
            case PodSeen(pod):
                _see(told, ("Pod", pod.key), pod)
            case GangSeen(gang):
                _see(told, ("Gang", gang.key), gang)
            case WorkloadSeen(queued):
                _see(told, ("QueuedWorkload", queued.workload.key), queued)
            case ObjectLost(kind, key):
                del told[kind, key]
            case NodeLost(key):
                del told["Node", key]
            case PodLost(key):
                del told["Pod", key]
            case GangLost(key):
                del told["Gang", key]
            case WorkloadLost(key):
                del told["QueuedWorkload", key]
            case _:
                raise AssertionError(f"{event} is nothing that a catalog tells")


def _see(told: Told, key: tuple[str, str], found: Any) -> None:
    assert told.get(key) != found, f"{key} is told again, though it has not changed"
    told[key] = found


def without_uid(queued: QueuedWorkload) -> QueuedWorkload:
    """Its uid says only which came first."""
    workload = queued.workload
    return replace_fields(queued, workload=replace(workload, metadata=replace(workload.metadata, uid="")))


def assert_same(told: Mapping[tuple[str, str], Any], expected: Mapping[tuple[str, str], Any]) -> None:
    assert set(told) == set(expected)
    for key, found in told.items():
        if isinstance(found, QueuedWorkload):
            assert without_uid(found) == without_uid(expected[key]), key
        elif key[0] in ("Gang", "Pod"):
            assert found == expected[key], key
        else:
            assert is_same_to_engine(found, expected[key]), key

    def by_age(known: Mapping[tuple[str, str], Any]) -> list[str]:
        queued = [found.workload.metadata for found in known.values() if isinstance(found, QueuedWorkload)]
        return [metadata.name for metadata in sorted(queued, key=lambda metadata: (metadata.uid, metadata.name))]

    assert by_age(told) == by_age(expected)


def at_once(documents: Iterable[Document], *, expands: bool) -> Told:
    catalog = Catalog(expands=expands)
    for document in documents:
        put(catalog, document)
    told: Told = {}
    tell(told, catalog.changes())
    for problem in catalog.problems:
        raise problem
    picture = catalog.picture()
    shown: Told = {(found.kind, object_key(found)): found for found in picture.related()}
    shown |= {("Node", node.name): node for node in picture.nodes} | {("Pod", pod.key): pod for pod in picture.pods}
    shown |= {("Gang", gang.key): gang for gang in picture.gangs}
    shown |= {("QueuedWorkload", found.workload.key): found for found in queued_workloads(picture)}
    assert told == shown
    return told


@st.composite
def stories(draw: st.DrawFn) -> list[list[tuple[int, int | None]]]:
    """Which object gets which version, or goes; told in several goes."""
    chosen = draw(st.lists(st.integers(0, len(WORLD) - 1), min_size=2, max_size=9, unique=True))
    step = st.sampled_from(chosen).flatmap(
        lambda index: st.tuples(st.just(index), st.none() | st.integers(0, len(WORLD[index]) - 1))
    )
    return draw(st.lists(st.lists(step, min_size=1, max_size=6), min_size=2, max_size=6))


@pytest.mark.parametrize("expands", [True, False], ids=["files", "live"])
@given(story=stories())
@examples(400)
def test_telling_changes_one_by_one_ends_with_what_telling_all_at_once_does(
    expands: bool, story: list[list[tuple[int, int | None]]]
) -> None:
    catalog = Catalog(expands=expands)
    present: dict[int, Document] = {}
    told: Told = {}
    for steps in story:
        for index, version in steps:
            if version is None:
                if index in present:
                    remove(catalog, present.pop(index))
            else:
                present[index] = WORLD[index][version]
                put(catalog, present[index])
        try:
            expected = at_once(present.values(), expands=expands)
        except ManifestError:
            if expands:
                with pytest.raises(ManifestError):
                    catalog.changes()
            else:
                tell(told, catalog.changes())
                assert catalog.problems
            continue
        tell(told, catalog.changes())
        assert_same(told, expected)
        assert catalog.changes() == []


def knows(scheduler: Scheduler) -> Told:
    """What a scheduler knows of pods, gangs and work that queues."""
    cluster = scheduler.cluster
    gangs: Told = {
        ("Gang", key): (record.gang, sorted(record.members))
        for key, record in cluster.gangs.records.items()
        if record.gang is not None or record.members
    }
    pods: Told = {("Pod", key): (record.pod, record.node_name) for key, record in cluster.pods.records.items()}
    workloads: Told = {("Workload", key): without_uid(found) for key, found in cluster.tenants.workloads.items()}
    return {**gangs, **pods, **workloads}


@given(story=stories())
def test_a_scheduler_that_followed_all_changes_decides_as_one_that_came_at_the_end(
    story: list[list[tuple[int, int | None]]],
) -> None:
    catalog = Catalog(expands=False)
    follower = make_scheduler()
    present: dict[int, Document] = {}
    for steps in story:
        for index, version in steps:
            if version is not None and WORLD[index][version].get("status", {}).get("phase") != "Succeeded":
                present[index] = WORLD[index][version]
                put(catalog, present[index])
            elif version is None and index in present:
                remove(catalog, present.pop(index))
        follower.handle(*catalog.changes())
        if catalog.problems:
            return
    newcomer = make_scheduler()
    fresh = Catalog(expands=False)
    for document in present.values():
        put(fresh, document)
    newcomer.handle(*fresh.changes())

    decided = [sorted(map(repr, scheduler.cycle(0.0))) for scheduler in (follower, newcomer)]

    assert knows(follower) == knows(newcomer)
    assert decided[0] == decided[1]
