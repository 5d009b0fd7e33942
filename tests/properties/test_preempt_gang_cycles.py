"""Gangs and pods that take each other's room, cycle by cycle: gangs are whole or absent, and no node holds too much."""

from typing import Any

from drawing import choices
from hypothesis import event, given
from hypothesis import strategies as st
from plain_gangs import gang_key, make_member
from stories import assembled

from examples import examples
from mooring.engine.cycle import Scheduler
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Decision, Evict
from mooring.model.events import GangSeen, NodeSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Gang
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.builders import RACK, make_node, make_pod
from mooring.testing.random_clusters import Choose, one_in, one_of

ASSEMBLY = assembled(None)
PROTECTING = assembled(
    {
        "pluginConfig": [
            {
                "name": "PreemptionCost",
                "args": {"leastWorkLost": True, "mostPreemptionsPerWorkload": 1, "windowSeconds": 5},
            }
        ]
    }
)


class Town:
    """A world that carries decisions out, evictions only after a while."""

    def __init__(self, choose: Choose, scheduler: Scheduler, *, nodes: int) -> None:
        self._choose = choose
        self.scheduler = scheduler
        self.pods: dict[str, Pod] = {}
        self.gangs: dict[str, Gang] = {}
        self._leaving: list[str] = []
        self._count = 0
        made = [make_node(f"node-{i}", cpu=2 + choose(3), rack=f"rack-{i % 2}") for i in range(nodes)]
        scheduler.handle(*map(NodeSeen, made))

    def submit(self) -> None:
        """A pod, or a gang."""
        self._count += 1
        choose, name = self._choose, f"work-{self._count}"
        given: dict[str, Any] = {"cpu": 1 + choose(2), "priority": choose(4) * 10}
        if one_in(choose, 2):
            size = 2 + choose(3)
            topology_request = TopologyRequest(required=RACK) if one_in(choose, 4) else None
            gang = self.gangs[name] = Gang(
                gang_key(name), f"default/{name}", 1 + choose(size), topology_request=topology_request
            )
            self.scheduler.handle(GangSeen(gang))
            self._see([make_member(f"{name}-{i}", name, **given) for i in range(size)])
        else:
            self._see([make_pod(name, **given)])

    def _see(self, pods: list[Pod]) -> None:
        for pod in pods:
            self.pods[pod.key] = pod
            self.scheduler.handle(PodSeen(pod))

    def carry_out(self, decisions: list[Decision], now: float) -> None:
        for decision in decisions:
            if isinstance(decision, Bind):
                pod = self.pods[decision.pod]
                assert not pod.spec.node_name, f"{decision.pod} is bound twice"
                pod.spec.node_name = decision.node
                pod.status.start_time = f"2026-01-01T00:00:{int(now):02d}Z"
                self.scheduler.handle(PodSeen(pod))
            elif isinstance(decision, Evict):
                assert self.pods[decision.pod].spec.node_name, f"{decision.pod} does not run"
                self._leaving.append(decision.pod)

    def let_go(self) -> None:
        """Some of those that are being evicted are gone, perhaps to come back as others."""
        for key in list(self._leaving):
            if one_in(self._choose, 2):
                self._leaving.remove(key)
                del self.pods[key]
                self.scheduler.handle(PodLost(key))

    def running(self, gang: str) -> list[str]:
        return [
            key
            for key, pod in self.pods.items()
            if key.startswith(f"default/{gang}-") and pod.spec.node_name and key not in self._leaving
        ]

    def check(self) -> None:
        for name, gang in self.gangs.items():
            running = self.running(name)
            assert not running or len(running) >= gang.minimum, f"{running} of {name} run, it needs {gang.minimum}"
            racks = {int(self.pods[key].spec.node_name.rpartition("-")[2]) % 2 for key in running}
            assert gang.topology_request is None or len(racks) <= 1, f"{running} of {name} are in several racks"
        used: dict[str, int] = {}
        for pod in self.pods.values():
            if pod.spec.node_name:
                requests = pod.spec.containers[0].resources
                assert requests is not None and requests.requests is not None
                used[pod.spec.node_name] = used.get(pod.spec.node_name, 0) + int(requests.requests["cpu"])
        for node, cpu in used.items():
            row = self.scheduler.cluster.nodes.row_of[node]
            assert cpu * 1000 <= int(self.scheduler.cluster.nodes.allocatable("cpu")[row]), f"{node} holds too much"


@examples(80)
@given(choose=choices(), nodes=st.integers(1, 5), steps=st.integers(2, 8), protects=st.booleans())
def test_gangs_are_whole_or_absent_whoever_is_evicted(choose: Choose, nodes: int, steps: int, protects: bool) -> None:
    scheduler = (PROTECTING if protects else ASSEMBLY).new_scheduler()
    town = Town(choose, scheduler, nodes=nodes)
    evictions = 0
    for step in range(steps):
        for _ in range(choose(3)):
            town.submit()
        decisions = scheduler.cycle(float(step))
        evictions += sum(isinstance(decision, Evict) for decision in decisions)
        town.carry_out(decisions, step)
        town.check()
        town.let_go()
        town.check()
    event(f"{one_of(lambda below: min(evictions, below - 1), ('nobody', 'one', 'several'))} evicted")
