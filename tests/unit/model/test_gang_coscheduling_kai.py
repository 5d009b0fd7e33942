"""The PodGroups of Coscheduling and of KAI."""

import pytest
from gang_manifests import memberships, only_gang, read, refusal

from mooring.model.api.kueue import Topology
from mooring.model.gangs.gang import Gang, Role, RoleGroup
from mooring.model.keys import GangKey
from mooring.model.topology.requests import TopologyRequest


def coscheduling(spec: str, group: str = "scheduling.x-k8s.io") -> str:
    return f"""
apiVersion: {group}/v1alpha1
kind: PodGroup
metadata: {{name: train, creationTimestamp: "1970-01-01T00:01:00Z"}}
spec: {spec}
"""


@pytest.mark.parametrize("group", ["scheduling.x-k8s.io", "scheduling.sigs.k8s.io"])
def test_a_pod_group_of_coscheduling_under_either_name(group: str) -> None:
    text = coscheduling('{minMember: 3, minResources: {cpu: "6"}, scheduleTimeoutSeconds: 10}', group)
    pod = """
---
apiVersion: v1
kind: Pod
metadata: {name: train-a, labels: {scheduling.x-k8s.io/pod-group: train}}
spec: {containers: [{name: main}]}
"""

    manifests = read(text + pod)

    assert only_gang(manifests) == Gang(
        key=GangKey("PodGroup.scheduling.x-k8s.io/default/train"),
        name="default/train",
        minimum=3,
        min_resources={"cpu": "6"},
        created=60.0,
        timeout_seconds=10.0,
    )
    assert memberships(manifests) == {"train-a": ("default/train", "", None)}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param("{minMember: 2.5}", "spec.minMember: expected an integer, found 2.5", id="a fraction"),
        pytest.param("{}", "spec.minMember: expected a number of at least 1, found none", id="missing"),
        pytest.param("{minMember: 0}", "spec.minMember: expected a number of at least 1, found 0", id="zero"),
        pytest.param(
            "{minMember: 1, scheduleTimeoutSeconds: 0}",
            "spec.scheduleTimeoutSeconds: expected a number of at least 1, found 0",
            id="no time",
        ),
        pytest.param(
            "{minMember: 1, minResources: {nvidia.com/gpu: 0.5}}",
            "spec.minResources.nvidia.com/gpu: expected a whole number, found 0.5",
            id="half a device",
        ),
    ],
)
def test_bad_pod_groups_of_coscheduling_are_refused(spec: str, message: str) -> None:
    assert refusal(coscheduling(spec)) == f"1 (PodGroup default/train): {message}"


KAI = """
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: serve}
spec:
  minMember: 6
  queue: team-a
  topologyConstraint: {topology: cluster, requiredTopologyLevel: example.com/block}
  subGroups:
  - name: router
    minMember: 1
  - name: model
    topologyConstraint: {topology: cluster, requiredTopologyLevel: example.com/rack}
  - name: prefill
    parent: model
    minMember: 2
  - name: decode
    parent: model
    minMember: 3
    topologyConstraint: {topology: cluster, preferredTopologyLevel: kubernetes.io/hostname}
"""


def kai(spec: str) -> str:
    return f"""
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {{name: serve}}
spec: {spec}
"""


def test_a_pod_group_of_kai_is_a_gang_of_its_leaves_with_places_for_what_is_between() -> None:
    assert only_gang(read(KAI)) == Gang(
        key=GangKey("PodGroup.scheduling.run.ai/default/serve"),
        name="default/serve",
        minimum=6,
        roles=(
            Role("router", 1),
            Role("prefill", 2),
            Role("decode", 3, TopologyRequest(preferred="kubernetes.io/hostname", topology="cluster")),
        ),
        role_groups=(
            RoleGroup(("prefill", "decode"), TopologyRequest(required="example.com/rack", topology="cluster")),
        ),
        queue="team-a",
        topology_request=TopologyRequest(required="example.com/block", topology="cluster"),
    )


def test_a_group_of_subgroups_needs_what_they_need_all_of_them() -> None:
    assert only_gang(read(kai("{subGroups: [{name: a, minMember: 2}, {name: b, minMember: 3}]}"))).minimum == 5
    fewer = "{minSubGroup: 1, subGroups: [{name: a, minMember: 2}, {name: b, minMember: 3}]}"
    assert only_gang(read(kai(fewer))).minimum == 5


def test_a_plain_group_needs_its_minimum() -> None:
    gang = only_gang(read(kai("{minMember: 4}")))

    assert (gang.minimum, gang.roles, gang.topology_request) == (4, (), None)


def test_a_group_may_say_that_it_is_nobodys_victim() -> None:
    assert only_gang(read(kai("{minMember: 4}"))).preemptible
    assert only_gang(read(kai("{minMember: 4, preemptibility: preemptible}"))).preemptible
    assert not only_gang(read(kai("{minMember: 4, preemptibility: non-preemptible}"))).preemptible


def test_the_topology_that_kai_is_given_is_kept_with_those_of_kueue() -> None:
    manifests = read(
        """
apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: cluster}
spec: {levels: [{nodeLabel: example.com/block}, {nodeLabel: kubernetes.io/hostname}]}
"""
    )

    (found,) = manifests.of(Topology)
    assert [level.node_label for level in found.spec.levels] == ["example.com/block", "kubernetes.io/hostname"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param("{minMember: 1.5}", "spec.minMember: expected an integer, found 1.5", id="a fraction"),
        pytest.param("{}", "spec.minMember: expected a number of at least 1, found none", id="missing"),
        pytest.param("{minMember: 0}", "spec.minMember: expected a number of at least 1, found 0", id="zero"),
        pytest.param(
            "{subGroups: [{name: a}]}",
            "spec.subGroups[0].minMember: expected a number of at least 0, found none",
            id="a leaf without",
        ),
        pytest.param(
            "{subGroups: [{name: a, minMember: -1}]}",
            "spec.subGroups[0].minMember: expected a number of at least 0, found -1",
            id="a negative leaf",
        ),
        pytest.param(
            "{subGroups: [{name: a, minMember: 1}, {name: a, minMember: 1}]}",
            'spec.subGroups[1].name: expected a name that is not taken, found "a"',
            id="a name twice",
        ),
        pytest.param(
            "{subGroups: [{minMember: 1}]}", "spec.subGroups[0].name: expected a name, found none", id="no name"
        ),
        pytest.param(
            "{subGroups: [{name: a, minMember: 1, parent: b}]}",
            'spec.subGroups[0].parent: expected the name of a subgroup (a), found "b"',
            id="an unknown parent",
        ),
        pytest.param(
            "{subGroups: [{name: b, parent: a}, {name: a, parent: b}, {name: c, parent: a, minMember: 1}]}",
            "spec.subGroups[1].parent: expected a subgroup that is not inside this one, found a cycle, a -> b -> a",
            id="a cycle",
        ),
        pytest.param(
            "{subGroups: [{name: a, minMember: 2}, {name: b, parent: a, minMember: 1}]}",
            "spec.subGroups[0].minMember: expected none, as it has subgroups inside, found 2",
            id="pods between",
        ),
        pytest.param(
            "{minMember: 1, minSubGroup: 1, subGroups: [{name: a, minMember: 1}]}",
            "spec.minSubGroup: expected none beside minMember, found 1",
            id="two minimums",
        ),
        pytest.param(
            "{minSubGroup: 2, subGroups: [{name: a, minMember: 1}]}",
            "spec.minSubGroup: expected at most 1, the subgroups directly inside, found 2",
            id="more than there are",
        ),
        pytest.param(
            "{minMember: 1, preemptibility: maybe}",
            'spec.preemptibility: expected one of preemptible, non-preemptible, semi-preemptible, found "maybe"',
            id="preemptibility",
        ),
        pytest.param(
            "{minMember: 1, topologyConstraint: {requiredTopologyLevel: /rack}}",
            "spec.topologyConstraint.requiredTopologyLevel: "
            'expected a topology level: the key of a node label, found "/rack"',
            id="level",
        ),
        pytest.param(
            "{minMember: 1, priorityClassName: gold}",
            "spec.priorityClassName: expected a known PriorityClass "
            "(build, build-preemptible, inference, system-cluster-critical, system-node-critical, train), "
            'found "gold"',
            id="class",
        ),
    ],
)
def test_bad_pod_groups_of_kai_are_refused(spec: str, message: str) -> None:
    assert refusal(kai(spec)) == f"1 (PodGroup default/serve): {message}"
