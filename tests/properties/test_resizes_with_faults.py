"""Whatever fails in between, no pod is half resized in the state, and no resize is sent while one is on its way.

The world takes a resize or refuses it, answers late or never, loses pods, and the scheduler is killed and made anew
from what the world shows. A pod has two containers, so that it could be resized in part.
"""

from dataclasses import dataclass, field

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.engine.cycle import Scheduler
from mooring.model.api.autoscaling import VerticalPodAutoscaler
from mooring.model.api.pods import Pod
from mooring.model.decisions import Evict, Resize
from mooring.model.events import Failed, ObjectSeen, PodLost, PodSeen
from mooring.model.keys import PodKey
from mooring.model.pod_patch import PodPatch
from mooring.model.values.requests import pod_requests
from mooring.testing.builders import make_node, make_owner, make_pod, make_scheduler

CONTAINERS = ("app", "proxy")
SIZES = (500, 1000, 1500)
"""In millicores, of each container: a recommendation is always the same for both."""
PODS = 4


def two_containers(name: str, cpu: int) -> Pod:
    pod = make_pod(name, cpu=f"{cpu}m", node="a", owner=make_owner("web", kind="StatefulSet"))
    main = pod.spec.containers[0]
    return replace(pod, spec=replace(pod.spec, containers=[replace(main, name=one) for one in CONTAINERS]))


def autoscaler(cpu: int) -> VerticalPodAutoscaler:
    amounts = {"cpu": f"{cpu}m"}
    recommended = [
        {"containerName": name, "target": amounts, "lowerBound": amounts, "upperBound": amounts} for name in CONTAINERS
    ]
    return msgspec.convert(
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"},
                "updatePolicy": {"updateMode": "InPlace", "minReplicas": 1},
            },
            "status": {"recommendation": {"containerRecommendations": recommended}},
        },
        VerticalPodAutoscaler,
    )


@dataclass
class Faulty:
    """The world: what pods are there, and which resizes have been sent and not answered."""

    pods: dict[str, Pod]
    vpa: VerticalPodAutoscaler
    now: float = 0.0
    on_the_way: dict[str, Resize] = field(default_factory=dict)
    scheduler: Scheduler = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A scheduler knows what the world shows, and nothing of what another one had sent: that has an end with it."""
        for sent in list(self.on_the_way.values()):
            self.take(sent.pod)
        pods = list(self.pods.values())
        self.scheduler = make_scheduler(nodes=[make_node("a", cpu=16)], pods=pods, related=[self.vpa])

    def take(self, key: str) -> None:
        """The API server has taken a resize, whether its answer is heard or not."""
        sent = self.on_the_way.pop(key)
        if key in self.pods:
            self.pods[key] = PodPatch(resources=sent.resources).apply(self.pods[key])

    def decide(self) -> None:
        self.now += 30.0
        for decision in self.scheduler.cycle(self.now):
            assert not isinstance(decision, Evict)
            if isinstance(decision, Resize):
                assert decision.pod not in self.on_the_way, "a resize is on its way already"
                assert decision.pod in self.pods
                assert PodPatch(resources=decision.resources).apply(self.pods[decision.pod]) != self.pods[decision.pod]
                self.on_the_way[decision.pod] = decision
        self.check()

    def check(self) -> None:
        total = 0
        cluster = self.scheduler.cluster
        for key, pod in self.pods.items():
            record = cluster.pods.records[PodKey(key)]
            requests = [one.resources.requests for one in record.pod.spec.containers if one.resources is not None]
            sizes = {str((amounts or {})["cpu"]) for amounts in requests}
            assert len(sizes) == 1, "one container was resized without the other"
            sent = self.on_the_way.get(key)
            expected = {pod_requests(pod)["cpu"]}
            if sent is not None:
                expected = {pod_requests(PodPatch(resources=sent.resources).apply(pod))["cpu"]}
            assert pod_requests(record.pod)["cpu"] in expected
            total += pod_requests(record.pod)["cpu"] // 10**6
        assert int(cluster.nodes.requested("cpu")[cluster.nodes.row_of["a"]]) == total


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("recommend"), st.sampled_from(SIZES)),
        st.tuples(st.sampled_from(["take", "refuse", "lose answer", "lose pod"]), st.integers(0, PODS - 1)),
        st.tuples(st.sampled_from(["decide", "kill", "rebuild"]), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_no_pod_is_half_resized_and_no_resize_is_sent_twice(steps: list[tuple[str, int]]) -> None:
    pods = {f"default/web-{number}": two_containers(f"web-{number}", 500) for number in range(PODS)}
    world = Faulty(pods, autoscaler(500))
    for what, which in steps:
        key = f"default/web-{which}"
        sent = world.on_the_way.get(key)
        match what:
            case "recommend":
                world.vpa = autoscaler(which)
                world.scheduler.handle(ObjectSeen(world.vpa))
            case "take" if sent is not None and key in world.pods:
                world.take(key)
                world.scheduler.handle(PodSeen(world.pods[key]))
            case "refuse" if sent is not None:
                del world.on_the_way[key]
                world.scheduler.handle(Failed(sent, "the server is on fire"))
            case "lose answer" if sent is not None and key in world.pods:
                # It was taken; the answer says that it was not, and a watch tells the truth.
                world.take(key)
                world.scheduler.handle(Failed(sent, "the connection is gone"))
                world.scheduler.handle(PodSeen(world.pods[key]))
            case "lose pod" if key in world.pods and len(world.pods) > 1:
                del world.pods[key]
                world.on_the_way.pop(key, None)
                world.scheduler.handle(PodLost(key))
            case "kill":
                world.restart()
            case "rebuild":
                world.scheduler.rebuild()
        world.decide()
    _let_settle(world)


def _let_settle(world: Faulty) -> None:
    """Without further faults all pods get what is recommended, unless that was refused a short time ago."""
    for step in range(2 * PODS):
        for key in list(world.on_the_way):
            world.take(key)
            world.scheduler.handle(PodSeen(world.pods[key]))
        world.now += 7200.0 if step == 0 else 0.0
        world.decide()
    assert not world.on_the_way
    assert world.vpa.status.recommendation is not None
    recommended = world.vpa.status.recommendation.container_recommendations or []
    target = (recommended[0].target or {})["cpu"]
    for pod in world.pods.values():
        requested = [one.resources.requests for one in pod.spec.containers if one.resources is not None]
        assert [str((amounts or {})["cpu"]) for amounts in requested] == [str(target)] * 2
