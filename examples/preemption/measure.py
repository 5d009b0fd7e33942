"""How long one preemption takes: `python examples/preemption/measure.py [--nodes 5000]`.

Ten running pods a node, of four priorities, and no room left. Between two decisions a pod leaves one node and another
comes to a second, so that what is kept between decisions has something to follow. Then gangs, which need room for all
of their members at once.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from statistics import median

from mooring.actions.batches import Batches
from mooring.actions.preempt.gangs.search import Assignment, GangFound, find_for_gang
from mooring.actions.preempt.pods.search import Found, VictimSearch, refusals
from mooring.assembly import assemble
from mooring.engine.profile import Profile
from mooring.engine.queue.queue import Entry
from mooring.model.api.pods import Pod
from mooring.state.cluster import Cluster
from mooring.testing.builders import make_node, make_pod, make_pods, make_spread

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

GANGS = {
    "256 members of 6 GPUs": make_pods(256, prefix="large", cpu=12, memory="32Gi", gpu=6, priority=5000),
    "256 members of 1 GPU": make_pods(256, prefix="small", cpu=2, memory="4Gi", gpu=1, priority=5000),
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


def times_of(decide: Callable[[], Found | GangFound], cluster: Cluster, decisions: int) -> Iterator[tuple[float, int]]:
    """The milliseconds that each decision took, and how many victims it found."""
    for number in range(decisions):
        started = time.perf_counter()
        found = decide()
        yield 1000 * (time.perf_counter() - started), len(found.victims)
        cluster.release(f"default/pod-{number}")
        cluster.assume(f"default/pod-{number}", number)


def for_pod(search: VictimSearch, profile: Profile, pod: Pod) -> Callable[[], Found | GangFound]:
    shape = search.cluster.shape_for(pod)

    def decide() -> Found:
        found = search.find(refusals(profile, search.cluster, shape), pod)
        assert isinstance(found, Found), found
        return found

    return decide


def for_gang(search: VictimSearch, profile: Profile, pods: list[Pod]) -> Callable[[], Found | GangFound]:
    batches = Batches({})
    records = [search.cluster.pods.records[pod.key] for pod in pods]
    entries = [Entry(None, number, record, profile) for number, record in enumerate(records)]

    def place(cluster: Cluster) -> Assignment | None:
        checkpoint = cluster.checkpoint()
        if len(batches.place(cluster, entries).placed) < len(entries):
            cluster.rollback(checkpoint)
            return None
        cluster.commit(checkpoint)
        return [(record, record.row) for record in records]

    def decide() -> GangFound:
        found = find_for_gang(search, [(record, profile) for record in records], 5000, place)
        assert isinstance(found, GangFound), found
        return found

    return decide


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    count = parser.parse_args().nodes
    assembly = assemble()
    cluster = assembly.new_cluster()
    nodes = [make_node(f"node-{i}", cpu=16, memory="64Gi", gpu=8, zone=f"zone-{i % 3}") for i in range(count)]
    waiting = [pod for pods in GANGS.values() for pod in pods]
    cluster.observe_many(nodes, [*(make_running(index, count) for index in range(PODS_A_NODE * count)), *waiting])
    search, profile = VictimSearch(cluster), assembly.default_profile
    print(f"{count:,} nodes, {PODS_A_NODE * count:,} pods; milliseconds a decision, from the refusal to the victims")
    deciding = {name: for_pod(search, profile, pod) for name, pod in PREEMPTORS.items()}
    deciding |= {f"a gang: {name}": for_gang(search, profile, pods) for name, pods in GANGS.items()}
    for name, decide in deciding.items():
        measured = list(times_of(decide, cluster, min(DECISIONS, count)))
        first, *others = (milliseconds for milliseconds, _ in measured)
        print(
            f"{name:30} first {first:6.1f}   median {median(others):5.1f}   slowest {max(others):5.1f}   "
            f"{measured[-1][1]} victims"
        )


if __name__ == "__main__":
    main()
