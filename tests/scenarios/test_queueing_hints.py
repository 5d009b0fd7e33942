"""A plugin that looks at the object that changed keeps its pods from being tried in vain."""

from typing import ClassVar

from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind, Wait
from mooring.model.events import NodeSeen, ObjectSeen, PodLost
from mooring.plugin import Change, Changed, Depends, Filter, Mask, Node, NodeRows, Shape
from mooring.testing.builders import make_namespace, make_node, make_pod, make_scheduler


class Licensed(Filter):
    """Pods run where the licence is; a node without it helps nobody."""

    depends_on = Depends.NODE
    helped_by = Change.NODE
    asked: ClassVar[list[tuple[bool, bool]]] = []

    def filter(self, pod: Shape, nodes: NodeRows) -> Mask:
        return nodes.has_label("licence")

    def is_helped_by(self, pod: Shape, changed: Changed) -> bool:
        self.asked.append((changed.old is not None, changed.new is not None))
        return isinstance(changed.new, Node) and "licence" in (changed.new.metadata.labels or {})


def waiting() -> Scheduler:
    Licensed.asked.clear()
    scheduler = make_scheduler(nodes=[make_node("a")], pods=[make_pod("pod", cpu=2)], plugins=[Licensed])
    scheduler.cycle(0.0)
    return scheduler


def test_a_node_that_does_not_help_brings_nobody_back() -> None:
    scheduler = waiting()

    scheduler.handle(NodeSeen(make_node("b")))

    assert (scheduler.cycle(100.0), len(scheduler.queue), Licensed.asked) == ([], 0, [(False, True)])


def test_a_node_that_helps_does() -> None:
    scheduler = waiting()

    scheduler.handle(NodeSeen(make_node("a", labels={"licence": "yes"})))

    assert scheduler.cycle(100.0) == [Bind("default/pod", "a")]
    assert Licensed.asked == [(True, True)]


def test_only_those_that_refused_the_pod_are_asked() -> None:
    scheduler = make_scheduler(
        nodes=[make_node("a", cpu=1, labels={"licence": "yes"})], pods=[make_pod("pod", cpu=2)], plugins=[Licensed]
    )
    scheduler.cycle(0.0)
    Licensed.asked.clear()

    scheduler.handle(NodeSeen(make_node("b", labels={"licence": "yes"})))

    assert scheduler.cycle(100.0) == [Bind("default/pod", "b")]  # NodeResourcesFit waits for any node
    assert Licensed.asked == []


def test_a_pod_refused_by_several_comes_back_for_any_of_them() -> None:
    nodes = [make_node("small", cpu=1, labels={"licence": "yes"}), make_node("plain")]
    scheduler = make_scheduler(
        nodes=nodes, pods=[make_pod("pod", cpu=2), make_pod("old", cpu=1, node="small")], plugins=[Licensed]
    )
    (wait,) = scheduler.cycle(0.0)
    assert isinstance(wait, Wait)
    assert sorted(wait.plugins) == ["Licensed", "NodeResourcesFit"]

    scheduler.handle(PodLost("default/old"))
    (again,) = scheduler.cycle(100.0)

    assert isinstance(again, Wait), "it was tried again: NodeResourcesFit is helped by a pod that goes"


def test_other_kinds_of_changes_are_not_shown_at_all() -> None:
    scheduler = waiting()

    scheduler.handle(ObjectSeen(make_namespace("new")))

    assert (scheduler.cycle(100.0), Licensed.asked) == ([], [])


class Odd(Licensed):
    def is_helped_by(self, pod: Shape, changed: Changed) -> bool:
        raise KeyError("licence")


def test_a_hint_that_raises_is_told_and_the_pod_is_tried() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")], pods=[make_pod("pod")], plugins=[Odd])
    scheduler.cycle(0.0)

    scheduler.handle(NodeSeen(make_node("b", labels={"licence": "yes"})))

    assert scheduler.cycle(100.0) == [Bind("default/pod", "b")]
    assert [(fault.turn, fault.plugin) for fault in scheduler.take_faults()] == [("Node", "Odd")]
