"""What is only preferred never keeps a gang waiting: who has a place without it has one with it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mooring.model.api.kueue import Topology, TopologyLevel, TopologySpec
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.decisions import Bind
from mooring.model.events import GangSeen, ObjectSeen
from mooring.model.gangs.gang import Gang, Role, gang_key
from mooring.model.gangs.membership import VOLCANO_KIND
from mooring.model.topology.requests import TopologyRequest
from mooring.testing.builders import make_node, make_pod, make_scheduler

BLOCK, RACK = "example.com/block", "example.com/rack"
WISHES = [
    None,
    TopologyRequest(),
    TopologyRequest(preferred=RACK),
    TopologyRequest(preferred=BLOCK, topology="dc"),
    TopologyRequest(preferred="hypernode-tier/1"),
]


@st.composite
def clusters(draw: st.DrawFn) -> list[Node]:
    nodes = []
    for index in range(draw(st.integers(1, 5))):
        labels = {key: draw(st.sampled_from("xy")) for key in (BLOCK, RACK) if draw(st.booleans())}
        nodes.append(make_node(f"n{index}", gpu=draw(st.integers(0, 4)), labels=labels))
    return nodes


def members(role: str, count: int, gpu: int) -> list[Pod]:
    annotations = {"scheduling.volcano.sh/group-name": "train", "volcano.sh/task-spec": role}
    return [make_pod(f"{role}-{index}", gpu=gpu, annotations=annotations) for index in range(count)]


def placed(gang: Gang, nodes: list[Node], pods: list[Pod], *, is_described: bool) -> int:
    scheduler = make_scheduler(nodes=nodes, pods=pods)
    if is_described:
        levels = [TopologyLevel(BLOCK), TopologyLevel(RACK)]
        scheduler.handle(ObjectSeen(Topology(metadata=ObjectMeta(name="dc"), spec=TopologySpec(levels))))
    scheduler.handle(GangSeen(gang))
    return sum(isinstance(decision, Bind) for decision in scheduler.cycle(1.0))


@given(clusters(), st.data())
def test_a_preference_never_keeps_a_gang_waiting(nodes: list[Node], data: st.DataObject) -> None:
    counts = {"ps": data.draw(st.integers(0, 2)), "worker": data.draw(st.integers(1, 5))}
    sizes = {"ps": data.draw(st.integers(1, 3)), "worker": 1}
    pods = [pod for role, count in counts.items() for pod in members(role, count, sizes[role])]
    roles = tuple(Role(role, count, data.draw(st.sampled_from(WISHES))) for role, count in counts.items())
    wishing = Gang(
        gang_key(VOLCANO_KIND, "default", "train"),
        "default/train",
        len(pods),
        roles=roles,
        topology_request=data.draw(st.sampled_from(WISHES)),
    )
    plain = replace(wishing, topology_request=None, roles=tuple(Role(role, count) for role, count in counts.items()))
    is_described = data.draw(st.booleans())

    with_wish = placed(wishing, nodes, pods, is_described=is_described)

    assert with_wish == placed(plain, nodes, pods, is_described=is_described)
