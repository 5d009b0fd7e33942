"""What `explain` proposes is true: make the one change, ask again, and exactly the nodes it named are open."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mooring.assembly import assemble
from mooring.config.scheduler import parse_config
from mooring.engine.explain import Explanation, contest, explain
from mooring.engine.verdict import Remedy
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod, Toleration
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import to_column_units
from mooring.testing.builders import (
    HOSTNAME,
    ZONE,
    make_affinity,
    make_cluster,
    make_config,
    make_node,
    make_pod,
    make_pod_term,
    make_profile,
    make_spread,
    make_taint,
    make_toleration,
)

PROFILE = assemble().default_profile


@dataclass(frozen=True)
class Scene:
    """Nodes, the pods that run there, and the pod that asks."""

    nodes: Sequence[Node]
    running: Sequence[Pod]
    pod: Pod

    def explain(self) -> Explanation:
        cluster = make_cluster(nodes=self.nodes, pods=self.running, plugins=PROFILE.plugins)
        return explain(PROFILE, cluster, cluster.shape_for(self.pod))

    def open_nodes(self) -> set[str]:
        evaluation = self.explain().evaluation
        return {evaluation.cluster.nodes.name(row) for row in evaluation.feasible.tolist()}


def carry_out(scene: Scene, remedy: Remedy) -> Scene:
    """Make the one change that a remedy speaks of, and no other; on all nodes, unless it speaks of single ones."""
    change = remedy.change
    if found := re.fullmatch(r"tolerate the taint ([^=:]+)(?:=([^:]*))?:(\w+)", change):
        toleration = Toleration(key=found[1], operator="Equal", value=found[2] or "", effect=found[3])
        spec = msgspec.structs.replace(scene.pod.spec, tolerations=[*(scene.pod.spec.tolerations or ()), toleration])
        return replace(scene, pod=msgspec.structs.replace(scene.pod, spec=spec))
    if found := re.fullmatch(r"(free|give the node) (\S+) more (\S+)", change):
        amount = to_column_units(found[3], parse_quantity(found[2]))
        return replace(scene, nodes=[_larger(node, found[3], amount) for node in scene.nodes])
    if found := re.fullmatch(r"label the node so that (\S+) In \[(\S+)\] holds", change):
        return _on_named(scene, remedy, partial(_labelled, key=found[1], value=found[2]))
    if change == "uncordon the node":
        return _on_named(scene, remedy, _uncordoned)
    if found := re.fullmatch(r"free the host port (\d+)/TCP", change):
        port = int(found[1])
        return replace(scene, running=[_without_ports(pod) if port in _ports(pod) else pod for pod in scene.running])
    return _among_pods(scene, remedy)


def _among_pods(scene: Scene, remedy: Remedy) -> Scene:
    """Changes that concern other pods."""
    change = remedy.change
    if found := re.fullmatch(r"stop or move (\d+) of the pods with (\w+)=(\w+) in the node's (\S+)", change):
        zones = {_domain(node, found[4]) for node in scene.nodes if node.name in remedy.nodes}
        running, stopped = [], dict.fromkeys(zones, int(found[1]))
        there = {node.name: _domain(node, found[4]) for node in scene.nodes}
        for pod in scene.running:
            zone = there[pod.spec.node_name]
            if (pod.metadata.labels or {}).get(found[2]) == found[3] and stopped.get(zone, 0):
                stopped[zone] -= 1
            else:
                running.append(pod)
        return replace(scene, running=running)
    if found := re.fullmatch(r"stop or move (.+)", change):
        gone = found[1].split(", ")
        assert set(gone) <= {pod.key for pod in scene.running}
        return replace(scene, running=[pod for pod in scene.running if pod.key not in gone])
    if found := re.fullmatch(r"run (?:any pod|a pod with (\S+)=(\S+)) in the node's (\S+)", change):
        labels = {found[1]: found[2]} if found[1] else {}
        new = [make_pod(f"new-{name}", node=name, labels=labels) for name in remedy.nodes]
        return replace(scene, running=[*scene.running, *new])
    if found := re.fullmatch(r"raise maxSkew of (\S+) to (\d+)", change):
        spread = [
            msgspec.structs.replace(given, max_skew=int(found[2])) if given.topology_key == found[1] else given
            for given in scene.pod.spec.topology_spread_constraints or ()
        ]
        spec = msgspec.structs.replace(scene.pod.spec, topology_spread_constraints=spread)
        return replace(scene, pod=msgspec.structs.replace(scene.pod, spec=spec))
    raise AssertionError(f"nobody has said how to carry out {change!r}")


def _domain(node: Node, key: str) -> str:
    return (node.metadata.labels or {}).get(key, "")


def _larger(node: Node, resource: str, amount: int) -> Node:
    """A node with more of a resource: to the fit of one pod the same as if so much were freed."""
    there = dict(node.status.allocatable or {})
    unit = "m" if resource == "cpu" else ""
    now = to_column_units(resource, parse_quantity(there.get(resource, 0)))
    there[resource] = f"{now + amount}{unit}"
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable=there))


def _labelled(node: Node, key: str, value: str) -> Node:
    labels = {**(node.metadata.labels or {}), key: value}
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels))


def _uncordoned(node: Node) -> Node:
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=False))


def _on_named(scene: Scene, remedy: Remedy, change: Callable[[Node], Node]) -> Scene:
    return replace(scene, nodes=[change(node) if node.name in remedy.nodes else node for node in scene.nodes])


def _ports(pod: Pod) -> set[int]:
    return {port.host_port for container in pod.spec.containers for port in container.ports or ()}


def _without_ports(pod: Pod) -> Pod:
    containers = [msgspec.structs.replace(container, ports=None) for container in pod.spec.containers]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=containers))


def assert_holds(scene: Scene, remedy: Remedy) -> None:
    before = scene.open_nodes()
    after = carry_out(scene, remedy).open_nodes()
    assert after == before | set(remedy.nodes), f"{remedy.change}: opened {sorted(after - before)}"
    assert not before & set(remedy.nodes)
    assert remedy.nodes


# Single cases, in words.


def test_a_missing_toleration_is_named_with_the_nodes_that_it_opens() -> None:
    gpu = make_taint("nvidia.com/gpu", "present")
    nodes = [make_node(f"gpu-{i}", gpu=8, taints=[gpu]) for i in range(2)]
    nodes.append(make_node("both", gpu=8, taints=[gpu, make_taint("maintenance")]))
    scene = Scene(nodes, [], make_pod(gpu=1))

    remedies = scene.explain().remedies

    assert remedies == [
        Remedy("TaintToleration", "tolerate the taint nvidia.com/gpu=present:NoSchedule", ("gpu-0", "gpu-1"))
    ]
    assert_holds(scene, remedies[0])


def test_how_much_more_must_be_free_is_said_for_the_nearest_node_and_for_all() -> None:
    nodes = [make_node("a", cpu=8), make_node("b", cpu=8), make_node("small", cpu=2)]
    running = [make_pod("x", cpu=5, node="a"), make_pod("y", cpu=7, node="b")]
    scene = Scene(nodes, running, make_pod(cpu=4))

    remedies = scene.explain().remedies

    assert remedies == [
        Remedy("NodeResourcesFit", "free 3 more cpu", ("a", "b")),
        Remedy("NodeResourcesFit", "free 1 more cpu", ("a",)),
        Remedy("NodeResourcesFit", "give the node 2 more cpu", ("small",)),
    ]
    for remedy in remedies[:2]:
        assert set(remedy.nodes) <= carry_out(scene, remedy).open_nodes()


def test_a_missing_label_is_named() -> None:
    nodes = [make_node("plain"), make_node("labelled", labels={"disk": "ssd"}, cpu=1)]
    scene = Scene(nodes, [], make_pod(cpu=2, node_selector={"disk": "ssd"}))

    remedies = scene.explain().remedies

    assert [(remedy.plugin, remedy.nodes) for remedy in remedies] == [
        ("NodeAffinity", ("plain",)),
        ("NodeResourcesFit", ("labelled",)),
    ]
    assert_holds(scene, remedies[0])


def test_a_node_refused_for_two_reasons_is_opened_by_no_single_change() -> None:
    scene = Scene([make_node("n", taints=[make_taint("a")], cpu=1)], [], make_pod(cpu=2))

    explanation = scene.explain()

    assert explanation.remedies == []
    assert [verdict.plugin for verdict in explanation.verdicts(0)] == ["TaintToleration", "NodeResourcesFit"]


def test_a_label_that_the_profile_enforces_besides_is_not_passed_over() -> None:
    enforced = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "team", "operator": "Exists"}]}]}
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    args = {"NodeAffinity": {"addedAffinity": {key: enforced}}}
    profile = assemble(parse_config(make_config(make_profile(args=args)), "test")).default_profile
    cluster = make_cluster(nodes=[make_node("ours", labels={"team": "a"}), make_node("theirs")])

    explanation = explain(profile, cluster, cluster.shape_for(make_pod(node_selector={"disk": "ssd"})))

    assert [remedy.nodes for remedy in explanation.remedies] == [("ours",)]


def test_pods_that_keep_it_away_are_named_with_the_nodes_that_their_going_opens() -> None:
    nodes = [make_node("a-0", zone="a"), make_node("a-1", zone="a"), make_node("b-0", zone="b")]
    running = [make_pod("db-0", node="a-0", labels={"app": "db"}), make_pod("db-1", node="b-0", labels={"app": "db"})]
    away = make_affinity(away=[make_pod_term(ZONE, labels={"app": "db"})])
    scene = Scene(nodes, running, make_pod("p", affinity=away))

    remedies = scene.explain().remedies

    assert remedies == [
        Remedy("InterPodAffinity", "stop or move default/db-0", ("a-0", "a-1")),
        Remedy("InterPodAffinity", "stop or move default/db-1", ("b-0",)),
    ]
    for remedy in remedies:
        assert_holds(scene, remedy)


def test_a_pod_that_keeps_others_away_is_named() -> None:
    away = make_affinity(away=[make_pod_term(ZONE, labels={"app": "web"})])
    running = [make_pod("loner", node="n", affinity=away)]
    scene = Scene([make_node("n", zone="a")], running, make_pod("p", labels={"app": "web"}))

    (remedy,) = scene.explain().remedies

    assert remedy == Remedy("InterPodAffinity", "stop or move default/loner", ("n",))
    assert_holds(scene, remedy)


def test_the_pod_that_is_missed_is_described() -> None:
    near = make_affinity(near=[make_pod_term(ZONE, labels={"app": "cache"})])
    nodes = [make_node("a-0", zone="a"), make_node("nowhere"), make_node("full", zone="b", cpu=1)]
    scene = Scene(nodes, [], make_pod("p", cpu=2, affinity=near))

    (remedy,) = scene.explain().remedies

    change = "run a pod with app=cache in the node's topology.kubernetes.io/zone"
    assert remedy == Remedy("InterPodAffinity", change, ("a-0",))
    assert_holds(scene, remedy)


def test_nobody_is_told_to_run_what_it_avoids_itself() -> None:
    term = make_pod_term(ZONE, labels={"app": "cache"})
    scene = Scene([make_node("n", zone="a")], [], make_pod("p", affinity=make_affinity(near=[term], away=[term])))

    assert scene.explain().remedies == []


def test_a_skew_is_lessened_by_allowing_more_or_by_fewer_pods() -> None:
    nodes = [make_node("a", zone="a"), make_node("b", zone="b"), make_node("c", zone="c", cpu=1)]
    running = [make_pod(f"web-{i}", node="a" if i < 3 else "b", labels={"app": "web"}) for i in range(5)]
    spread = [make_spread(labels={"app": "web"})]
    scene = Scene(nodes, running, make_pod("p", cpu=2, labels={"app": "web"}, spread=spread))

    remedies = scene.explain().remedies

    key = "topology.kubernetes.io/zone"
    assert [(remedy.change, remedy.nodes) for remedy in remedies if remedy.plugin == "PodTopologySpread"] == [
        (f"raise maxSkew of {key} to 4", ("a", "b")),
        (f"raise maxSkew of {key} to 3", ("b",)),
        (f"stop or move 2 of the pods with app=web in the node's {key}", ("b",)),
        (f"stop or move 3 of the pods with app=web in the node's {key}", ("a",)),
    ]
    for remedy in remedies:
        assert set(remedy.nodes) <= carry_out(scene, remedy).open_nodes()


# Any case.

taints = st.sampled_from([make_taint("gpu", "present"), make_taint("spot"), make_taint("spot", effect="NoExecute")])


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    nodes = [
        make_node(
            f"node-{i}",
            cpu=draw(st.integers(1, 6)),
            memory=f"{draw(st.integers(1, 4))}Gi",
            gpu=draw(st.integers(0, 2)),
            zone=draw(st.sampled_from(["", "a", "b"])),
            labels=draw(st.sampled_from([{}, {"disk": "ssd"}, {"disk": "hdd"}])),
            taints=draw(st.lists(taints, max_size=2, unique=True)),
            unschedulable=draw(st.sampled_from([False, False, True])),
        )
        for i in range(draw(st.integers(1, 6)))
    ]
    running = [
        make_pod(
            f"running-{i}",
            node=f"node-{draw(st.integers(0, len(nodes) - 1))}",
            cpu=f"{draw(st.integers(0, 30))}00m",
            memory=f"{draw(st.integers(0, 900))}Mi",
            labels={"app": draw(st.sampled_from(["web", "db"]))},
            host_ports=draw(st.sampled_from([(), (80,)])),
        )
        for i in range(draw(st.integers(0, 5)))
    ]
    away = [make_pod_term(ZONE, labels={"app": "db"})] if draw(st.booleans()) else []
    near = [
        make_pod_term(draw(st.sampled_from([ZONE, HOSTNAME])), labels={"app": draw(st.sampled_from(["web", "db"]))})
    ]
    spread = [make_spread(labels={"app": "web"}, max_skew=draw(st.integers(1, 2)))]
    pod = make_pod(
        cpu=f"{draw(st.integers(1, 50))}00m",
        memory=f"{draw(st.integers(100, 3000))}Mi",
        gpu=draw(st.integers(0, 2)),
        node_selector=draw(st.sampled_from([None, {"disk": "ssd"}, {"disk": "ssd", "tier": "x"}])),
        tolerations=draw(st.sampled_from([(), (make_toleration("gpu"),), (make_toleration("spot"),)])),
        affinity=make_affinity(away=away, near=near if draw(st.booleans()) else ()),
        labels={"app": draw(st.sampled_from(["web", "db", "new"]))},
        spread=spread if draw(st.booleans()) else (),
        host_ports=draw(st.sampled_from([(), (80,), (80, 443)])),
    )
    return Scene(nodes, running, pod)


@given(scenes())
def test_every_remedy_opens_the_nodes_that_it_names(scene: Scene) -> None:
    explanation = scene.explain()

    for remedy in explanation.remedies:
        before, after = scene.open_nodes(), carry_out(scene, remedy).open_nodes()
        assert set(remedy.nodes) <= after, f"{remedy.change} does not open {set(remedy.nodes) - after}"
        assert not before & set(remedy.nodes)


@given(scenes())
def test_every_toleration_and_label_opens_nothing_else(scene: Scene) -> None:
    for remedy in scene.explain().remedies:
        if remedy.plugin in ("TaintToleration", "NodeAffinity", "NodeUnschedulable"):
            assert_holds(scene, remedy)


@given(scenes())
def test_the_verdicts_agree_with_the_decision(scene: Scene) -> None:
    explanation = scene.explain()
    evaluation = explanation.evaluation

    for position in range(len(evaluation.rows)):
        verdicts = explanation.verdicts(position)
        assert evaluation.verdict(position) == (verdicts[0] if verdicts else None)


@given(scenes())
def test_the_winner_leads_by_the_sum_of_what_each_plugin_gave_it(scene: Scene) -> None:
    evaluation = scene.explain().evaluation
    if len(evaluation.feasible):
        best = int(evaluation.feasible[evaluation.totals.argmax()])

        outcome = contest(evaluation, best)

        assert outcome.lead == sum(outcome.by_plugin.values())
        assert outcome.lead >= 0
