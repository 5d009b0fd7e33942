"""A node that says the same again is not read again; whatever else it says is."""

import copy
import json
from typing import Any

import msgspec
import pytest

from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.model.events import Event, NodeSeen
from mooring.model.objects.kinds import find_kind

KIND = find_kind("v1", "Node")
assert KIND is not None
NODES = Resource(KIND, "v1", "nodes", namespaced=False)
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a", "uid": "1", "resourceVersion": "1", "labels": {"zone": "z1"}, "annotations": {"x": "1"}},
    "spec": {},
    "status": {
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "images": [{"names": ["one"], "sizeBytes": 1}],
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
    },
}


def changed(at: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """The node with another value somewhere, at another version."""
    found = copy.deepcopy(NODE)
    found["metadata"]["resourceVersion"] = "2"
    inside: Any = found
    for key in at[:-1]:
        inside = inside[key]
    inside[at[-1]] = value
    return found


def told(cache: ObjectCache, node: dict[str, Any]) -> list[Event]:
    metadata = cache.put(NODES, msgspec.Raw(json.dumps(node).encode()))
    assert (metadata.name, metadata.resource_version) == ("a", node["metadata"]["resourceVersion"])
    return cache.changes()


def test_a_heartbeat_is_no_change() -> None:
    cache = ObjectCache()
    assert len(told(cache, NODE)) == 1
    at = ("status", "conditions", 0, "lastHeartbeatTime")
    cache.put(NODES, msgspec.Raw(json.dumps(changed(at, "2026-01-01T00:05:00Z")).encode()))
    assert not cache.has_changes
    assert told(cache, changed(at, "2026-01-01T00:10:00Z")) == []


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("metadata", "labels", "zone"), "z2"),
        (("metadata", "annotations", "x"), "2"),
        (("metadata", "uid"), "2"),
        (("spec", "unschedulable"), True),
        (("spec", "taints"), [{"key": "k", "effect": "NoSchedule"}]),
        (("status", "capacity", "cpu"), "8"),
        (("status", "allocatable", "foo"), "5"),
        (("status", "images"), []),
        (("status", "declaredFeatures"), ["New"]),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_whatever_scheduling_reads_of_a_node_is_news(at: tuple[str | int, ...], value: Any) -> None:
    cache = ObjectCache()
    told(cache, NODE)
    node = changed(at, value)
    (event,) = told(cache, node)
    assert isinstance(event, NodeSeen)
    assert event.node == cache.node("a")
    assert told(cache, node) == []
    assert len(told(cache, changed(("metadata", "name"), "a"))) == 1, "and so is that it is as it was"


def test_a_node_that_is_gone_and_comes_back_is_told_again() -> None:
    cache = ObjectCache()
    told(cache, NODE)
    cache.remove(NODES, ("", "a"))
    assert len(cache.changes()) == 1
    assert len(told(cache, NODE)) == 1


def test_a_node_that_could_not_be_read_is_read_again() -> None:
    cache = ObjectCache()
    told(cache, NODE)
    assert told(cache, changed(("spec", "taints"), "none")) == []
    assert cache.unread == 1
    told(cache, NODE)
    assert cache.unread == 0
