"""The part of a cluster that one of several schedulers has."""

import logging

import pytest

from mooring.drivers.live.checks import Check
from mooring.drivers.live.watching.shard import NodesOfShard, Shard
from mooring.testing.builders import make_node


def has(labels: dict[str, str], *wanted: tuple[str, str]) -> bool:
    return Shard(node_labels=wanted).has_node(make_node("n", labels=labels))


def test_of_several_values_of_one_label_any_will_do() -> None:
    wanted = (("pool", "batch"), ("pool", "serving"))
    assert has({"pool": "batch"}, *wanted)
    assert has({"pool": "serving"}, *wanted)
    assert not has({"pool": "other"}, *wanted)
    assert not has({}, *wanted)


def test_of_several_labels_a_node_must_have_each() -> None:
    wanted = (("pool", "batch"), ("zone", "a"), ("pool", "serving"))
    assert has({"pool": "serving", "zone": "a"}, *wanted)
    assert not has({"pool": "serving", "zone": "b"}, *wanted)
    assert not has({"zone": "a"}, *wanted)


def test_a_part_without_nodes_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    nodes: list[str] = []
    shard = Shard(node_labels=(("pool", "serving"), ("zone", "a"), ("pool", "batch")))
    found = NodesOfShard(shard, lambda: len(nodes))
    caplog.set_level(logging.INFO)
    assert found.checks() == []
    found.look()
    found.look()
    words = "no node has pool=batch or pool=serving, and zone=a"
    assert caplog.messages == [f"{words} (--node-pool): no pod can be placed"]
    assert found.checks() == [Check("node-pool", words, is_needed=False)]
    nodes.append("n")
    found.look()
    assert found.checks() == []


def test_who_has_all_nodes_does_not_miss_any() -> None:
    found = NodesOfShard(Shard(), lambda: 0)
    found.look()
    assert found.checks() == []
