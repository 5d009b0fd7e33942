"""What node groups grow by, where recorded cases have no example."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from mooring.actions.capacity.autoscaler.scale_up import ScaleUp, scale_up
from mooring.actions.capacity.autoscaler.situation import NodeGroup, Situation
from mooring.assembly import assemble
from mooring.config.autoscaler import AutoscalerSettings, ScaleUpSettings
from mooring.model.api.meta import LabelSelector, OwnerReference
from mooring.model.api.nodes import Taint
from mooring.model.api.pods import Affinity, Pod, PodAffinity, PodAffinityTerm, PodTemplateSpec
from mooring.model.api.workloads import DaemonSet, DaemonSetSpec
from mooring.testing.builders import make_node, make_pod

HOSTNAME = "kubernetes.io/hostname"


def make_replica(name: str, owner: str = "web", **given: Any) -> Pod:
    pod = make_pod(name, **given)
    owners = [OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=owner, uid=owner, controller=True)]
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=owners))


def decide(pending: list[Pod], groups: list[NodeGroup], daemon_sets: Sequence[DaemonSet] = (), **given: Any) -> ScaleUp:
    assembly = assemble()
    cluster = assembly.new_cluster()
    situation = Situation(0.0, groups, [], pending=pending, daemon_sets=daemon_sets)
    situation.populate(cluster)
    settings = AutoscalerSettings(ScaleUpSettings(**given))
    return scale_up(cluster, assembly.default_profile, situation, settings)


def make_group(name: str = "workers", most: int = 100, **node: Any) -> NodeGroup:
    return NodeGroup(name, 0, most, template=make_node(name, **node))


def test_a_daemon_that_keeps_pods_away_leaves_a_group_without_room_for_them() -> None:
    term = PodAffinityTerm(topology_key=HOSTNAME, label_selector=LabelSelector(match_labels={"tier": "web"}))
    agent = make_pod("agent", cpu=1)
    affinity = Affinity(pod_anti_affinity=PodAffinity(required=[term]))
    template = PodTemplateSpec(spec=msgspec.structs.replace(agent.spec, affinity=affinity))
    daemon = DaemonSet(spec=DaemonSetSpec(template=template), metadata=agent.metadata)
    pods = [
        make_replica("web-0", cpu=1, labels={"tier": "web"}),
        make_replica("db-0", "db", cpu=1, labels={"tier": "db"}),
    ]

    found = decide(pods, [make_group(cpu=4)], [daemon])

    assert [pod.metadata.name for pod in found.triggered] == ["db-0"]
    (why,) = found.remain
    assert [pod.metadata.name for pod in why.pods] == ["web-0"]
    assert why.rejected == {"workers": ("node(s) didn't satisfy existing pods anti-affinity rules",)}


def test_a_taint_that_tells_of_a_passing_state_keeps_nobody_from_a_new_node() -> None:
    group = make_group(
        cpu=4,
        taints=[
            Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),
            Taint(key="startup-taint.cluster-autoscaler.kubernetes.io/agent", effect="NoSchedule"),
        ],
    )

    found = decide([make_replica("web-0", cpu=1)], [group])

    assert [(growth.group.name, growth.size) for growth in found.growths] == [("workers", 1)]


@pytest.mark.parametrize(
    ("most", "nodes", "helped"),
    [
        pytest.param(100, 3, 9, id="as many nodes as it takes"),
        pytest.param(2, 2, 8, id="no more than the group may have"),
    ],
)
def test_equal_pods_fill_one_node_after_the_other(most: int, nodes: int, helped: int) -> None:
    found = decide([make_replica(f"web-{i}", cpu=1) for i in range(9)], [make_group(most=most, cpu=4)])

    assert found.chosen is not None
    assert (found.chosen.nodes, found.chosen.pod_count) == (nodes, helped)
    assert len(found.triggered) == helped


def test_where_expanders_leave_several_the_first_group_grows() -> None:
    groups = [make_group("b", cpu=4), make_group("a", cpu=4)]

    found = decide([make_replica("web-0", cpu=1)], groups, expanders=("random",))

    assert [growth.group.name for growth in found.growths] == ["b"]
