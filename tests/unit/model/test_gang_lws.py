"""LeaderWorkerSet: one gang a replica, pods labelled and kept apart as its controller does it."""

import pytest
from gang_manifests import memberships, pod_named, read, refusal

from mooring.model.gangs.gang import Gang, Role
from mooring.model.keys import GangKey
from mooring.model.topology.requests import TopologyRequest

SET = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm, namespace: serve, annotations: {ANNOTATIONS}}
spec:
  replicas: 2
  startupPolicy: LeaderCreated
  leaderWorkerTemplate:
    size: 3
    MORE: null
    leaderTemplate:
      metadata: {labels: {role: leader}}
      spec: {containers: [{name: main, resources: {requests: {cpu: "2"}, limits: {nvidia.com/gpu: 8}}}]}
    workerTemplate:
      spec: {containers: [{name: main, resources: {requests: {cpu: 500m}, limits: {nvidia.com/gpu: 8}}}]}
"""
EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology: example.com/rack"
SUBGROUP_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology: kubernetes.io/hostname"


def lws(more: str = "", annotations: str = "", size: int = 3) -> str:
    text = SET.replace("ANNOTATIONS", annotations).replace("size: 3", f"size: {size}")
    return text.replace("    MORE: null\n", f"    {more}\n" if more else "")


def test_each_replica_is_a_gang_of_a_leader_and_its_workers() -> None:
    manifests = read(lws())

    assert manifests.gangs == [
        Gang(
            key=GangKey(f"LeaderWorkerSet.leaderworkerset.x-k8s.io/serve/vllm-{index}"),
            name=f"serve/vllm-{index}",
            minimum=3,
            roles=(Role("leader", 1), Role("worker", 2)),
            restarts_whole=True,
        )
        for index in range(2)
    ]
    assert memberships(manifests) == {
        "vllm-0": ("serve/vllm-0", "leader", 0),
        "vllm-0-1": ("serve/vllm-0", "worker", 1),
        "vllm-0-2": ("serve/vllm-0", "worker", 2),
        "vllm-1": ("serve/vllm-1", "leader", 0),
        "vllm-1-1": ("serve/vllm-1", "worker", 1),
        "vllm-1-2": ("serve/vllm-1", "worker", 2),
    }


def test_pods_have_the_labels_and_annotations_of_their_group() -> None:
    manifests = read(lws())
    leader, worker = pod_named(manifests, "vllm-1"), pod_named(manifests, "vllm-1-2")

    shared = {
        "leaderworkerset.sigs.k8s.io/name": "vllm",
        "leaderworkerset.sigs.k8s.io/group-index": "1",
        "leaderworkerset.sigs.k8s.io/group-key": "ab999d326393965039bbe2600f3ee723a47e5d4a",  # SHA-1 of serve/vllm-1
    }
    assert leader.metadata.labels == {"role": "leader", "leaderworkerset.sigs.k8s.io/worker-index": "0", **shared}
    assert worker.metadata.labels == {"leaderworkerset.sigs.k8s.io/worker-index": "2", **shared}
    assert leader.metadata.annotations == {"leaderworkerset.sigs.k8s.io/size": "3"}
    assert worker.metadata.annotations == {
        "leaderworkerset.sigs.k8s.io/size": "3",
        "leaderworkerset.sigs.k8s.io/leader-name": "vllm-1",
    }
    assert leader.spec.affinity is None


def test_without_a_leader_template_leaders_are_like_workers() -> None:
    text = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: one}
spec: {leaderWorkerTemplate: {workerTemplate: {spec: {containers: [{name: only}]}}}}
"""
    manifests = read(text)

    assert [pod.metadata.name for pod in manifests.pods] == ["one-0"]
    assert manifests.pods[0].spec.containers[0].name == "only"
    assert [(gang.minimum, gang.roles) for gang in manifests.gangs] == [(1, (Role("leader", 1),))]


def test_exclusive_topology_is_a_place_for_the_group_alone() -> None:
    manifests = read(lws(annotations=EXCLUSIVE))

    assert [gang.topology_request for gang in manifests.gangs] == [TopologyRequest(required="example.com/rack")] * 2
    leader = pod_named(manifests, "vllm-0")
    affinity = leader.spec.affinity
    assert affinity is not None and affinity.pod_affinity is not None and affinity.pod_anti_affinity is not None
    (near,) = affinity.pod_affinity.required or []
    (apart,) = affinity.pod_anti_affinity.required or []
    key = (leader.metadata.labels or {})["leaderworkerset.sigs.k8s.io/group-key"]
    assert near.topology_key == apart.topology_key == "example.com/rack"
    assert near.label_selector is not None and apart.label_selector is not None
    assert [(term.operator, term.values) for term in near.label_selector.match_expressions or ()] == [("In", [key])]
    assert [(term.operator, term.values) for term in apart.label_selector.match_expressions or ()] == [
        ("Exists", None),
        ("NotIn", [key]),
    ]
    assert pod_named(manifests, "vllm-0-1").spec.affinity is None


def test_subgroups_of_all_pods_are_slices() -> None:
    manifests = read(lws("subGroupPolicy: {subGroupSize: 2}", f"{EXCLUSIVE}, {SUBGROUP_EXCLUSIVE}", size=4))

    gang = manifests.gangs[0]
    assert gang.topology_request == TopologyRequest("example.com/rack", None, 2, "kubernetes.io/hostname")
    assert gang.roles == (Role("leader", 1), Role("worker", 3))
    index = "leaderworkerset.sigs.k8s.io/subgroup-index"
    assert [(pod.metadata.labels or {})[index] for pod in manifests.pods[:4]] == ["0", "0", "1", "1"]
    worker = pod_named(manifests, "vllm-0-3")
    assert worker.spec.affinity is not None, "its subgroup is kept apart from others"
    assert worker.spec is pod_named(manifests, "vllm-0-2").spec


def test_a_leader_that_is_one_too_many_is_in_the_first_subgroup_and_in_no_slice() -> None:
    manifests = read(lws("subGroupPolicy: {subGroupSize: 2}", SUBGROUP_EXCLUSIVE, size=5))

    slices = TopologyRequest(slice_size=2, slice_level="kubernetes.io/hostname")
    assert manifests.gangs[0].topology_request is None
    assert manifests.gangs[0].roles == (Role("leader", 1), Role("worker", 4, slices))
    index = "leaderworkerset.sigs.k8s.io/subgroup-index"
    assert [(pod.metadata.labels or {})[index] for pod in manifests.pods[:5]] == ["0", "0", "0", "1", "1"]


def test_a_leader_that_is_excluded_is_in_no_subgroup() -> None:
    policy = "subGroupPolicy: {subGroupSize: 2, subGroupPolicyType: LeaderExcluded}"
    manifests = read(lws(policy, SUBGROUP_EXCLUSIVE, size=3))

    assert "leaderworkerset.sigs.k8s.io/subgroup-index" not in (manifests.pods[0].metadata.labels or {})
    assert manifests.pods[0].spec.affinity is None
    assert manifests.pods[1].spec.affinity is not None


def test_under_leader_ready_the_leader_starts_where_all_have_room() -> None:
    gang = read(lws().replace("LeaderCreated", "LeaderReady")).gangs[0]

    assert (gang.minimum, gang.roles) == (1, (Role("leader", 1), Role("worker", 0)))
    assert gang.min_resources == {"cpu": 3, "nvidia.com/gpu": 24}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("RecreateGroupOnPodRestart", True), ("RecreateGroupAfterStart", True), ("None", False), ("Default", False)],
)
def test_restart_policies_tell_whether_the_loss_of_one_stops_all(policy: str, expected: bool) -> None:
    assert read(lws(f'restartPolicy: "{policy}"')).gangs[0].restarts_whole is expected


def dumped(name: str, owner: str, *, labels: str = "", annotations: str = "") -> str:
    return f"""
---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: serve
  labels: {{{labels}}}
  annotations: {{{annotations}}}
  ownerReferences: [{{apiVersion: apps/v1, kind: StatefulSet, name: {owner}, controller: true}}]
spec: {{nodeName: n1, containers: [{{name: main}}]}}
"""


def test_what_a_dump_has_is_not_made_again_and_new_pods_join_its_group() -> None:
    labels = "leaderworkerset.sigs.k8s.io/name: vllm, leaderworkerset.sigs.k8s.io/group-index: '0'"
    group = "scheduling.k8s.io/group-name: vllm-0-rev"
    text = lws() + dumped("vllm-0", "vllm", labels=labels, annotations=group)
    text += dumped("vllm-0-1", "vllm-0", labels=labels, annotations=group)
    text += """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: vllm-0-rev, namespace: serve}
spec: {minMember: 3}
"""
    manifests = read(text)

    assert sorted(pod.metadata.name for pod in manifests.pods) == [
        "vllm-0",
        "vllm-0-1",
        "vllm-0-2",
        "vllm-1",
        "vllm-1-1",
        "vllm-1-2",
    ]
    assert memberships(manifests)["vllm-0-2"][0] == "serve/vllm-0-rev"
    assert [gang.name for gang in manifests.gangs] == ["serve/vllm-0-rev", "serve/vllm-1"]


def test_stateful_sets_of_a_dump_make_their_own_pods() -> None:
    text = (
        lws().replace("replicas: 2", "replicas: 1")
        + """
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: vllm
  namespace: serve
  ownerReferences:
  - {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: vllm, controller: true}
spec:
  replicas: 1
  template:
    metadata:
      labels: {leaderworkerset.sigs.k8s.io/name: vllm, leaderworkerset.sigs.k8s.io/worker-index: "0"}
    spec: {containers: [{name: main}]}
"""
    )
    manifests = read(text)

    assert memberships(manifests) == {
        "vllm-0": ("serve/vllm-0", "leader", 0),
        "vllm-0-1": ("serve/vllm-0", "worker", 1),
        "vllm-0-2": ("serve/vllm-0", "worker", 2),
    }


def test_pods_alone_say_how_large_their_group_is() -> None:
    labels = "leaderworkerset.sigs.k8s.io/name: vllm, leaderworkerset.sigs.k8s.io/group-index: '0'"
    said = f"leaderworkerset.sigs.k8s.io/size: '4', {EXCLUSIVE}"

    (gang,) = read(dumped("vllm-0", "vllm", labels=labels, annotations=said).removeprefix("\n---")).gangs

    assert (gang.minimum, gang.topology_request) == (4, TopologyRequest(required="example.com/rack"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            lws(size=0), "spec.leaderWorkerTemplate.size: expected a number of at least 1, found 0", id="nobody"
        ),
        pytest.param(
            lws().replace("size: 3", "size: 1.5"),
            "spec.leaderWorkerTemplate.size: expected an integer, found 1.5",
            id="a fraction",
        ),
        pytest.param(
            lws().replace("replicas: 2", "replicas: -1"),
            "spec.replicas: expected a number of at least 0, found -1",
            id="fewer than none",
        ),
        pytest.param(
            lws("subGroupPolicy: {subGroupSize: 3}", size=5),
            "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: "
            "expected a divisor of 5, the size of a group, or of 4, its workers, found 3",
            id="subgroups that do not divide",
        ),
        pytest.param(
            lws("subGroupPolicy: {subGroupSize: 2, subGroupPolicyType: LeaderExcluded}", size=4),
            "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: "
            "expected a divisor of 3, the workers of a group, found 2",
            id="subgroups that do not divide the workers",
        ),
        pytest.param(
            lws("subGroupPolicy: {subGroupSize: 8}"),
            "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: expected at most 3, the size of a group, found 8",
            id="subgroups too large",
        ),
        pytest.param(
            lws("subGroupPolicy: {}"),
            "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: expected a number of at least 1, found none",
            id="subgroups without a size",
        ),
        pytest.param(
            lws("subGroupPolicy: {subGroupSize: 0}"),
            "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: expected a number of at least 1, found 0",
            id="subgroups of none",
        ),
        pytest.param(
            lws(annotations=SUBGROUP_EXCLUSIVE),
            "metadata.annotations.leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology: "
            'expected none without a subGroupPolicy, found "kubernetes.io/hostname"',
            id="places for subgroups that are not there",
        ),
        pytest.param(
            lws(annotations="leaderworkerset.sigs.k8s.io/exclusive-topology: a b"),
            "metadata.annotations.leaderworkerset.sigs.k8s.io/exclusive-topology: "
            'expected a topology level: the key of a node label, found "a b"',
            id="no label key",
        ),
        pytest.param(
            lws("restartPolicy: Sometimes"),
            "spec.leaderWorkerTemplate.restartPolicy: expected one of RecreateGroupOnPodRestart, "
            'RecreateGroupAfterStart, None, Default, found "Sometimes"',
            id="restart policy",
        ),
        pytest.param(
            lws().replace("LeaderCreated", "LeaderFirst"),
            'spec.startupPolicy: expected one of LeaderCreated, LeaderReady, found "LeaderFirst"',
            id="startup policy",
        ),
        pytest.param(
            lws().replace("{requests: {cpu: 500m}", "{requests: {cpu: some}"),
            "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].resources.requests.cpu: "
            'expected a quantity such as 500m, 2 or 1.5Gi, found "some"',
            id="template",
        ),
    ],
)
def test_bad_sets_are_refused(text: str, message: str) -> None:
    assert refusal(text) == f"1 (LeaderWorkerSet serve/vllm): {message}"


def test_a_set_without_workers_to_make_is_refused() -> None:
    text = "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: a}, spec: {}}"

    assert refusal(text) == ("1 (LeaderWorkerSet default/a): spec.leaderWorkerTemplate: expected a value, found none")
