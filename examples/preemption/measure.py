"""How long one preemption takes: `python examples/preemption/measure.py [--nodes 5000]`.

Ten running pods a node, of four priorities, and no room left. Between two decisions a pod leaves one node and another
comes to a second, so that what is kept between decisions has something to follow.
"""

import argparse
import time
from statistics import median

from mooring.actions.preempt.search import Found, Search, refusals
from mooring.assembly import assemble
from mooring.model.pods import Pod
from mooring.testing.builders import make_node, make_pod, make_spread

PODS_A_NODE = 10
DECISIONS = 30
PREEMPTORS = {
    "resources, high priority": make_pod("a", cpu=8, memory="16Gi", gpu=4, priority=5000),
    "resources, low priority": make_pod("b", cpu=6, memory="20Gi", gpu=1, priority=50),
    "resources and a host port": make_pod("c", cpu=8, host_ports=[80], priority=5000),
    "resources and a spread": make_pod(
        "d", cpu=8, priority=5000, labels={"app": "app-1"}, spread=[make_spread(labels={"app": "app-1"})]
    ),
}


def make_running(index: int, nodes: int) -> Pod:
    draw = index * 7919 % 1009  # numbers that look drawn, the same on every run
    pod = make_pod(
        f"pod-{index}",
        cpu=("1200m", "1500m", "1800m")[draw % 3],
        memory="4Gi",
        gpu=draw % 2,
        node=f"node-{index % nodes}",
        priority=(0, 10, 100, 1000)[draw % 4],
        labels={"app": f"app-{draw % 50}"},
    )
    pod.status.start_time = f"2026-01-{1 + draw % 28:02d}T{draw % 24:02d}:00:00Z"
    return pod


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    count = parser.parse_args().nodes
    assembly = assemble()
    cluster = assembly.new_cluster()
    nodes = [make_node(f"node-{i}", cpu=16, memory="64Gi", gpu=8, zone=f"zone-{i % 3}") for i in range(count)]
    cluster.observe_many(nodes, [make_running(index, count) for index in range(PODS_A_NODE * count)])
    search = Search(cluster)
    print(f"{count:,} nodes, {PODS_A_NODE * count:,} pods; milliseconds a decision, from the refusal to the victims")
    for name, pod in PREEMPTORS.items():
        shape = cluster.shape_for(pod)
        took = []
        for number in range(DECISIONS):
            started = time.perf_counter()
            found = search.find(refusals(assembly.default_profile, cluster, shape), pod)
            took.append(1000 * (time.perf_counter() - started))
            cluster.release(f"default/pod-{number}")
            cluster.assume(f"default/pod-{number}", number % count)
        assert isinstance(found, Found), found
        ordered = sorted(took[1:])
        print(
            f"{name:28} first {took[0]:6.1f}   median {median(ordered):5.1f}   slowest {ordered[-1]:5.1f}   "
            f"{len(found.victims)} victims on {found.node}"
        )


if __name__ == "__main__":
    main()
