"""Whatever the cluster, rebalancing leaves every pod on a node, moves none twice, and never makes matters worse."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from rebalancing_world import evictions, let_run, make_world, places, policy_of, replica

from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.testing.builders import make_node, make_taint

LOW = {"thresholds": {"cpu": 40}, "targetThresholds": {"cpu": 60}}
POLICY = policy_of({"RemovePodsViolatingNodeTaints": {}, "LowNodeUtilization": LOW})


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    nodes, pods = [], []
    for row in range(draw(st.integers(2, 4))):
        cpu = draw(st.integers(4, 10))
        taints = [make_taint("old")] if draw(st.booleans()) and row else []
        nodes.append(make_node(f"node-{row}", cpu=cpu, taints=taints))
        left = cpu
        for number, size in enumerate(draw(st.lists(st.integers(1, 3), max_size=6))):
            if size <= left:
                left -= size
                of = draw(st.sampled_from(["web", "api", "db"]))
                pods.append(replica(f"p-{row}-{number}", f"node-{row}", of=f"{of}-{size}", cpu=size))
    return nodes, pods


def excess(nodes: list[Node], used: Counter[str]) -> float:
    """Percentage points above the target, over all nodes."""
    sizes = {node.metadata.name: int((node.status.allocatable or {})["cpu"]) for node in nodes}
    return sum(max(0.0, 100.0 * used[name] / size - 60.0) for name, size in sizes.items())


def used_on(pods: list[Pod], node_of: dict[str, str]) -> Counter[str]:
    used: Counter[str] = Counter()
    for pod in pods:
        resources = pod.spec.containers[0].resources
        assert resources is not None and resources.requests is not None
        used[node_of[pod.key]] += int(resources.requests["cpu"])
    return used


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_everything_has_its_place_and_nothing_is_worse(drawn: tuple[list[Node], list[Pod]]) -> None:
    nodes, pods = drawn
    before: dict[str, str] = {pod.key: pod.spec.node_name for pod in pods}
    world = make_world(nodes, pods, POLICY, quiet_seconds=1e9)

    moved = evictions(let_run(world))

    after = places(world)
    assert sorted(after) == sorted(before)
    used = used_on(pods, after)
    assert all(used[node.metadata.name] <= int((node.status.allocatable or {})["cpu"]) for node in nodes)
    assert max(Counter(pod for pod, _, _ in moved).values(), default=0) <= 1
    assert all(source != target and after[pod] == target for pod, source, target in moved)
    tainted = {node.metadata.name for node in nodes if node.spec.taints}
    assert not tainted & {target for _, _, target in moved}
    if not tainted:
        assert excess(nodes, used) <= excess(nodes, used_on(pods, before)) + 1e-9
