"""Measure capacity as Karpenter decides it: what to buy for pods that wait, and which nodes could go."""

import time
from collections.abc import Callable

from mooring.actions.capacity.karpenter.consolidation import Command, Consolidation
from mooring.actions.capacity.karpenter.provisioning import provision
from mooring.actions.capacity.karpenter.situation import Situation, make_machines
from mooring.actions.capacity.karpenter.snapshot import Snapshot
from mooring.config.catalogue import parse_catalogue
from mooring.errors import InvariantBroken
from mooring.model.api.karpenter import NodeClaim, NodePool
from mooring.model.capacity.instance_types import InstanceType
from mooring.model.loading.manifests import Manifests
from mooring.testing.tally import Measurement, peak_rss_mib
from mooring.testing.workloads import Workload

LOOPS = 3


def measure_capacity(workload: Workload, manifests: Manifests, nodes: int) -> Measurement:
    """Time loops that decide from nothing what to buy, or what could go."""
    pods = [pod for pod in manifests.pods if not pod.is_terminal]
    situation = Situation(
        now=1_800_000_000.0,
        pools=tuple(manifests.of(NodePool)),
        instance_types=make_types(workload.types),
        machines=make_machines(manifests.nodes, manifests.of(NodeClaim), pods),
        pending=tuple(pod for pod in pods if not pod.spec.node_name),
        daemon_sets=tuple(manifests.daemon_sets),
        budgets=tuple(manifests.pod_disruption_budgets),
        namespaces=tuple(manifests.namespaces),
    )
    decide = _buy if workload.decision == "provision" else _release
    each, cpu = [], []
    placed = waiting = added = gone = 0
    for _ in range(LOOPS):
        started, began = time.perf_counter(), time.process_time()
        placed, waiting, added, gone = decide(situation)
        each.append(time.perf_counter() - started)
        cpu.append(time.process_time() - began)
    if not (added if workload.decision == "provision" else gone):
        raise InvariantBroken(f"workload {workload.name}: nothing was decided")
    each.sort()
    return Measurement(
        workload=workload.name,
        nodes=nodes,
        pods=len(pods),
        pods_per_second=len(pods) * LOOPS / sum(each),
        p50_us=each[LOOPS // 2] * 1e6,
        p99_us=each[-1] * 1e6,
        peak_rss_mib=peak_rss_mib(),
        placed=placed,
        waiting=waiting,
        loops_per_second=LOOPS / sum(each),
        loop_cpu_seconds=min(cpu),
        nodes_added=added,
        nodes_unneeded=gone,
    )


Decided = tuple[int, int, int, int]
"""Pods with a place and without, nodes to buy, nodes that could go."""


def _buy(situation: Situation) -> Decided:
    placed = provision(situation).placed
    new = sum(len(node.pods) for node in placed.new_nodes)
    return new + sum(map(len, placed.existing.values())), len(placed.errors), len(placed.new_nodes), 0


def _release(situation: Situation) -> Decided:
    """All methods, each as if it were asked first."""
    methods = Consolidation(Snapshot(situation))
    find: tuple[Callable[[], Command | None], ...] = (methods.emptiness, methods.multi, methods.single)
    commands = [command for method in find if (command := method()) is not None]
    going = {candidate.machine.name for command in commands for candidate in command.candidates}
    return 0, 0, 0, len(going)


def make_types(count: int) -> tuple[InstanceType, ...]:
    """So many instance types: CPUs and their ratio to memory vary, each in three zones, spot and on-demand."""
    document = {
        "apiVersion": "mooring.dev/v1alpha1",
        "kind": "InstanceTypeCatalogue",
        "instanceTypes": [_type(number) for number in range(count)],
    }
    return parse_catalogue(document, "types")


def _type(number: int) -> dict[str, object]:
    cpus, ratio = 2 + 2 * (number // 5 % 48), (2, 4, 8, 3, 6)[number % 5]
    price = cpus * (0.03 + 0.004 * ratio) * (1 + number // 240 / 10)
    return {
        "name": f"type-{number}",
        "capacity": {"cpu": cpus, "memory": f"{cpus * ratio}Gi", "pods": 110},
        "overhead": {"cpu": "100m", "memory": "512Mi"},
        "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"},
        "offerings": [
            {"zone": f"zone-{zone}", "capacityType": kind, "price": round(price * share, 6)}
            for zone in range(3)
            for kind, share in (("on-demand", 1.0), ("spot", 0.4))
        ],
    }
