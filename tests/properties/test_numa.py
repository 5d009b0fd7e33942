"""What holds on NUMA nodes: nothing is given out twice, a trial leaves no trace, kept answers are right."""

import json
from typing import Any

from drawing import choices
from hypothesis import given
from test_rollback import release_and_restore

from mooring.engine.cycle import Scheduler
from mooring.model.decisions import Bind
from mooring.model.events import PodLost
from mooring.model.keys import PodKey
from mooring.model.numa.nodes import KUBELET, MACHINE
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND
from mooring.testing.builders import make_node, make_pod, make_scheduler
from mooring.testing.random_clusters import Choose

POLICIES = ("best-effort", "restricted", "single-numa-node")
OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {"full-pcpus-only": "true"},
    {"distribute-cpus-across-numa": "true"},
    {"strict-cpu-reservation": "true"},
)


def numa_node(name: str, choose: Choose) -> Any:
    machine: dict[str, Any] = {
        "sockets": 1 + choose(2),
        "numaPerSocket": 1 + choose(2),
        "coresPerNuma": 2 + choose(3),
        "memoryPerNuma": "8Gi",
        "devicesPerNuma": {"nvidia.com/gpu": choose(3)},
    }
    kubelet: dict[str, Any] = {
        "topologyManagerPolicy": POLICIES[choose(3)],
        "topologyManagerScope": ("container", "pod")[choose(2)],
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": OPTIONS[choose(len(OPTIONS))],
        "reservedSystemCPUs": "0",
    }
    if choose(2):
        kubelet |= {
            "memoryManagerPolicy": "Static",
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        }
    numa = machine["sockets"] * machine["numaPerSocket"]
    return make_node(
        name,
        cpu=2 * numa * machine["coresPerNuma"] - 1,
        memory=f"{8 * numa - 1}Gi",
        gpu=numa * machine["devicesPerNuma"]["nvidia.com/gpu"],
        annotations={MACHINE: json.dumps({"regular": machine}), KUBELET: json.dumps(kubelet)},
    )


def numa_pod(name: str, choose: Choose, node: str = "") -> Any:
    def limits(cpu: str) -> dict[str, Any]:
        gpu = {"nvidia.com/gpu": str(choose(3))} if choose(2) else {}
        return {"limits": {"cpu": cpu, "memory": f"{1 + choose(4)}Gi", **gpu}}

    containers = [
        {"name": f"c{n}", "resources": limits(("1", "2", "3", "4", "500m")[choose(5)])} for n in range(1 + choose(2))
    ]
    spec: dict[str, Any] = {"containers": containers}
    if choose(3) == 0:
        restart = {"restartPolicy": "Always"} if choose(2) else {}
        spec["initContainers"] = [{"name": "init", "resources": limits("2"), **restart}]
    return make_pod(name, spec=spec, node=node)


def given_out_twice(cluster: Cluster) -> list[str]:
    """CPUs and devices of a node that two pods have, or a pod and the shared pool."""
    found = []
    for row, state in cluster.numa.on_row.items():
        free = state.copy_of_free()
        cpus, devices = free.cpus, dict(free.devices)
        for record in cluster.pods.on(row):
            held = cluster.numa.share_of(record.key)
            if held is None:
                continue
            own_cpus, own_devices = 0, dict[str, int]()
            for share in held.containers:
                own_cpus |= share.cpus
                for resource, taken in share.devices.items():
                    own_devices[resource] = own_devices.get(resource, 0) | taken
            found += [f"cpus of {record.key}"] if cpus & own_cpus else []
            cpus |= own_cpus
            for resource, taken in own_devices.items():
                found += [f"{resource} of {record.key}"] if devices[resource] & taken else []
                devices[resource] |= taken
        for node in free.memory.values():
            found += [f"memory of row {row}" for left in (*node.free.values(), *node.pinned.values()) if left < 0]
    return found


def world(choose: Choose, *, cached: bool = True) -> Scheduler:
    nodes = [numa_node(f"node-{n}", choose) for n in range(1 + choose(3))]
    nodes.append(make_node("plain", cpu=4))
    bound = [numa_pod(f"bound-{n}", choose, node=f"node-{choose(len(nodes) - 1)}") for n in range(choose(4))]
    waiting = [numa_pod(f"pod-{n}", choose) for n in range(2 + choose(8))]
    return make_scheduler(nodes=nodes, pods=[*bound, *waiting], cached=cached)


@given(choose=choices())
def test_every_pod_is_placed_where_its_kubelet_admits_it_and_nothing_is_given_out_twice(choose: Choose) -> None:
    scheduler = world(choose)
    cluster = scheduler.cluster

    decisions = scheduler.cycle(0.0)

    for decision in decisions:
        if isinstance(decision, Bind) and decision.node != "plain":
            assert cluster.numa.share_of(cluster.pods.records[PodKey(decision.pod)].key) is not None
    assert given_out_twice(cluster) == []


@given(choose=choices())
def test_whoever_leaves_gives_back_all_that_it_had(choose: Choose) -> None:
    scheduler = world(choose)
    scheduler.cycle(0.0)
    cluster = scheduler.cluster

    for key in list(cluster.pods.records):
        cluster.observe(PodLost(key))

    for row, state in cluster.numa.on_row.items():
        left, full = state.copy_of_free(), state.kubelet.at_start()
        assert (row, left.cpus, left.devices) == (row, full.cpus, full.devices)
        assert {n: node.free for n, node in left.memory.items()} == {n: node.free for n, node in full.memory.items()}


@given(choose=choices())
def test_a_trial_leaves_no_trace(choose: Choose) -> None:
    cluster = world(choose).cluster
    states = dict(cluster.numa.on_row)
    shares = {key: cluster.numa.share_of(PodKey(key)) for key in cluster.pods.records}

    with cluster.what_if():
        for record in list(cluster.pods.records.values()):
            if record.row != UNBOUND:
                cluster.release(record.key)
            elif choose(2):
                cluster.assume(record.key, choose(len(cluster.nodes)))

    assert cluster.numa.on_row == states
    assert {key: cluster.numa.share_of(PodKey(key)) for key in cluster.pods.records} == shares
    release_and_restore(cluster, choose)
    assert {key: cluster.numa.share_of(PodKey(key)) for key in cluster.pods.records} == shares
    assert {row: state.copy_of_free().key() for row, state in cluster.numa.on_row.items()} == {
        row: state.copy_of_free().key() for row, state in states.items()
    }


@given(choose=choices())
def test_kept_answers_decide_as_fresh_ones_do(choose: Choose) -> None:
    asked: list[int] = []

    def recorded(most: int) -> int:
        asked.append(choose(most))
        return asked[-1]

    kept = world(recorded)
    again = iter(asked)
    fresh = world(lambda most: next(again), cached=False)

    assert kept.cycle(0.0) == fresh.cycle(0.0)
