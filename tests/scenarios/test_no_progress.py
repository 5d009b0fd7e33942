"""Evictions that nothing comes of are counted, reported as a fault that names the pods, and stopped."""

from collections import Counter

import pytest

from mooring.engine.cycle import Scheduler
from mooring.engine.disruption import CALM_SECONDS, MOST_EVICTIONS_AT_ONCE, MOST_SETBACKS, Forced, disrupt
from mooring.errors import NoProgress
from mooring.model.decisions import Decision, Evict, Wait
from mooring.model.events import PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.plugin import ClusterView, Permit, PodView, Rejection
from mooring.testing.builders import make_node, make_pod, make_scheduler

pytestmark = pytest.mark.faults


class NeverUrgent(Permit):
    """Refuses the urgent pod once its victims are gone: a plugin that filters do not know of."""

    def permit(self, pod: PodView, cluster: ClusterView, row: int) -> Rejection | None:
        return Rejection(("never",)) if pod.key == "default/urgent" else None


def play(scheduler: Scheduler, start: float, cycles: int, step: float) -> list[Decision]:
    """Let evicted pods be gone at once, and their controller make them anew."""
    decisions: list[Decision] = []
    for number in range(cycles):
        made = scheduler.cycle(start + number * step)
        for evicted in [found for found in made if isinstance(found, Evict)]:
            scheduler.handle(PodLost(evicted.pod))
            scheduler.handle(PodSeen(make_pod(evicted.pod.partition("/")[2], cpu=4, node=evicted.node)))
        decisions += made
    return decisions


def evicted(decisions: list[Decision]) -> Counter[str]:
    return Counter(found.pod for found in decisions if isinstance(found, Evict))


def preempting_in_vain() -> Scheduler:
    pods = [make_pod(f"low-{name}", cpu=4, node=name) for name in "ab"]
    nodes = [make_node(name, cpu=4) for name in "ab"]
    scheduler = make_scheduler(nodes=nodes, pods=pods, plugins=[NeverUrgent])
    scheduler.handle(PodSeen(make_pod("urgent", cpu=4, priority=10)))
    return scheduler


def test_a_preemptor_that_is_never_bound_stops_evicting_and_is_reported() -> None:
    scheduler = preempting_in_vain()

    decisions = play(scheduler, 0.0, 60, 20.0)

    assert evicted(decisions).total() <= MOST_SETBACKS + 60 * 20.0 / CALM_SECONDS
    (fault, *_) = [found for found in scheduler.take_faults() if isinstance(found.error, NoProgress)]
    assert fault.turn == "default/urgent"
    assert "room was made for default/urgent 10 times, and it was never bound; evicted: default/low-" in fault.message
    (wait, *_) = [found for found in decisions if isinstance(found, Wait) and "room was made" in found.message]
    assert wait.pod == "default/urgent"


def test_nothing_is_evicted_without_end_while_time_stands_still() -> None:
    scheduler = preempting_in_vain()

    decisions = play(scheduler, 1.0, 60, 0.0)

    assert evicted(decisions).total() <= MOST_SETBACKS
    assert [fault.turn for fault in scheduler.take_faults()] == ["default/urgent"]


def test_a_pod_that_is_evicted_again_and_again_at_one_moment_is_named() -> None:
    scheduler = make_scheduler(nodes=[make_node("a")], pods=[make_pod("low", node="a")])
    cluster, queue = scheduler.cluster, scheduler.queue
    key = PodKey("default/low")

    for _ in range(MOST_EVICTIONS_AT_ONCE):
        assert disrupt(cluster, queue, [cluster.pods.records[key]], Forced("why", "default/other")).decisions
        cluster.keep_running(key)

    with pytest.raises(NoProgress, match="pod default/low was evicted 10 times without any time passing"):
        disrupt(cluster, queue, [cluster.pods.records[key]], Forced("why", "default/other"))
