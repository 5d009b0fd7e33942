"""Pods go where their kubelet will admit them, and every setting that says so counts."""

import json
from pathlib import Path
from typing import Any

import pytest

from mooring.cli.main import run
from mooring.engine.cycle import Scheduler
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.node_resource_topology import Attribute, NodeResourceTopology, Zone, ZoneResource
from mooring.model.decisions import Bind, Wait
from mooring.model.events import ObjectLost, ObjectSeen
from mooring.model.keys import PodKey
from mooring.model.numa.nodes import ALLOCATION, KUBELET, MACHINE
from mooring.testing.builders import make_node, make_pod, make_scheduler

EXAMPLE = Path(__file__).parents[2] / "examples" / "devices" / "single-numa-node.yaml"
TWO_SOCKETS = {"regular": {"sockets": 2, "coresPerNuma": 4, "threadsPerCore": 2, "memoryPerNuma": "16Gi"}}
STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}


def node(name: str = "node", kubelet: dict[str, Any] | None = None, machine: dict[str, Any] = TWO_SOCKETS) -> Any:
    annotations = {MACHINE: json.dumps(machine), KUBELET: json.dumps(STATIC | (kubelet or {}))}
    return make_node(name, cpu=15, memory="32Gi", annotations=annotations)


def pod(name: str, cpu: str, memory: str = "1Gi", **given: Any) -> Any:
    return make_pod(
        name, spec={"containers": [{"name": "main", "resources": {"limits": {"cpu": cpu, "memory": memory}}}]}, **given
    )


def placed(scheduler: Scheduler) -> dict[str, str]:
    return {decision.pod: decision.node for decision in scheduler.cycle(0.0) if isinstance(decision, Bind)}


def test_the_example_goes_where_one_numa_node_has_room(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", "-f", str(EXAMPLE), "-o", "json"]) == 0
    result = json.loads(capsys.readouterr().out)

    assert [(found["pod"], found["node"]) for found in result["placements"]] == [("aligned", "whole")]


def test_without_the_plugin_the_example_goes_where_the_kubelet_refuses_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {disabled: [{name: TopologyManager}]}}}]\n"
    )

    assert run(["schedule", "-f", str(EXAMPLE), "--config", str(config), "-o", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [(found["pod"], found["node"]) for found in result["placements"]] == [("aligned", "split")]


@pytest.mark.parametrize(
    ("policy", "goes"), [("none", True), ("best-effort", True), ("restricted", False), ("single-numa-node", False)]
)
def test_each_topology_policy_decides_about_a_pod_that_no_numa_node_has_room_for(policy: str, goes: bool) -> None:
    taken = [pod("one", "5", node="node"), pod("two", "5", node="node")]
    scheduler = make_scheduler(nodes=[node(kubelet={"topologyManagerPolicy": policy})], pods=[*taken, pod("new", "5")])

    assert bool(placed(scheduler)) is goes


def test_a_pod_that_waits_says_what_its_kubelet_would_say() -> None:
    scheduler = make_scheduler(
        nodes=[node(kubelet={"topologyManagerPolicy": "single-numa-node"})], pods=[pod("large", "9")]
    )

    waits = [decision.message for decision in scheduler.cycle(0.0) if isinstance(decision, Wait)]
    assert [message.partition(" preemption:")[0] for message in waits] == [
        "0/1 nodes are available: 1 node(s) whose kubelet would refuse the pod: TopologyAffinityError, "
        "resources cannot be aligned on NUMA nodes."
    ]


def test_whole_cores_only_refuses_an_odd_number_of_cpus() -> None:
    whole = {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
    scheduler = make_scheduler(nodes=[node(kubelet=whole)], pods=[pod("odd", "3"), pod("even", "4")])

    assert placed(scheduler) == {"default/even": "node"}


def test_of_two_nodes_the_one_that_aligns_the_pod_is_taken() -> None:
    spread = [pod("one", "5", node="a"), pod("two", "5", node="a")]
    policy = {"topologyManagerPolicy": "best-effort"}
    nodes = [node("a", policy), node("b", policy)]
    full = [pod("three", "8", node="b"), pod("four", "2", node="b")]
    scheduler = make_scheduler(nodes=nodes, pods=[*spread, *full, pod("new", "4")])

    assert placed(scheduler) == {"default/new": "b"}


def topology(policy: str, available: str = "4") -> NodeResourceTopology:
    cpu = [ZoneResource(name="cpu", capacity="4", allocatable="4", available=available)]
    zones = [Zone(name=f"node-{n}", type="Node", resources=cpu) for n in range(2)]
    attributes = [Attribute(name="topologyManagerPolicy", value=policy)]
    return NodeResourceTopology(metadata=ObjectMeta(name="node"), zones=zones, attributes=attributes)


def test_a_node_resource_topology_serves_where_a_node_has_no_annotations() -> None:
    scheduler = make_scheduler(
        nodes=[make_node("node", cpu=8)], pods=[pod("large", "6")], related=[topology("single-numa-node")]
    )
    assert placed(scheduler) == {}

    scheduler.handle(ObjectLost("NodeResourceTopology", "node"))
    assert placed(scheduler) == {"default/large": "node"}


def test_pods_that_came_before_the_topology_was_known_count() -> None:
    scheduler = make_scheduler(
        nodes=[make_node("node", cpu=8)], pods=[pod("one", "3", node="node"), pod("two", "3", node="node")]
    )
    scheduler.cluster.observe(ObjectSeen(topology("single-numa-node")))

    held = [scheduler.cluster.numa.share_of(PodKey(key)) for key in scheduler.cluster.pods.records]
    assert [found.containers[0].affinity for found in held if found] == [0b01, 0b10]


@pytest.mark.parametrize(
    ("machine", "kubelet", "expected"),
    [
        ("{", "{}", "mooring.dev/machine]: expected a JSON document"),
        ("{}", "{}", "mooring.dev/machine]: expected `numa` or `regular`, found neither"),
        (
            '{"regular": {"coresPerNuma": 2}}',
            '{"topologyManagerPolicy": "strict"}',
            "topologyManagerPolicy none or",
        ),
        ('{"regular": {"coresPerNuma": "two"}}', "{}", "regular.coresPerNuma"),
        (
            '{"regular": {"coresPerNuma": 2}}',
            '{"cpuManagerPolicyOptions": {"full-cores": "true"}}',
            "expected cpuManagerPolicyOptions of full-pcpus-only",
        ),
    ],
)
def test_annotations_that_make_no_machine_get_one_line(
    machine: str, kubelet: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "node.json"
    annotations = {MACHINE: machine, KUBELET: kubelet}
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "annotations": annotations}})
    )

    assert run(["schedule", "-f", str(path)]) == 2
    said = capsys.readouterr().err
    assert expected in said and said.count("\n") == 1 and "metadata.annotations[" in said


def test_the_decision_carries_which_cpus_each_container_gets() -> None:
    scheduler = make_scheduler(nodes=[node(kubelet={"topologyManagerPolicy": "restricted"})], pods=[pod("one", "2")])

    (bind,) = scheduler.cycle(0.0)

    assert isinstance(bind, Bind)
    assert {key: json.loads(text) for key, text in bind.annotations} == {
        ALLOCATION: {"containers": {"main": {"numaNodes": [0], "cpus": "1,9", "memory": [], "devices": {}}}}
    }


def test_explain_says_what_the_kubelet_will_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "aligned", "-f", str(EXAMPLE)]) == 0
    assert "the kubelet gives container main: NUMA 0; CPUs 2-7" in capsys.readouterr().out
