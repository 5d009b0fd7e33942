"""Load while time passes: reports, their age and estimates decide on pods that come and on pods that wait."""

from typing import Any

from mooring.assembly import assemble
from mooring.config.scheduler import parse_config
from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind
from mooring.model.events import NodeLoadSeen, NodeSeen, PodSeen
from mooring.model.load.reports import NodeReport
from mooring.testing.builders import make_config, make_node, make_pod, make_profile


def scheduler_with(**args: Any) -> Scheduler:
    profile = make_profile("LoadAwareScheduling", "NodeResourcesFit", args={"LoadAwareScheduling": args})
    return assemble(parse_config(make_config(profile), "profile")).new_scheduler()


def uses(node: str, cpu_millis: int, at: float) -> NodeLoadSeen:
    return NodeLoadSeen(NodeReport(node, at, usage={"cpu": cpu_millis, "memory": 0}))


def bound(scheduler: Scheduler, now: float) -> dict[str, str]:
    return {found.pod: found.node for found in scheduler.cycle(now) if isinstance(found, Bind)}


def test_a_pod_that_load_keeps_waiting_is_bound_when_a_report_says_that_there_is_room() -> None:
    scheduler = scheduler_with()
    scheduler.handle(NodeSeen(make_node("a", cpu=10)), uses("a", 9000, at=100.0), PodSeen(make_pod("p", cpu=1)))
    assert bound(scheduler, 100.0) == {}

    scheduler.handle(uses("a", 1000, at=160.0))

    assert bound(scheduler, 160.0) == {"default/p": "a"}


def test_a_pod_is_tried_again_when_the_report_that_refused_it_is_too_old() -> None:
    scheduler = scheduler_with(enableScheduleWhenNodeMetricsExpired=True)
    scheduler.handle(NodeSeen(make_node("a", cpu=10)), uses("a", 9000, at=100.0), PodSeen(make_pod("p", cpu=1)))
    assert bound(scheduler, 100.0) == {}

    wake = scheduler.next_wake(100.0)

    assert wake is not None and wake <= 280.0
    assert bound(scheduler, 280.0) == {"default/p": "a"}


def test_pods_do_not_pile_up_on_the_node_that_was_idle_when_it_was_last_measured() -> None:
    scheduler = scheduler_with()
    scheduler.handle(*(NodeSeen(make_node(name, cpu=10)) for name in ("a", "b")))
    scheduler.handle(uses("a", 0, at=100.0), uses("b", 2000, at=100.0))
    scheduler.handle(*(PodSeen(make_pod(f"p{number}", cpu=2)) for number in range(6)))

    nodes = list(bound(scheduler, 101.0).values())

    # 1.7 CPUs a pod by estimate: 3 on a are 51 percent; with 2 on b there, it is 54.
    assert sorted(nodes) == ["a", "a", "a", "b", "b"]


def test_a_node_whose_report_is_too_old_is_refused_and_never_counts_as_idle() -> None:
    scheduler = scheduler_with()
    scheduler.handle(NodeSeen(make_node("a", cpu=10)), uses("a", 0, at=100.0), PodSeen(make_pod("p", cpu=1)))

    assert bound(scheduler, 300.0) == {}
