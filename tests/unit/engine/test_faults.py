"""What raises costs the one that it is about: a pod that is to be let in, an event, a job of a shared queue."""

from typing import Any

import pytest

from mooring.actions.shares import action as allocate
from mooring.engine.cycle import Scheduler
from mooring.engine.plugin import PreEnqueue, QueueSort
from mooring.engine.verdict import Rejection
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod
from mooring.model.api.volcano_queue import Queue, QueueSpec
from mooring.model.decisions import Bind, Wait
from mooring.model.events import GangSeen, NodeSeen, ObjectSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import GANG_NAME, PLAIN_KIND
from mooring.state.shapes import Shape, ShapeTable
from mooring.testing.builders import make_node, make_pod, make_scheduler

pytestmark = pytest.mark.faults

QUEUE_NAME = "scheduling.volcano.sh/queue-name"


class Gate(PreEnqueue):
    """Raises as long as it is told to."""

    is_broken = True

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        if type(self).is_broken:
            raise ZeroDivisionError("gate")
        return None


class Sort(QueueSort):
    """Raises as long as it is told to."""

    is_broken = True

    def sort_key(self, pod: Pod, queued_at: float) -> float:
        if type(self).is_broken:
            raise ZeroDivisionError("sort")
        return queued_at


BY_SORT = {"plugins": {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Sort"}]}}}


def until_nothing_is_due(scheduler: Scheduler) -> tuple[float, list[Any]]:
    now, decisions = 1.0, list[Any]()
    for _ in range(40):
        decisions += scheduler.cycle(now)
        wake = scheduler.next_wake(now)
        if wake is None:
            break
        now = wake
    return now, decisions


@pytest.mark.parametrize(("plugin", "point", "profile"), [(Gate, "pre_enqueue", None), (Sort, "sort_key", BY_SORT)])
def test_a_pod_that_a_plugin_keeps_out_by_raising_is_said_so_and_parked_after_five_times(
    plugin: type[Gate] | type[Sort], point: str, profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = make_scheduler(nodes=[make_node("node", cpu=4)], plugins=[plugin], profile=profile)
    scheduler.handle(PodSeen(make_pod("a", cpu=1)))

    now, decisions = until_nothing_is_due(scheduler)

    assert [(fault.turn, fault.plugin) for fault in scheduler.take_faults()] == [("default/a", plugin.__name__)] * 5
    assert [(type(found), found.pod, found.plugins) for found in decisions] == [
        (Wait, "default/a", (plugin.__name__,))
    ] * 5
    assert f"plugin {plugin.__name__}: {point}: ZeroDivisionError" in decisions[-1].message
    assert "default/a" in scheduler.queue
    assert [entry.record.key for entry, _ in scheduler.queue.gated()] == ["default/a"]

    monkeypatch.setattr(plugin, "is_broken", False)
    assert scheduler.cycle(now + 1000.0) == []
    scheduler.handle(NodeSeen(make_node("another", cpu=2)))
    assert [type(found) for found in scheduler.cycle(now + 1001.0)] == [Bind]


def test_a_pod_that_was_kept_out_and_is_gone_is_forgotten() -> None:
    scheduler = make_scheduler(nodes=[make_node("node", cpu=4)], plugins=[Gate])
    scheduler.handle(PodSeen(make_pod("a", cpu=1)))
    scheduler.cycle(1.0)
    scheduler.handle(PodLost("default/a"))

    assert scheduler.cycle(100.0) == []
    assert "default/a" not in scheduler.queue and scheduler.next_wake(100.0) is None


def test_an_event_that_raises_costs_no_other_event(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = make_scheduler(nodes=[make_node("node", cpu=4)])
    whole = ShapeTable.intern

    def broken(self: ShapeTable, pod: Pod, **options: Any) -> Shape:
        if pod.metadata.name == "bad":
            raise ZeroDivisionError("a mistake of ours")
        return whole(self, pod, **options)

    monkeypatch.setattr(ShapeTable, "intern", broken)
    scheduler.handle(*(PodSeen(make_pod(name, cpu=1)) for name in ("first", "bad", "last")))

    assert [found.pod for found in scheduler.cycle(1.0) if isinstance(found, Bind)] == ["default/first", "default/last"]
    assert [(fault.turn, fault.message) for fault in scheduler.take_faults()] == [
        ("PodSeen default/bad", "error: ZeroDivisionError: a mistake of ours")
    ]


def shared_world() -> Scheduler:
    """A gang of which only some find a node, a pod that is too large, and one in another queue that fits."""
    scheduler = make_scheduler(nodes=[make_node(f"node-{number}", cpu=4) for number in range(12)])
    for name in ("rich", "poor", "third"):
        scheduler.handle(ObjectSeen(Queue(metadata=ObjectMeta(name=name), spec=QueueSpec(weight=1))))
    scheduler.handle(GangSeen(Gang(gang_key(PLAIN_KIND, "default", "gang"), "default/gang", 2, queue="poor")))
    for number, cpu in enumerate((1, 5, 5, 1)):
        scheduler.handle(PodSeen(make_pod(f"gang-{number}", cpu=cpu, annotations={GANG_NAME: "gang"})))
    scheduler.handle(PodSeen(make_pod("large", cpu=5, annotations={QUEUE_NAME: "third"})))
    scheduler.handle(PodSeen(make_pod("small", cpu=1, annotations={QUEUE_NAME: "rich"})))
    return scheduler


@pytest.mark.parametrize(
    ("name", "turn"), [("first_misfit", "gang"), ("evaluate", "default/large")], ids=["first_misfit", "evaluate"]
)
def test_why_a_job_of_a_shared_queue_finds_no_node_costs_nobody_else_a_turn(
    name: str, turn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = shared_world()

    def broken(*arguments: Any, **options: Any) -> Any:
        raise ZeroDivisionError(name)

    monkeypatch.setattr(allocate, name, broken)

    bound = [found.pod for found in scheduler.cycle(1.0) if isinstance(found, Bind)]

    assert "default/small" in bound
    faults = scheduler.take_faults()
    assert len(faults) == 1 and turn in faults[0].turn
