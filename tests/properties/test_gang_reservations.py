"""No starvation: with a reservation, a gang starts once those that ran before it have ended, whoever keeps arriving."""

from typing import Any

from drawing import choices
from gang_stories import no_preemption
from gang_worlds import RACK
from hypothesis import assume, given
from hypothesis import strategies as st

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind, Wait
from mooring.model.events import Event, GangSeen, PodLost, PodSeen
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import PLAIN_KIND
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.builders import make_node, make_pod, make_scheduler
from mooring.testing.random_clusters import Choose, one_in, one_of, with_node

DURATION = "mooring.dev/duration"
AFTER = 10.0
SECONDS_A_CYCLE = 5.0
LONGEST = 100.0
PROFILE = no_preemption(GangScheduling={"reserveAfterSeconds": AFTER})
WISHES = (None, TopologyRequest(required=RACK), TopologyRequest(preferred=RACK))


def make_gang(choose: Choose) -> tuple[Gang, list[Pod]]:
    """A gang of one or two kinds of members that all have to run."""
    count = 1 + choose(6)
    annotations = {"mooring.dev/gang-name": "train"}
    small, large = 1 + choose(4), 1 + choose(4)
    members = [
        make_pod(f"train-{i}", gpu=large if i < count // 2 else small, annotations=annotations) for i in range(count)
    ]
    key = gang_key(PLAIN_KIND, "default", "train")
    return Gang(key, "default/train", count, topology_request=one_of(choose, WISHES)), members


def fits_in_the_empty_cluster(nodes: list[Node], gang: Gang, members: list[Pod]) -> bool:
    scheduler = make_scheduler(nodes=nodes, pods=members, profile=PROFILE)
    scheduler.handle(GangSeen(gang))
    return any(isinstance(found, Bind) for found in scheduler.cycle(1.0))


class Traffic:
    """Small pods that keep coming; those that say for how long they run go in time."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.pods: dict[str, Pod] = {}
        self.ends: dict[str, float] = {}
        self.count = 0

    def arrive(self, count: int, *, endless: bool) -> list[Event]:
        made: list[Pod] = []
        for _ in range(count):
            self.count += 1
            seconds = LONGEST * (1 + self.choose(20)) / 20
            says = not endless or one_in(self.choose, 2)
            given: dict[str, Any] = {"annotations": {DURATION: f"{seconds:g}s"}} if says else {}
            made.append(make_pod(f"small-{self.count}", gpu=1 + self.choose(2), **given))
        self.pods.update((pod.key, pod) for pod in made)
        return [PodSeen(pod) for pod in made]

    def bind(self, found: Bind, now: float) -> list[Event]:
        pod = self.pods[found.pod] = with_node(self.pods[found.pod], found.node)
        says = (pod.metadata.annotations or {}).get(DURATION)
        if says is not None:
            self.ends[pod.key] = now + float(says[:-1])
        return [PodSeen(pod)] if one_in(self.choose, 2) else []

    def give_up(self, key: str) -> list[Event]:
        del self.pods[key]
        return [PodLost(key)]

    def leave(self, now: float) -> list[Event]:
        gone = [key for key, end in self.ends.items() if end <= now]
        for key in gone:
            del self.ends[key], self.pods[key]
        return [PodLost(key) for key in gone]


@given(choose=choices(), nodes=st.integers(1, 5))
def test_a_gang_starts_when_those_before_it_have_ended_though_others_keep_coming(choose: Choose, nodes: int) -> None:
    made = [make_node(f"n{i}", gpu=1 + choose(4), labels={RACK: f"rack-{choose(2)}"}) for i in range(nodes)]
    gang, members = make_gang(choose)
    assume(fits_in_the_empty_cluster(made, gang, members))
    scheduler = make_scheduler(nodes=made, profile=PROFILE)
    traffic = Traffic(choose)
    now = 1.0
    scheduler.handle(*traffic.arrive(4 + choose(8), endless=False))
    for found in scheduler.cycle(now):
        if isinstance(found, Bind):
            scheduler.handle(*traffic.bind(found, now))
        elif isinstance(found, Wait):
            scheduler.handle(*traffic.give_up(found.pod))  # nobody is to be ahead of the gang
    scheduler.handle(GangSeen(gang), *map(PodSeen, members))

    started, reserved_at = False, now + AFTER + 2 * SECONDS_A_CYCLE
    latest = reserved_at + LONGEST
    while not started and now <= latest + SECONDS_A_CYCLE:
        now += SECONDS_A_CYCLE
        scheduler.handle(*traffic.leave(now), *traffic.arrive(1 + choose(3), endless=now > reserved_at))
        for found in scheduler.cycle(now):
            if isinstance(found, Bind):
                started |= found.pod.startswith("default/train")
                scheduler.handle(*(traffic.bind(found, now) if found.pod in traffic.pods else ()))

    assert started, f"{gang} has not started at {now:g}, with {len(traffic.pods)} others around"
