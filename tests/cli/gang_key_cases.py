"""What labels and annotations of gangs change, a case each: manifests with the key, who is placed, who without it."""

from typing import NamedTuple

SMALL = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 2, memory: 8Gi, pods: 10, nvidia.com/gpu: 2}}"""

RACKS = "".join(
    f"""
---
apiVersion: v1
kind: Node
metadata: {{name: n{number}, labels: {{kubernetes.io/hostname: n{number}, rack: r{number // 2}}}}}
status: {{allocatable: {{cpu: 1, memory: 8Gi, pods: 10, nvidia.com/gpu: 2}}}}"""
    for number in range(4)
)
TOPOLOGY = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: racks}
spec: {levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}"""


class Case(NamedTuple):
    key: str
    manifests: str
    expected: str
    """Who is placed, by name, or with the node or rack where that is the point."""
    struck_out: str
    scheduler: str = ""
    config: str = ""


def pod(name: str, *, labels: str = "", annotations: str = "", cpu: str = "1", spec: str = "") -> str:
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, labels: {{{labels}}}, annotations: {{{annotations}}}}}
spec: {{{spec}containers: [{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}]}}"""


def ranked(key: str) -> str:
    """A gang that prefers one rack and needs two: a and c are neighbours by rank, a and b by name."""
    asks = "mooring.dev/gang-name: g, mooring.dev/gang-minimum: '4', kueue.x-k8s.io/podset-preferred-topology: rack"
    ranks = {"a": 0, "c": 1, "b": 2, "d": 3}
    pods = (
        pod(name, labels=f"{key}: '{ranks[name]}'", annotations=f"{asks}, {key}: '{ranks[name]}'") for name in "abcd"
    )
    return RACKS + TOPOLOGY + "".join(pods)


RANKS = (
    "batch.kubernetes.io/job-completion-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "apps.kubernetes.io/pod-index",
    "grove.io/podclique-pod-index",
    "volcano.sh/task-index",
    "training.kubeflow.org/replica-index",
    "kueue.x-k8s.io/pod-group-pod-index",
)

GANG_CASES = [Case(key, ranked(key), "a:r0 b:r1 c:r0 d:r1", "a:r0 b:r0 c:r1 d:r1") for key in RANKS]


def group(kind: str, name: str, spec: str, metadata: str = "") -> str:
    version = {
        "PodGang": "scheduler.grove.io/v1alpha1",
        "volcano": "scheduling.volcano.sh/v1beta1",
        "coscheduling": "scheduling.x-k8s.io/v1alpha1",
        "kai": "scheduling.run.ai/v2alpha2",
    }[kind]
    return f"""
---
apiVersion: {version}
kind: {"PodGang" if kind == "PodGang" else "PodGroup"}
metadata: {{name: {name}, namespace: default{metadata}}}
spec: {spec}"""


BIG = "100"
"""CPUs that no node has: a gang with such a member starts not at all."""

KAI = "schedulerName: kai-scheduler, "
KAI_QUEUE = """
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: q}
spec:
  resources: {gpu: {limit: -1}, cpu: {quota: 1000, limit: -1, overQuotaWeight: 1}, memory: {quota: -1, limit: -1}}"""
LWS = "leaderworkerset.sigs.k8s.io"

GANG_CASES += [
    # Who belongs to which gang, and in which role.
    Case(
        "grove.io/podgang",
        SMALL
        + group("PodGang", "g", "{podgroups: [{name: c, minReplicas: 2}]}")
        + pod("a", labels="grove.io/podgang: g, grove.io/podclique: c")
        + pod("b", labels="grove.io/podgang: g, grove.io/podclique: c", cpu=BIG),
        "",
        "a",
    ),
    Case(
        "grove.io/podclique",
        SMALL
        + group("PodGang", "g", "{podgroups: [{name: c, minReplicas: 1}, {name: d, minReplicas: 1}]}")
        + pod("a", labels="grove.io/podgang: g, grove.io/podclique: c")
        + pod("b", labels="grove.io/podgang: g, grove.io/podclique: d"),
        "a b",
        "",
    ),
    Case(
        "grove.io/base-podgang",
        SMALL
        + group("PodGang", "base", "{podgroups: [{name: c, minReplicas: 1}]}")
        + group(
            "PodGang", "more", "{podgroups: [{name: d, minReplicas: 1}]}", ", labels: {grove.io/base-podgang: base}"
        )
        + pod("a", labels="grove.io/podgang: base, grove.io/podclique: c", cpu=BIG)
        + pod("b", labels="grove.io/podgang: more, grove.io/podclique: d"),
        "",
        "b",
    ),
    Case(
        "scheduling.volcano.sh/group-name",
        SMALL
        + group("volcano", "g", "{minMember: 2}")
        + pod("a", annotations="scheduling.volcano.sh/group-name: g")
        + pod("b", annotations="scheduling.volcano.sh/group-name: g", cpu=BIG),
        "",
        "a",
    ),
    Case(
        "volcano.sh/task-spec",
        SMALL
        + group("volcano", "g", "{minMember: 2, minTaskMember: {head: 1, worker: 1}}")
        + pod("a", annotations="scheduling.k8s.io/group-name: g, volcano.sh/task-spec: head")
        + pod("b", annotations="scheduling.k8s.io/group-name: g, volcano.sh/task-spec: worker"),
        "a b",
        "",
    ),
    Case(
        "scheduling.volcano.sh/group-min-member",
        SMALL
        + pod("a", annotations="scheduling.k8s.io/group-name: g, scheduling.volcano.sh/group-min-member: '2'")
        + pod("b", annotations="scheduling.k8s.io/group-name: g, scheduling.volcano.sh/group-min-member: '2'"),
        "a b",
        "",
    ),
    *(
        Case(
            key,
            SMALL
            + group("coscheduling", "g", "{minMember: 2}")
            + pod("a", labels=f"{key}: g")
            + pod("b", labels=f"{key}: g", cpu=BIG),
            "",
            "a",
        )
        for key in ("pod-group.scheduling.sigs.k8s.io/name", "scheduling.x-k8s.io/pod-group")
    ),
    Case(
        "leaderworkerset.sigs.k8s.io/name",
        SMALL
        + pod(
            "a-0",
            labels=f"{LWS}/name: a, {LWS}/group-index: '0', {LWS}/worker-index: '0'",
            annotations=f"{LWS}/size: '2'",
        )
        + pod(
            "a-0-1",
            labels=f"{LWS}/name: a, {LWS}/group-index: '0', {LWS}/worker-index: '1'",
            annotations=f"{LWS}/size: '2'",
            cpu=BIG,
        ),
        "",
        "a-0",
    ),
    # KAI's labels.
    Case(
        "kai.scheduler/subgroup-name",
        SMALL
        + KAI_QUEUE
        + group("kai", "g", "{minMember: 2, queue: q, subGroups: [{name: c, minMember: 1}, {name: d, minMember: 1}]}")
        + pod("a", spec=KAI, annotations="pod-group-name: g", labels="kai.scheduler/subgroup-name: c")
        + pod("b", spec=KAI, annotations="pod-group-name: g", labels="kai.scheduler/subgroup-name: d"),
        "a b",
        "",
        "kai-scheduler",
    ),
    Case(
        "kai.scheduler/preemptibility",
        SMALL
        + KAI_QUEUE
        + pod("a", spec=KAI, labels="kai.scheduler/queue: q, kai.scheduler/preemptibility: non-preemptible")
        + pod("b", spec=KAI, labels="kai.scheduler/queue: q, kai.scheduler/preemptibility: non-preemptible"),
        "a",
        "a b",
        "kai-scheduler",
    ),
    # YuniKorn's, with which an application is found and its queue.
]

ONE_CPU = (
    "spec: {schedulerName: kai-scheduler, containers: [{name: pytorch, image: i, resources: {requests: {cpu: 1}}}]}"
)


def pytorch(name: str, workers: int, metadata: str, template: str = "") -> str:
    return f"""
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: {name}, namespace: default, {metadata}}}
spec: {{pytorchReplicaSpecs: {{Worker: {{replicas: {workers}, template: {{{template}{ONE_CPU}}}}}}}}}"""


RAY = """
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: z, namespace: default, labels: {kai.scheduler/queue: q, ray.io/priority-class-name: build}}
spec:
  headGroupSpec:
    rayStartParams: {}
    template:
      spec: {schedulerName: kai-scheduler, containers: [{name: h, image: i, resources: {requests: {cpu: 2}}}]}"""
KAI_TOPOLOGY = """
---
apiVersion: kai.scheduler/v1alpha1
kind: Topology
metadata: {name: racks}
spec: {levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}"""
KAI_RACKS = "labels: {kai.scheduler/queue: q}, annotations: {kai.scheduler/topology: racks}"
IN_SEGMENTS = "kai.scheduler/segment-size: '2', kai.scheduler/segment-topology-required-placement: rack"
IN_RACK = "kai.scheduler/topology: racks, kai.scheduler/topology-required-placement: rack"

GANG_CASES += [
    Case(
        "kai.scheduler/topology-required-placement",
        RACKS
        + KAI_QUEUE
        + KAI_TOPOLOGY
        + pytorch("a", 3, f"labels: {{kai.scheduler/queue: q}}, annotations: {{{IN_RACK}}}"),
        "",
        "a-worker-0 a-worker-1 a-worker-2",
        "kai-scheduler",
    ),
    Case(
        "kai.scheduler/topology-preferred-placement",
        RACKS
        + KAI_QUEUE
        + KAI_TOPOLOGY
        + pod("taken", spec="nodeName: n0, ")
        + pytorch(
            "a",
            2,
            f"{KAI_RACKS[:-1]}, kai.scheduler/topology-preferred-placement: rack}}",
        ),
        "a-worker-0:r1 a-worker-1:r1",
        "a-worker-0:r0 a-worker-1:r1",
        "kai-scheduler",
    ),
    Case(
        "kai.scheduler/segment-size",
        RACKS
        + KAI_QUEUE
        + KAI_TOPOLOGY
        + pod("taken", spec="nodeName: n0, ")
        + pytorch(
            "a",
            2,
            KAI_RACKS,
            f"metadata: {{annotations: {{{IN_SEGMENTS}}}}}, ",
        ),
        "a-worker-0:r1 a-worker-1:r1",
        "a-worker-0:r0 a-worker-1:r1",
        "kai-scheduler",
    ),
    Case(
        "ray.io/priority-class-name",
        SMALL
        + KAI_QUEUE.replace("1000", "2000")
        + pod("a", spec=KAI, labels="kai.scheduler/queue: q, priorityClassName: build-preemptible")
        + RAY,
        "z-head",
        "a",
        "kai-scheduler",
    ),
]
