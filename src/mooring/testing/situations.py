"""The clusters that plugin checks ask about: made from a seed, the same each time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from mooring.engine.plugin import Plugin, keys_read_by
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.events import NodeLoadSeen, NodeSeen, ObjectSeen, PodSeen, Related
from mooring.model.load.reports import (
    AVERAGE,
    DEVIATION,
    LATEST,
    Aggregate,
    CardLoad,
    GpuReport,
    Level,
    LoadReport,
    NodeReport,
    PodUsage,
)
from mooring.state.cluster import Cluster
from mooring.state.read_keys import ALL, ReadKeys
from mooring.state.shapes import Shape
from mooring.testing.random_clusters import Choose, one_in, one_of, random_world, seeded

LOAD_TIME = 1_000_000.0
"""When it is, as far as the age of reports goes."""


@dataclass
class Objects:
    """What a cluster is made of."""

    nodes: Sequence[Node] = ()
    pods: Sequence[Pod] = ()
    """Bound if they name a node; those that do not are the pods that plugins are asked about."""
    related: Sequence[Related] = ()
    loads: Sequence[LoadReport] = ()
    """What was measured; it is LOAD_TIME now."""


MakeObjects = Callable[[Choose], Objects]
"""Makes objects from choices; whoever writes a plugin can give their own, with what the plugin reads in them."""


def random_objects(choose: Choose) -> Objects:
    """Some nodes, pods on them whatever any filter would have said, and pods that wait."""
    world = random_world(choose, nodes=3 + choose(8), templates=3 + choose(4))
    names = [*world.nodes]
    pods = []
    for index in range(6 + choose(16)):
        name = one_of(choose, names) if not one_in(choose, 3) else ""
        terminating = bool(name) and one_in(choose, 8)
        pods.append(one_of(choose, world.templates).pod(f"pod-{index}", node=name, terminating=terminating))
    pods += [template.pod(f"asked-{index}") for index, template in enumerate(world.templates)]
    loads = [report for name in names for report in random_loads(choose, name, pods)]
    return Objects(list(world.nodes.values()), pods, world.related, loads)


def random_loads(
    choose: Choose, node: str, pods: Sequence[Pod], now: float = LOAD_TIME, ages: Sequence[int] = (0, 30, 100, 500)
) -> Iterator[LoadReport]:
    """What may be reported of a node: nothing, percentages, amounts, its GPUs; some of it long ago."""
    at = now - one_of(choose, ages)
    levels = tuple(
        Level(resource, one_of(choose, ("", AVERAGE, DEVIATION, LATEST)), float(choose(110)))
        for resource in ("cpu", "memory", "cpu")
        if choose(3)
    )
    usage = {"cpu": choose(8) * 500, "memory": choose(8) << 30}
    own = {pod.key: PodUsage({"cpu": choose(900), "memory": choose(4) << 28}) for pod in pods if choose(2)}
    aggregates = (Aggregate(300.0, {"p95": {"cpu": choose(8) * 700, "memory": choose(8) << 30}}),)
    if choose(4):
        is_in_percent = one_in(choose, 2)
        yield (
            NodeReport(node, at, levels=levels)
            if is_in_percent
            else NodeReport(node, at, usage=usage, aggregates=aggregates, pods=own)
        )
    if choose(3):
        cards = {str(card): CardLoad(float(choose(101)), float(choose(101)), float(choose(100))) for card in range(2)}
        yield GpuReport(node, at, cards)


@dataclass(frozen=True)
class Situation:
    """A seed and a way to make objects from it."""

    seed: int
    make: MakeObjects = field(default=random_objects, repr=False)

    def objects(self) -> Objects:
        return self.make(seeded(self.seed))

    def choose(self) -> Choose:
        """Choices for what happens next, apart from those that made the objects."""
        return seeded(self.seed + 1_000_003)

    def cluster(self, plugin: Plugin, *, everything: bool = False, without: str = "") -> Cluster:
        """A cluster with the objects, that keeps of each pod what the plugin reads, or everything."""
        objects = self.objects()
        cluster = Cluster(read_keys=ReadKeys(ALL, ALL, True) if everything else keys_read_by([plugin]))
        cluster.observe(*map(ObjectSeen, objects.related))
        if without != "nodes":
            cluster.observe(*map(NodeSeen, objects.nodes))
        if without != "pods":
            cluster.observe(*map(PodSeen, objects.pods))
        cluster.observe(*map(NodeLoadSeen, objects.loads))
        cluster.pass_time(LOAD_TIME)
        return cluster

    def about(self, shape: Shape) -> str:
        """Which pod and which cluster an answer was about, for a message that tells the story."""
        pod = shape.sample
        spec = msgspec.json.encode(pod.spec).decode()
        return f"\n  the pod: {pod.key}, labels {pod.metadata.labels}, {spec}\n  the cluster: seed {self.seed}"
