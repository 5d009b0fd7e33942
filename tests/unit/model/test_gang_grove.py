"""Grove: a PodCliqueSet becomes base gangs and scaled gangs after them; a PodGang declares one."""

import pytest
from gang_manifests import memberships, only_gang, pod_named, read, refusal

from mooring.model.gangs.gang import Gang, Role, RoleGroup
from mooring.model.keys import GangKey
from mooring.model.topology.requests import TopologyRequest

CLASS = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: serving}
value: 100
---
"""
SET = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: llm, namespace: serve}
spec:
  replicas: 1
  template:
    terminationDelay: 1h
    priorityClassName: serving
    topologyConstraint: {topologyName: cluster, pack: {required: block}}
    cliques:
    - name: router
      labels: {app: router}
      spec:
        roleName: router
        replicas: 2
        minAvailable: 1
        podSpec: {containers: [{name: main}]}
    - name: leader
      spec:
        roleName: leader
        podSpec: {containers: [{name: main}]}
    - name: worker
      topologyConstraint: {pack: {required: host, preferred: host}}
      spec:
        roleName: worker
        replicas: 2
        podSpec: {containers: [{name: main}]}
    podCliqueScalingGroups:
    - name: decode
      cliqueNames: [leader, worker]
      replicas: 3
      minAvailable: 2
      topologyConstraint: {pack: {required: rack}}
"""
BINDING = """
---
apiVersion: grove.io/v1alpha1
kind: ClusterTopologyBinding
metadata: {name: cluster}
spec:
  levels:
  - {domain: block, key: example.com/block}
  - {domain: rack, key: example.com/rack}
  - {domain: host, key: kubernetes.io/hostname}
"""


def test_a_replica_is_a_base_gang_and_gangs_scaled_beyond_it() -> None:
    base, scaled = read(CLASS + SET + BINDING).gangs

    host = TopologyRequest(required="kubernetes.io/hostname", preferred="kubernetes.io/hostname")
    rack = TopologyRequest(required="example.com/rack")
    assert base == Gang(
        key=GangKey("PodGang.scheduler.grove.io/serve/llm-0"),
        name="serve/llm-0",
        minimum=7,
        roles=(
            Role("llm-0-router", 1),
            Role("llm-0-decode-0-leader", 1),
            Role("llm-0-decode-0-worker", 2, host),
            Role("llm-0-decode-1-leader", 1),
            Role("llm-0-decode-1-worker", 2, host),
        ),
        role_groups=(
            RoleGroup(("llm-0-decode-0-leader", "llm-0-decode-0-worker"), rack),
            RoleGroup(("llm-0-decode-1-leader", "llm-0-decode-1-worker"), rack),
        ),
        priority=100,
        preemption_policy="PreemptLowerPriority",
        timeout_seconds=3600.0,
        topology_request=TopologyRequest(required="example.com/block"),
    )
    assert scaled == Gang(
        key=GangKey("PodGang.scheduler.grove.io/serve/llm-0-decode-0"),
        name="serve/llm-0-decode-0",
        minimum=3,
        roles=(Role("llm-0-decode-2-leader", 1), Role("llm-0-decode-2-worker", 2, host)),
        priority=100,
        preemption_policy="PreemptLowerPriority",
        timeout_seconds=3600.0,
        topology_request=rack,
        after=base.key,
    )


def test_pods_are_called_after_their_clique_and_know_their_gang() -> None:
    manifests = read(CLASS + SET)

    assert memberships(manifests) == {
        "llm-0-router-0": ("serve/llm-0", "llm-0-router", 0),
        "llm-0-router-1": ("serve/llm-0", "llm-0-router", 1),
        "llm-0-decode-0-leader-0": ("serve/llm-0", "llm-0-decode-0-leader", 0),
        "llm-0-decode-0-worker-0": ("serve/llm-0", "llm-0-decode-0-worker", 0),
        "llm-0-decode-0-worker-1": ("serve/llm-0", "llm-0-decode-0-worker", 1),
        "llm-0-decode-1-leader-0": ("serve/llm-0", "llm-0-decode-1-leader", 0),
        "llm-0-decode-1-worker-0": ("serve/llm-0", "llm-0-decode-1-worker", 0),
        "llm-0-decode-1-worker-1": ("serve/llm-0", "llm-0-decode-1-worker", 1),
        "llm-0-decode-2-leader-0": ("serve/llm-0-decode-0", "llm-0-decode-2-leader", 0),
        "llm-0-decode-2-worker-0": ("serve/llm-0-decode-0", "llm-0-decode-2-worker", 0),
        "llm-0-decode-2-worker-1": ("serve/llm-0-decode-0", "llm-0-decode-2-worker", 1),
    }
    assert pod_named(manifests, "llm-0-router-1").metadata.labels == {
        "app": "router",
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "llm",
        "grove.io/podclique": "llm-0-router",
        "grove.io/podclique-pod-index": "1",
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podgang": "llm-0",
    }
    scaled = pod_named(manifests, "llm-0-decode-2-worker-1")
    assert scaled.spec.priority == 100
    assert scaled.metadata.labels == {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "llm",
        "grove.io/base-podgang": "llm-0",
        "grove.io/podclique": "llm-0-decode-2-worker",
        "grove.io/podclique-pod-index": "1",
        "grove.io/podcliquescalinggroup": "llm-0-decode",
        "grove.io/podcliquescalinggroup-replica-index": "2",
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podgang": "llm-0-decode-0",
    }


def test_replicas_are_gangs_of_their_own_and_what_is_scaled_falls_back_on_the_place_of_the_set() -> None:
    text = SET.replace("replicas: 1\n  template", "replicas: 2\n  template")
    text = text.replace("      topologyConstraint: {pack: {required: rack}}\n", "").replace(
        "replicas: 3", "replicas: 4"
    )

    gangs = read(CLASS + text + BINDING).gangs

    assert [(gang.name, gang.after.rpartition("/")[2]) for gang in gangs] == [
        ("serve/llm-0", ""),
        ("serve/llm-0-decode-0", "llm-0"),
        ("serve/llm-0-decode-1", "llm-0"),
        ("serve/llm-1", ""),
        ("serve/llm-1-decode-0", "llm-1"),
        ("serve/llm-1-decode-1", "llm-1"),
    ]
    assert {gang.topology_request for gang in gangs} == {TopologyRequest(required="example.com/block")}
    assert all(gang.role_groups == () for gang in gangs)


def test_domains_without_a_binding_are_the_well_known_ones_or_stand_for_themselves() -> None:
    base, _ = read(CLASS + SET.replace("topologyName: cluster, ", "")).gangs

    assert base.topology_request == TopologyRequest(required="block")
    assert base.roles[2].topology_request == TopologyRequest("kubernetes.io/hostname", "kubernetes.io/hostname")
    assert base.timeout_seconds == 3600.0


def test_a_binding_that_is_named_and_missing_is_asked_for() -> None:
    base, _ = read(CLASS + SET).gangs

    assert base.topology_request == TopologyRequest(required="block", topology="cluster")
    assert base.role_groups[0].topology_request == TopologyRequest(required="rack", topology="cluster")


def test_the_old_spelling_of_constraints_and_bindings_is_read() -> None:
    text = SET.replace("{topologyName: cluster, pack: {required: block}}", "{packDomain: block}")
    binding = BINDING.replace("ClusterTopologyBinding", "ClusterTopology")

    assert read(CLASS + text + binding).gangs[0].topology_request == TopologyRequest(required="example.com/block")


GANG = """
apiVersion: scheduler.grove.io/v1alpha1
kind: PodGang
metadata: {name: llm-0-1718, namespace: serve, labels: {grove.io/base-podgang: llm-0}}
spec:
  podgroups:
  - name: llm-0-router
    minReplicas: 1
    podReferences: [{namespace: serve, name: llm-0-router-0-x}]
  - name: llm-0-decode-0-worker
    minReplicas: 2
    topologyConstraint: {packConstraint: {preferred: kubernetes.io/hostname}}
  topologyConstraint: {packConstraint: {required: example.com/block}}
  topologyConstraintGroupConfigs:
  - name: llm-0-decode-0
    podGroupNames: [llm-0-decode-0-worker]
    topologyConstraint: {packConstraint: {required: example.com/rack}}
"""


def test_a_pod_gang_is_a_gang_with_places_on_three_levels() -> None:
    assert only_gang(read(GANG)) == Gang(
        key=GangKey("PodGang.scheduler.grove.io/serve/llm-0-1718"),
        name="serve/llm-0-1718",
        minimum=3,
        roles=(
            Role("llm-0-router", 1),
            Role("llm-0-decode-0-worker", 2, TopologyRequest(preferred="kubernetes.io/hostname")),
        ),
        role_groups=(RoleGroup(("llm-0-decode-0-worker",), TopologyRequest(required="example.com/rack")),),
        timeout_seconds=14400.0,
        topology_request=TopologyRequest(required="example.com/block"),
        after=GangKey("PodGang.scheduler.grove.io/serve/llm-0"),
    )


def test_what_a_dump_has_is_not_made_again_and_new_pods_join_its_gang() -> None:
    pod = """
---
apiVersion: v1
kind: Pod
metadata:
  name: llm-0-router-1-x7k2p
  namespace: serve
  labels: {grove.io/podgang: llm-0-1718, grove.io/podclique: llm-0-router, grove.io/podclique-pod-index: "1"}
  ownerReferences: [{apiVersion: grove.io/v1alpha1, kind: PodClique, name: llm-0-router, controller: true}]
spec: {nodeName: n1, containers: [{name: main}]}
"""
    manifests = read(CLASS + SET + pod + "---" + GANG)

    assert len(manifests.pods) == 11
    found = memberships(manifests)
    assert found["llm-0-router-0"] == ("serve/llm-0-1718", "llm-0-router", 0)
    assert "llm-0-router-1" not in found


def changed(old: str, new: str) -> str:
    assert SET.count(old) == 1
    return SET.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            changed("minAvailable: 1\n", "minAvailable: 3\n"),
            "spec.template.cliques[0].spec.minAvailable: expected at most 2, the replicas of the clique, found 3",
            id="more than the clique has",
        ),
        pytest.param(
            changed("minAvailable: 1\n", "minAvailable: 0\n"),
            "spec.template.cliques[0].spec.minAvailable: expected a number of at least 1, found 0",
            id="zero",
        ),
        pytest.param(
            changed("minAvailable: 1\n", "minAvailable: 0.5\n"),
            "spec.template.cliques[0].spec.minAvailable: expected an integer, found 0.5",
            id="a fraction",
        ),
        pytest.param(
            changed("minAvailable: 2", "minAvailable: 4"),
            "spec.template.podCliqueScalingGroups[0].minAvailable: "
            "expected at most 3, the replicas of the scaling group, found 4",
            id="more than the scaling group has",
        ),
        pytest.param(
            changed("[leader, worker]", "[leader, wroker]"),
            "spec.template.podCliqueScalingGroups[0].cliqueNames[1]: "
            'expected the name of a clique (leader, router, worker), found "wroker"',
            id="an unknown clique",
        ),
        pytest.param(
            changed("[leader, worker]", "[leader, leader]"),
            "spec.template.podCliqueScalingGroups[0].cliqueNames[1]: "
            'expected a clique that decode has not taken, found "leader"',
            id="a clique twice",
        ),
        pytest.param(
            changed("[leader, worker]", "[]"),
            "spec.template.podCliqueScalingGroups[0].cliqueNames: expected at least one clique, found none",
            id="no clique",
        ),
        pytest.param(
            changed("name: leader\n", "name: router\n"),
            'spec.template.cliques[1].name: expected a name that is not taken, found "router"',
            id="a name twice",
        ),
        pytest.param(
            changed("terminationDelay: 1h", "terminationDelay: soon"),
            'spec.template.terminationDelay: expected a duration such as 90s, 10m or 1h30m, found "soon"',
            id="no duration",
        ),
        pytest.param(
            changed("{pack: {required: rack}}", "{pack: {}}"),
            "spec.template.podCliqueScalingGroups[0].topologyConstraint.pack: "
            "expected required or preferred, found neither",
            id="no level",
        ),
        pytest.param(
            changed("{pack: {required: rack}}", "{pack: {required: rack}, packDomain: rack}"),
            "spec.template.podCliqueScalingGroups[0].topologyConstraint.packDomain: "
            'expected none beside pack.required, found "rack"',
            id="two levels",
        ),
        pytest.param(
            changed("{pack: {required: rack}}", "{pack: {required: row}}"),
            "spec.template.podCliqueScalingGroups[0].topologyConstraint.pack.required: "
            'expected a domain of the topology (block, rack, host), found "row"',
            id="an unknown domain",
        ),
        pytest.param(
            changed("pack: {required: host, preferred: host}", "pack: {required: block}"),
            "spec.template.cliques[2].topologyConstraint.pack.required: "
            'expected rack or a narrower domain, found "block"',
            id="broader than the scaling group",
        ),
        pytest.param(
            changed("pack: {required: host, preferred: host}", "pack: {required: host, preferred: rack}"),
            "spec.template.cliques[2].topologyConstraint.pack.preferred: "
            'expected host or a narrower domain, found "rack"',
            id="a preference broader than what is required",
        ),
        pytest.param(
            changed("labels: {app: router}\n      spec:", "spec:").replace("[{name: main}]", "[]", 1),
            "spec.template.cliques[0].spec.podSpec.containers: expected at least one container, found none",
            id="no container",
        ),
    ],
)
def test_bad_sets_are_refused(text: str, message: str) -> None:
    assert refusal(CLASS + text + BINDING) == f"2 (PodCliqueSet serve/llm): {message}"


def test_unknown_priority_classes_are_refused_where_they_stand() -> None:
    known = "expected a known PriorityClass (serving, system-cluster-critical, system-node-critical)"
    text = SET.replace("priorityClassName: serving", "priorityClassName: urgent")
    own = SET.replace("podSpec: {containers", "podSpec: {priorityClassName: urgent, containers", 1)

    assert refusal(CLASS + text) == (
        f'2 (PodCliqueSet serve/llm): spec.template.priorityClassName: {known}, found "urgent"'
    )
    assert refusal(CLASS + own) == (
        f'2 (PodCliqueSet serve/llm): spec.template.cliques[0].spec.podSpec.priorityClassName: {known}, found "urgent"'
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "minReplicas: 2",
            "minReplicas: -1",
            "spec.podgroups[1].minReplicas: expected a number of at least 0, found -1",
            id="negative",
        ),
        pytest.param(
            "minReplicas: 2",
            "minReplicas: 1.5",
            "spec.podgroups[1].minReplicas: expected an integer, found 1.5",
            id="a fraction",
        ),
        pytest.param(
            "    minReplicas: 2\n",
            "",
            "spec.podgroups[1].minReplicas: expected a number of at least 0, found none",
            id="none",
        ),
        pytest.param(
            "[llm-0-decode-0-worker]",
            "[llm-0-decode-0-leader]",
            "spec.topologyConstraintGroupConfigs[0].podGroupNames[0]: "
            'expected the name of a group of pods (llm-0-decode-0-worker, llm-0-router), found "llm-0-decode-0-leader"',
            id="an unknown group",
        ),
        pytest.param(
            "{required: example.com/rack}",
            "{required: 'a b'}",
            "spec.topologyConstraintGroupConfigs[0].topologyConstraint.packConstraint.required: "
            'expected a topology level: the key of a node label, found "a b"',
            id="no label key",
        ),
    ],
)
def test_bad_pod_gangs_are_refused(old: str, new: str, message: str) -> None:
    assert GANG.count(old) == 1
    assert refusal(GANG.replace(old, new)) == f"1 (PodGang serve/llm-0-1718): {message}"


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ("[]", "spec.levels: expected at least one level, found none"),
        ("[{domain: a}]", "spec.levels[0].key: expected a key, found none"),
        (
            "[{domain: a, key: x}, {domain: a, key: y}]",
            'spec.levels[1].domain: expected a domain that no level above has, found "a"',
        ),
        (
            "[{domain: a, key: x}, {domain: b, key: x}]",
            'spec.levels[1].key: expected a key that no level above has, found "x"',
        ),
        (
            "[{domain: a, key: 'x y'}]",
            'spec.levels[0].key: expected a topology level: the key of a node label, found "x y"',
        ),
    ],
)
def test_bad_bindings_are_refused(levels: str, message: str) -> None:
    head = "apiVersion: grove.io/v1alpha1, kind: ClusterTopologyBinding, metadata: {name: c}"
    text = f"{{{head}, spec: {{levels: {levels}}}}}"

    assert refusal(text) == f"1 (ClusterTopologyBinding c): {message}"
