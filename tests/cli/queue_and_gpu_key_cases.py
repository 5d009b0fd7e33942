"""What labels and annotations of queues and of GPUs change, a case each."""

from gang_key_cases import SMALL, Case, group, pod

KUEUE = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: q, namespace: default}
spec: {clusterQueue: q}"""
IN_QUEUE = "kueue.x-k8s.io/queue-name: q"
PREBUILT = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: mine, namespace: default}
spec:
  queueName: q
  active: false
  podSets:
  - {name: main, count: 1, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: a
  namespace: default
  labels: {kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/prebuilt-workload-name: mine}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}}"""
GROUP = "kueue.x-k8s.io/pod-group-name: g"

QUEUE_AND_GPU_CASES = [
    Case("kueue.x-k8s.io/prebuilt-workload-name", SMALL + KUEUE + PREBUILT, "", "a-t4fgw"),
    Case(
        "kueue.x-k8s.io/pod-group-fast-admission",
        SMALL
        + KUEUE.replace("nominalQuota: 1", "nominalQuota: 2")
        + pod(
            "a",
            labels=f"{IN_QUEUE}, {GROUP}",
            annotations="kueue.x-k8s.io/pod-group-total-count: '2', kueue.x-k8s.io/pod-group-fast-admission: 'true'",
        ),
        "a",
        "",
    ),
]

REGISTER = (
    '[{"id":"GPU-0","count":10,"devmem":1000,"devcore":100,"type":"NVIDIA-A100","health":true},'
    '{"id":"GPU-1","count":10,"devmem":1000,"devcore":100,"type":"NVIDIA-A100","health":true}]'
)


def hami_node(name: str, more: str = "") -> str:
    return f"""
---
apiVersion: v1
kind: Node
metadata: {{name: {name}, annotations: {{hami.io/node-nvidia-register: '{REGISTER}'{more}}}}}
status: {{allocatable: {{cpu: 8, memory: 8Gi, pods: 10, nvidia.com/gpu: 20}}}}"""


def hami_pod(name: str, memory: int, annotations: str = "", spec: str = "", gpus: int = 1) -> str:
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, annotations: {{{annotations}}}}}
spec:
  {spec}
  containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: {gpus}, nvidia.com/gpumem: {memory}}}}}}}]"""


QUEUE_AND_GPU_CASES += [
    Case(
        "hami.io/device-cordon", hami_node("n", ", hami.io/device-cordon: 'GPU-0,GPU-1'") + hami_pod("a", 600), "", "a"
    ),
    Case(
        "hami.io/gpu-scheduler-policy",
        hami_node("n")
        + hami_pod("a", 400)
        + hami_pod("b", 400, "hami.io/gpu-scheduler-policy: binpack")
        + hami_pod("c", 1000),
        "a b c",
        "a b",
    ),
    Case(
        "hami.io/node-scheduler-policy",
        hami_node("m")
        + hami_node("n")
        + hami_pod("a", 400)
        + hami_pod("b", 400, "hami.io/node-scheduler-policy: spread"),
        "a:m b:n",
        "a:m b:m",
    ),
    Case(
        "hami.io/vgpu-devices-allocated",
        hami_node("n")
        + hami_pod(
            "a", 400, "hami.io/vgpu-devices-allocated: 'GPU-0,NVIDIA,400,0:;', hami.io/vgpu-node: n", "nodeName: n"
        )
        + hami_pod(
            "b", 400, "hami.io/vgpu-devices-allocated: 'GPU-0,NVIDIA,400,0:;', hami.io/vgpu-node: n", "nodeName: n"
        )
        + hami_pod("c", 1000),
        "c",
        "",
    ),
]

VOLCANO_QUEUES = """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: qa}
spec: {weight: 1}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: qb}
spec: {weight: 1}"""


def volcano_pods(name: str, count: int, queue: str, more: str = "", spec: str = "") -> str:
    marks = f"scheduling.k8s.io/group-name: {name}, volcano.sh/preemptable: 'true'{more}"
    pods = (pod(f"{name}{number}", annotations=marks, spec=spec) for number in range(count))
    return group("volcano", name, f"{{minMember: 1, queue: {queue}}}") + "".join(pods)


QUEUE_AND_GPU_CASES += [
    Case(
        "scheduling.volcano.sh/queue-name",
        SMALL
        + VOLCANO_QUEUES.replace("weight: 1", "weight: 1, capability: {cpu: 1}")
        + pod("a", annotations="scheduling.volcano.sh/queue-name: qa")
        + pod("b", annotations="scheduling.volcano.sh/queue-name: qa"),
        "a",
        "a b",
    ),
    Case(
        "volcano.sh/task-priority",
        SMALL
        + VOLCANO_QUEUES
        + group("volcano", "g", "{minMember: 1, queue: qa}")
        + pod("g0", annotations="scheduling.k8s.io/group-name: g", cpu="2")
        + pod("g1", annotations="scheduling.k8s.io/group-name: g, volcano.sh/task-priority: '5'", cpu="2"),
        "g1",
        "g0",
    ),
    Case(
        "volcano.sh/preemptable",
        SMALL
        + VOLCANO_QUEUES
        + volcano_pods("a", 2, "qa", spec="nodeName: n, ").replace("'true'", "'false'")
        + volcano_pods("b", 1, "qb"),
        "",
        "b0",
    ),
]

QUEUES_YAML = """
partitions:
- name: default
  placementrules: [{name: provided}]
  queues: [{name: root, queues: [{name: a, resources: {max: {cpu: 1}}}, {name: default, maxapplications: 1}]}]"""
TIME_SLICING = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"


def window(notice: int) -> str:
    """The queue has its quota until nine; it is ten to nine, as the job was made then."""
    return f"""
apiVersion: config.mooring.dev/v1alpha1
kind: TenantPolicy
quotaWindows:
- {{queue: q, flavor: f, resource: cpu, from: "09:00", to: "17:00", nominalQuota: 0, noticeSeconds: {notice}}}"""


def queued_job(labels: str = "", annotations: str = "") -> str:
    return f"""
---
apiVersion: batch/v1
kind: Job
metadata:
  name: a
  namespace: default
  creationTimestamp: "2026-03-02T08:50:00Z"
  labels: {{{IN_QUEUE}, {labels}}}
  annotations: {{{annotations}}}
spec:
  template:
    spec: {{restartPolicy: Never, containers: [{{name: c, image: i, resources: {{requests: {{cpu: 1}}}}}}]}}"""


def gpu_pod(name: str) -> str:
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default}}
spec: {{containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}"""


def milli_pod(name: str, milli: int, more: str = "", spec: str = "") -> str:
    return pod(
        name, annotations=f"alibabacloud.com/gpu-milli: '{milli}', alibabacloud.com/gpu-count: '1'{more}", spec=spec
    )


QUEUE_AND_GPU_CASES += [
    Case(
        "yunikorn.apache.org/queue",
        SMALL + "".join(pod(name, labels="applicationId: x, yunikorn.apache.org/queue: root.a") for name in "ab"),
        "a",
        "a b",
        config=QUEUES_YAML,
    ),
    Case(
        "yunikorn.apache.org/app-id",
        SMALL
        + "".join(pod(name, spec="schedulerName: yunikorn, ", labels="yunikorn.apache.org/app-id: x") for name in "ab"),
        "a b",
        "a",
        "yunikorn",
        QUEUES_YAML,
    ),
    Case(
        "mooring.dev/preemptible",
        SMALL + KUEUE + queued_job(annotations="mooring.dev/preemptible: 'true'"),
        "a-t4fgw",
        "",
        config=window(notice=3600),
    ),
    Case(
        "kueue.x-k8s.io/max-exec-time-seconds",
        SMALL + KUEUE + queued_job(labels="kueue.x-k8s.io/max-exec-time-seconds: '3600'"),
        "",
        "a-t4fgw",
        config=window(notice=0),
    ),
    Case(
        "mooring.dev/replicas-without",
        SMALL + pod("'a-{i}'", annotations="mooring.dev/replicas: '2', mooring.dev/replicas-without: a-1"),
        "a-0",
        "a-0 a-1",
    ),
    Case(
        "nvidia.com/gpu.replicas",
        SMALL.replace("{name: n}", "{name: n, labels: {nvidia.com/gpu.replicas: '2'}}")
        + gpu_pod("a")
        + gpu_pod("b")
        + gpu_pod("c"),
        "a b",
        "a b c",
        config=TIME_SLICING,
    ),
    Case(
        "alibabacloud.com/gpu-index",
        SMALL.replace("nvidia.com/gpu", "alibabacloud.com/gpu-count")
        + milli_pod("a", 400, ", alibabacloud.com/gpu-index: '0'", "nodeName: n, ").replace("cpu: 1", "cpu: 0")
        + milli_pod("b", 400, ", alibabacloud.com/gpu-index: '1'", "nodeName: n, ").replace("cpu: 1", "cpu: 0")
        + milli_pod("c", 1000),
        "",
        "c",
    ),
]
