"""Kubernetes' own PodGroup, CompositePodGroup and Workload, in all forms that were served."""

import pytest
from gang_manifests import memberships, only_gang, read, refusal

from mooring.model.gangs.gang import Gang
from mooring.model.keys import GangKey
from mooring.model.topology.requests import TopologyRequest

CLASS = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: training}
value: 1000
preemptionPolicy: Never
---
"""
GROUP = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: workers, namespace: ml, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  workloadRef: {workloadName: llm, templateName: workers}
  schedulingPolicy:
    gang: {minCount: 4}
"""


def group(spec: str) -> str:
    return f"""
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {{name: workers}}
spec: {spec}
"""


def test_a_pod_group_is_a_gang_of_its_minimum() -> None:
    assert only_gang(read(GROUP)) == Gang(
        key=GangKey("PodGroup.scheduling.k8s.io/ml/workers"),
        name="ml/workers",
        minimum=4,
        created=1767225600.0,
        evicted_whole=False,
    )


def test_pods_join_by_their_scheduling_group() -> None:
    pods = "".join(
        f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: worker-{i}, namespace: ml}}
spec:
  schedulingGroup: {{podGroupName: workers}}
  containers: [{{name: main}}]
"""
        for i in range(2)
    )

    assert memberships(read(GROUP + pods)) == {
        "worker-0": ("ml/workers", "", 0),
        "worker-1": ("ml/workers", "", 1),
    }


def test_basic_groups_ask_for_one_at_a_time() -> None:
    assert only_gang(read(group("{schedulingPolicy: {basic: {}}}"))).minimum == 1


def test_priority_comes_from_the_class_topology_from_the_constraint_and_all_go_together() -> None:
    gang = only_gang(
        read(
            CLASS
            + group(
                """
  schedulingPolicy: {gang: {minCount: 2}}
  schedulingConstraints: {topology: [{key: topology.kubernetes.io/rack}]}
  disruptionMode: {all: {}}
  priorityClassName: training
"""
            )
        )
    )

    assert gang.priority == 1000
    assert gang.preemption_policy == "Never"
    assert gang.topology_request == TopologyRequest(required="topology.kubernetes.io/rack")
    assert gang.evicted_whole


def test_a_priority_that_is_given_needs_no_class() -> None:
    gang = only_gang(read(group("{schedulingPolicy: {basic: {}}, priority: 7, preemptionPolicy: Never}")))

    assert (gang.priority, gang.preemption_policy) == (7, "Never")


def test_the_spelling_of_v1alpha2_is_read_too() -> None:
    gang = only_gang(
        read(
            """
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: workers}
spec:
  podGroupTemplateRef: {workload: {workloadName: llm, podGroupTemplateName: workers}}
  schedulingPolicy: {gang: {minCount: 3}}
  schedulingConstraints: {topologyConstraints: [{topologyKey: example.com/rack}]}
  disruptionMode: PodGroup
"""
        )
    )

    assert (gang.minimum, gang.topology_request, gang.evicted_whole) == (
        3,
        TopologyRequest(required="example.com/rack"),
        True,
    )


COMPOSITE = """
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {name: root}
spec:
  workloadRef: {workloadName: llm, templateName: root}
  schedulingPolicy: {gang: {minGroupCount: 2}}
  schedulingConstraints: {topology: [{key: example.com/block}]}
---
apiVersion: scheduling.k8s.io/v1alpha3
kind: PodGroup
metadata: {name: prefill}
spec:
  parentCompositePodGroupName: root
  schedulingPolicy: {gang: {minCount: 4}}
"""


def test_composite_groups_are_gangs_of_gangs() -> None:
    prefill, root = read(COMPOSITE).gangs

    assert root.key == "CompositePodGroup.scheduling.k8s.io/default/root"
    assert (root.minimum, root.of_gangs, root.topology_request) == (
        2,
        True,
        TopologyRequest(required="example.com/block"),
    )
    assert (prefill.minimum, prefill.parent, prefill.of_gangs) == (4, root.key, False)


def test_a_workload_of_templates_makes_no_gang() -> None:
    manifests = read(
        """
apiVersion: scheduling.k8s.io/v1alpha3
kind: Workload
metadata: {name: llm}
spec:
  compositePodGroupTemplates:
  - name: root
    schedulingPolicy: {gang: {minGroupCount: 2}}
    podGroupTemplates:
    - {name: a, schedulingPolicy: {gang: {minCount: 4}}}
    - {name: b, schedulingPolicy: {basic: {}}}
"""
    )

    assert manifests.gangs == []
    assert not manifests.ignored


def test_a_workload_of_v1alpha1_has_its_groups_inside_and_each_replica_is_a_gang() -> None:
    pods = "".join(
        f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: worker-{i}}}
spec:
  workloadRef: {{name: llm, podGroup: workers, podGroupReplicaKey: "{i // 2}"}}
  containers: [{{name: main}}]
"""
        for i in range(4)
    )
    manifests = read(
        """
apiVersion: scheduling.k8s.io/v1alpha1
kind: Workload
metadata: {name: llm}
spec:
  podGroups:
  - name: workers
    policy: {gang: {minCount: 2}}
  - name: driver
    policy: {basic: {}}
"""
        + pods
    )

    assert {gang.name: gang.minimum for gang in manifests.gangs} == {
        "default/llm/workers": 2,
        "default/llm/workers/0": 2,
        "default/llm/workers/1": 2,
        "default/llm/driver": 1,
    }
    assert memberships(manifests)["worker-3"] == ("default/llm/workers/1", "", 3)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            "{schedulingPolicy: {gang: {minCount: 0}}}",
            "spec.schedulingPolicy.gang.minCount: expected a number of at least 1, found 0",
            id="zero",
        ),
        pytest.param(
            "{schedulingPolicy: {gang: {minCount: -2}}}",
            "spec.schedulingPolicy.gang.minCount: expected a number of at least 1, found -2",
            id="negative",
        ),
        pytest.param(
            "{schedulingPolicy: {gang: {minCount: 1.5}}}",
            "spec.schedulingPolicy.gang.minCount: expected an integer, found 1.5",
            id="a fraction",
        ),
        pytest.param(
            "{schedulingPolicy: {gang: {}}}",
            "spec.schedulingPolicy.gang.minCount: expected a number of at least 1, found none",
            id="missing",
        ),
        pytest.param(
            "{schedulingPolicy: {gang: {minCount: 2}, basic: {}}}",
            "spec.schedulingPolicy: expected basic or gang, found both",
            id="both policies",
        ),
        pytest.param("{}", "spec.schedulingPolicy: expected basic or gang, found neither", id="no policy"),
        pytest.param(
            "{schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: a}, {key: b}]}}",
            "spec.schedulingConstraints.topology: expected at most one constraint, found 2",
            id="two constraints",
        ),
        pytest.param(
            "{schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: 'no key'}]}}",
            "spec.schedulingConstraints.topology[0].key: "
            'expected a topology level: the key of a node label, found "no key"',
            id="no label key",
        ),
        pytest.param(
            "{schedulingPolicy: {basic: {}}, disruptionMode: {all: {}, single: {}}}",
            "spec.disruptionMode: expected single or all, found both",
            id="both modes",
        ),
        pytest.param(
            "{schedulingPolicy: {basic: {}}, disruptionMode: Job}",
            'spec.disruptionMode: expected one of Pod, PodGroup, found "Job"',
            id="an unknown mode",
        ),
        pytest.param(
            "{schedulingPolicy: {basic: {}}, preemptionPolicy: Sometimes}",
            'spec.preemptionPolicy: expected one of PreemptLowerPriority, Never, found "Sometimes"',
            id="preemption policy",
        ),
        pytest.param(
            "{schedulingPolicy: {basic: {}}, priorityClassName: urgent}",
            "spec.priorityClassName: expected a known PriorityClass "
            '(system-cluster-critical, system-node-critical), found "urgent"',
            id="an unknown class",
        ),
    ],
)
def test_bad_pod_groups_are_refused(spec: str, message: str) -> None:
    assert refusal(group(spec)) == f"1 (PodGroup default/workers): {message}"


def test_a_priority_that_contradicts_its_class_is_refused() -> None:
    text = CLASS + group("{schedulingPolicy: {basic: {}}, priorityClassName: training, priority: 5}")

    assert refusal(text) == (
        "2 (PodGroup default/workers): spec.priority: expected 1000, the value of class training, "
        "or no priority, found 5"
    )


def composite(name: str, parent: str, count: str = "minGroupCount: 1") -> str:
    return f"""
---
apiVersion: scheduling.k8s.io/v1alpha3
kind: CompositePodGroup
metadata: {{name: {name}}}
spec:
  parentCompositePodGroupName: {parent}
  schedulingPolicy: {{gang: {{{count}}}}}
"""


def test_composite_groups_inside_one_another_are_refused() -> None:
    assert refusal(composite("b", "c") + composite("a", "b") + composite("c", "b")) == (
        "1 (CompositePodGroup default/b): spec.parentCompositePodGroupName: "
        "expected a group that is not inside this one, found a cycle, b -> c -> b"
    )


def test_the_same_name_in_another_namespace_is_another_parent() -> None:
    other = composite("a", "b").replace("name: a", "name: a, namespace: other")

    assert len(read(composite("b", "a") + other).gangs) == 2


def test_composite_groups_count_groups_not_pods() -> None:
    assert refusal(composite("a", '""', "minCount: 2")) == (
        "1 (CompositePodGroup default/a): spec.schedulingPolicy.gang.minGroupCount: "
        "expected a number of at least 1, found none"
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param("{}", "spec: expected podGroupTemplates or compositePodGroupTemplates, found neither", id="empty"),
        pytest.param(
            "{podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}], podGroups: [{name: a}]}",
            "spec: expected podGroupTemplates or compositePodGroupTemplates, found podGroups and podGroupTemplates",
            id="two lists",
        ),
        pytest.param(
            "{podGroups: [{name: a, policy: {gang: {minCount: 0}}}]}",
            "spec.podGroups[0].policy.gang.minCount: expected a number of at least 1, found 0",
            id="zero in v1alpha1",
        ),
        pytest.param(
            "{podGroups: [{name: a}]}",
            "spec.podGroups[0].policy: expected basic or gang, found neither",
            id="no policy",
        ),
        pytest.param(
            "{podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}, {name: a, schedulingPolicy: {basic: {}}}]}",
            'spec.podGroupTemplates[1].name: expected a name that is not taken, found "a"',
            id="a name twice",
        ),
        pytest.param(
            "{podGroupTemplates: [{schedulingPolicy: {basic: {}}}]}",
            "spec.podGroupTemplates[0].name: expected a name, found none",
            id="no name",
        ),
        pytest.param(
            "{compositePodGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}]}",
            "spec.compositePodGroupTemplates[0]: "
            "expected podGroupTemplates or compositePodGroupTemplates, found neither",
            id="nothing inside",
        ),
        pytest.param(
            "{podGroups: [" + ", ".join(f"{{name: g{i}, policy: {{basic: {{}}}}}}" for i in range(9)) + "]}",
            "spec.podGroups: expected at most 8 groups, found 9",
            id="too many",
        ),
    ],
)
def test_bad_workloads_are_refused(spec: str, message: str) -> None:
    text = f"""
apiVersion: scheduling.k8s.io/v1beta1
kind: Workload
metadata: {{name: llm}}
spec: {spec}
"""

    assert refusal(text) == f"1 (Workload default/llm): {message}"


def test_a_pod_that_names_half_a_group_is_refused() -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  workloadRef: {name: llm}
  containers: [{name: main}]
"""

    assert refusal(text) == "1 (Pod default/a): spec.workloadRef.podGroup: expected a name, found none"


MEMBER = """
---
apiVersion: v1
kind: Pod
metadata: {{name: worker, namespace: default}}
spec: {{schedulingGroup: {{podGroupName: workers}}, {more}, containers: [{{name: main}}]}}
"""


def test_a_member_of_another_priority_than_its_group_is_refused_while_it_waits() -> None:
    text = CLASS + group("{schedulingPolicy: {gang: {minCount: 1}}, priorityClassName: training}")
    low = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: 7\n"

    assert refusal(text + MEMBER.format(more="priority: 0")) == (
        "3 (Pod default/worker): spec.priority: expected the priority of PodGroup default/workers, 1000, found 0"
    )
    assert refusal(text + low + MEMBER.format(more="priorityClassName: low")) == (
        "4 (Pod default/worker): spec.priorityClassName: expected the priority of PodGroup default/workers, 1000, "
        'found "low" (7)'
    )
    for more in ("priorityClassName: training", "nodeName: n1"):
        assert only_gang(read(text + MEMBER.format(more=more))).priority == 1000


def test_a_member_of_a_group_without_a_priority_may_have_any() -> None:
    text = group("{schedulingPolicy: {gang: {minCount: 1}}}") + MEMBER.format(more="priority: 5")

    assert only_gang(read(text)).priority is None
