"""Planning nodes: what follows from the rules, beyond what is recorded."""

from typing import Any

import msgspec

from mooring.actions.capacity.karpenter.consolidation import Consolidation
from mooring.actions.capacity.karpenter.provisioning import Provisioned, provision
from mooring.actions.capacity.karpenter.situation import Situation, make_machines
from mooring.actions.capacity.karpenter.snapshot import Snapshot
from mooring.model.api.karpenter import NodeClaim, NodePool
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.capacity.instance_types import InstanceType, Offering
from mooring.model.capacity.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE
from mooring.model.capacity.requirements import Requirements, is_in

NOW = 1_800_000_000.0
POOL = msgspec.convert({"metadata": {"name": "p"}, "spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}, NodePool)


def make_type(name: str, cpu: int, price: float, zones: tuple[str, ...] = ("a", "b")) -> InstanceType:
    labels = Requirements({INSTANCE_TYPE: is_in(name), ZONE: is_in(*zones), CAPACITY_TYPE: is_in("on-demand")})
    offerings = tuple(Offering(zone, "on-demand", price) for zone in zones)
    return InstanceType(name, labels, {"cpu": cpu * 1000, "memory": cpu << 32, "pods": 110}, offerings=offerings)


TYPES = (make_type("small", 4, 1.0), make_type("large", 16, 4.0))


def make_pod(name: str, cpu: str = "1", node: str = "", **spec: Any) -> Pod:
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}],
            **spec,
        },
        "status": {"phase": "Running" if node else "Pending"},
    }
    return msgspec.convert(document, Pod)


def make_node(name: str, instance_type: str, cpu: int) -> tuple[Node, NodeClaim]:
    labels = {
        NODE_POOL: "p",
        INSTANCE_TYPE: instance_type,
        ZONE: "a",
        CAPACITY_TYPE: "on-demand",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    }
    has = {"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "pods": "110"}
    node = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": name},
        "status": {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    initialized = {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    claim = {"metadata": {"name": name, "labels": labels}, "status": {"providerID": name, "conditions": [initialized]}}
    return msgspec.convert(node, Node), msgspec.convert(claim, NodeClaim)


def plan(*pods: Pod, pool: NodePool = POOL) -> Provisioned:
    return provision(Situation(NOW, (pool,), TYPES, pending=pods))


def test_a_node_is_filled_up_to_the_largest_type() -> None:
    found = plan(*(make_pod(f"p{number:02}") for number in range(20))).placed

    assert [(node.instance_types, len(node.pods)) for node in found.new_nodes] == [
        (["small", "large"], 4),
        (["large"], 16),
    ]


def test_no_planned_node_holds_more_than_each_of_its_types() -> None:
    found = plan(*(make_pod(f"p{number:03}", f"{100 + 37 * number}m") for number in range(60))).placed

    assert not found.errors
    assert sum(len(node.pods) for node in found.new_nodes) == 60
    for node in found.new_nodes:
        for row in node.options.tolist():
            allocatable = TYPES[row].allocatable
            assert all(amount <= allocatable[name] for name, amount in node.requests.items())


def test_equal_pods_with_anti_affinity_get_a_node_each() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    found = plan(*(make_pod(f"p{number:02}", affinity=affinity) for number in range(30))).placed

    assert [len(node.pods) for node in found.new_nodes] == [1] * 30


def test_a_limit_stops_buying_and_is_named() -> None:
    limited = msgspec.convert({"metadata": {"name": "p"}, "spec": {"limits": {"cpu": "16"}}}, NodePool)

    found = plan(make_pod("a", "10"), make_pod("b", "10"), pool=limited).placed

    assert [pod.metadata.name for node in found.new_nodes for pod in node.pods] == ["a"]
    assert [(pod.metadata.name, reasons) for pod, reasons in found.errors.values()] == [("b", frozenset(("limits",)))]


def test_deciding_twice_gives_the_same() -> None:
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    constraint = {**spread, "labelSelector": {"matchLabels": {"app": "web"}}}
    pods = [make_pod(f"p{number:02}", topologySpreadConstraints=[constraint]) for number in range(11)]

    first, second = (plan(*pods).placed for _ in range(2))

    def told(found: Any) -> list[tuple[Requirements, list[str]]]:
        return [(node.requirements, [pod.key for pod in node.pods]) for node in found.new_nodes]

    assert told(first) == told(second)
    zones = {value: len(node.pods) for node in first.new_nodes for value in node.requirements[ZONE].values}
    assert sorted(zones.values()) == [5, 6]


def test_trials_of_consolidation_do_not_change_one_another() -> None:
    pairs = [make_node(f"n{number}", "large", 16) for number in range(3)]
    pods = [make_pod(f"p{number}", "3", f"n{number}") for number in range(3)]
    machines = make_machines([node for node, _ in pairs], [claim for _, claim in pairs], pods)
    methods = Consolidation(Snapshot(Situation(NOW, (POOL,), TYPES, machines=machines)))

    first, single, again = methods.multi(), methods.single(), methods.multi()

    assert first is not None and again is not None and single is not None
    names = [candidate.machine.name for candidate in first.candidates]
    assert names == [candidate.machine.name for candidate in again.candidates]
    assert (first.decision, first.savings, len(names)) == ("delete", 8.0, 2)
    assert (single.decision, single.savings) == ("delete", 4.0)
