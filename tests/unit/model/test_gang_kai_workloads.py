"""Workloads whose pods are KAI's are the gangs that its pod-grouper would make of them."""

import pytest
from gang_manifests import memberships, only_gang, pod_named, read

from mooring.model.gangs.gang import Gang, Role
from mooring.model.keys import GangKey
from mooring.model.priorities import is_preemptible
from mooring.model.topology.requests import TopologyRequest

SPEC = "{schedulerName: kai-scheduler, containers: [{name: main, image: x}]}"
TEMPLATE = f"{{spec: {SPEC}}}"


def pytorch_job(spec: str = "", *, meta: str = "", workers: int = 3, template: str = TEMPLATE) -> str:
    return f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: train, uid: "7", {meta}}}
spec:
  {spec}
  pytorchReplicaSpecs:
    Master: {{replicas: 1, template: {TEMPLATE}}}
    Worker: {{replicas: {workers}, template: {template}}}
"""


def test_a_training_job_is_a_gang_of_all_its_replicas_in_its_queue() -> None:
    manifests = read(pytorch_job(meta="labels: {kai.scheduler/queue: vision}"))

    assert only_gang(manifests) == Gang(
        key=GangKey("PodGroup.scheduling.run.ai/default/pg-train-7"),
        name="default/pg-train-7",
        minimum=4,
        roles=(Role("master", 1), Role("worker", 3)),
        queue="vision",
        priority=50,
        preemption_policy="PreemptLowerPriority",
    )
    assert memberships(manifests)["train-worker-2"] == ("default/pg-train-7", "worker", 2)
    assert {(pod.metadata.labels or {})["kai.scheduler/queue"] for pod in manifests.pods} == {"vision"}


def test_pods_of_other_schedulers_are_left_alone() -> None:
    assert read(pytorch_job().replace("kai-scheduler", "default-scheduler")).gangs == []


def test_the_queue_of_its_workload_makes_pods_kais() -> None:
    text = pytorch_job(meta="labels: {kai.scheduler/queue: vision}").replace("kai-scheduler", "default-scheduler")

    assert only_gang(read(text)).minimum == 4


def test_a_workload_without_a_queue_is_in_kais_default_queue() -> None:
    assert only_gang(read(pytorch_job())).queue == "default-queue"


@pytest.mark.parametrize(
    ("spec", "minimum", "workers"),
    [
        pytest.param("elasticPolicy: {minReplicas: 2}", 2, 1, id="the least of an elastic job"),
        pytest.param("runPolicy: {schedulingPolicy: {minAvailable: 3}}", 3, 2, id="its scheduling policy"),
    ],
)
def test_a_training_job_may_need_fewer_than_all(spec: str, minimum: int, workers: int) -> None:
    gang = only_gang(read(pytorch_job(spec)))

    assert (gang.minimum, gang.roles) == (minimum, (Role("master", 1), Role("worker", workers)))


def test_workers_in_segments_each_have_a_place_of_their_own() -> None:
    marks = "kai.scheduler/segment-size: '2', kai.scheduler/segment-topology-required-placement: rack"
    template = f"{{metadata: {{annotations: {{{marks}}}}}, spec: {SPEC}}}"
    manifests = read(pytorch_job(meta="annotations: {kai.scheduler/topology: dc}", template=template))

    in_a_rack = TopologyRequest(required="rack", topology="dc")
    assert only_gang(manifests).roles == (
        Role("master", 1),
        Role("worker-0", 2, in_a_rack),
        Role("worker-1", 1, in_a_rack),
    )
    assert memberships(manifests)["train-worker-2"][1] == "worker-1"


def test_the_workload_says_where_all_of_it_wants_to_be() -> None:
    marks = "kai.scheduler/topology: dc, kai.scheduler/topology-required-placement: block"
    gang = only_gang(read(pytorch_job(meta=f"annotations: {{{marks}}}")))

    assert gang.topology_request == TopologyRequest(required="block", topology="dc")


@pytest.mark.parametrize(
    ("policy", "minimum"), [("AtStartup", 4), ("WaitForWorkersReady", 3)], ids=["at once", "when workers are ready"]
)
def test_an_mpi_job_counts_its_launcher_unless_that_comes_later(policy: str, minimum: int) -> None:
    manifests = read(f"""
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: train}}
spec:
  launcherCreationPolicy: {policy}
  mpiReplicaSpecs:
    Launcher: {{replicas: 1, template: {TEMPLATE}}}
    Worker: {{replicas: 3, template: {TEMPLATE}}}
""")

    assert only_gang(manifests).minimum == minimum
    assert {found[0] for found in memberships(manifests).values()} == {"default/pg-train"}


RAY_CLUSTER = f"""
  headGroupSpec: {{template: {TEMPLATE}}}
  workerGroupSpecs:
  - {{groupName: gpu, replicas: 4, minReplicas: 2, maxReplicas: 8, numOfHosts: 2, template: {TEMPLATE}}}
  - {{groupName: cpu, replicas: 3, template: {TEMPLATE}}}
  - {{groupName: none, replicas: 0, template: {TEMPLATE}}}
"""


def test_a_ray_cluster_needs_its_head_and_the_least_of_each_group() -> None:
    manifests = read(f"apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {{name: ray}}\nspec:{RAY_CLUSTER}")

    gang = only_gang(manifests)
    assert (gang.minimum, gang.roles) == (8, (Role("headgroup", 1), Role("gpu", 4), Role("cpu", 3)))
    assert memberships(manifests)["ray-cpu-worker-1"] == ("default/pg-ray", "cpu", 1)


def test_a_ray_job_is_one_gang_with_its_cluster() -> None:
    cluster = RAY_CLUSTER.replace("\n", "\n  ")
    manifests = read(
        "apiVersion: ray.io/v1\nkind: RayJob\n"
        "metadata: {name: tune, labels: {kai.scheduler/queue: vision, ray.io/priority-class-name: build}}\n"
        f"spec:\n  rayClusterSpec:{cluster}"
    )

    gang = only_gang(manifests)
    assert (gang.name, gang.minimum, gang.queue, gang.priority) == ("default/pg-tune", 8, "vision", 100)
    assert not gang.preemptible
    assert memberships(manifests)["tune-submitter"][:2] == ("default/pg-tune", "")


def leader_worker_set(spec: str = "", template: str = "") -> str:
    return f"""
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: serve}}
spec:
  replicas: 2
  {spec}
  leaderWorkerTemplate: {{size: 5, {template} workerTemplate: {TEMPLATE}}}
"""


def test_each_replica_of_a_leader_worker_set_is_a_gang() -> None:
    manifests = read(leader_worker_set())

    assert [(gang.name, gang.minimum, gang.roles) for gang in manifests.gangs] == [
        (f"default/pg-serve-group-{index}", 5, (Role("leader", 1), Role("workers", 4))) for index in range(2)
    ]
    assert memberships(manifests)["serve-1-2"] == ("default/pg-serve-group-1", "workers", 2)


def test_a_leader_that_is_ready_first_may_start_alone() -> None:
    gang = read(leader_worker_set("startupPolicy: LeaderReady")).gangs[0]

    assert (gang.minimum, gang.roles) == (1, (Role("leader", 1), Role("workers", 0)))


@pytest.mark.parametrize(
    ("policy", "roles", "leader"),
    [
        ("LeaderWorker", (Role("segment-0", 3), Role("segment-1", 2)), "segment-0"),
        ("LeaderExcluded", (Role("leader", 1), Role("segment-0", 2), Role("segment-1", 2)), "leader"),
    ],
)
def test_subgroups_of_a_leader_worker_set_are_segments(policy: str, roles: tuple[Role, ...], leader: str) -> None:
    template = f"subGroupPolicy: {{subGroupSize: 2, subGroupPolicyType: {policy}}},"
    manifests = read(leader_worker_set(template=template))

    assert manifests.gangs[0].roles == roles
    found = memberships(manifests)
    assert [found[name][1] for name in ("serve-0", "serve-0-2", "serve-0-3")] == [leader, "segment-0", "segment-1"]


def test_a_leader_alone_has_no_segments() -> None:
    text = leader_worker_set(template="subGroupPolicy: {subGroupSize: 1},").replace("size: 5", "size: 1")

    assert read(text).gangs[0].roles == (Role("leader", 1),)


def job_set(policy: str = "") -> str:
    job = f"{{parallelism: 2, completions: 2, template: {TEMPLATE}}}"
    return f"""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: pipeline}}
spec:
  {policy}
  replicatedJobs:
  - {{name: data, replicas: 1, template: {{spec: {job}}}}}
  - {{name: train, replicas: 3, template: {{spec: {job}}}}}
"""


def test_the_jobs_of_a_job_set_start_in_order_each_kind_a_gang() -> None:
    assert [(gang.name, gang.minimum) for gang in read(job_set()).gangs] == [
        ("default/pg-pipeline-data", 2),
        ("default/pg-pipeline-train", 6),
    ]


def test_a_job_set_in_any_order_is_one_gang() -> None:
    gang = only_gang(read(job_set("startupPolicy: {startupPolicyOrder: AnyOrder}")))

    assert (gang.name, gang.minimum) == ("default/pg-pipeline", 8)


@pytest.mark.parametrize(
    ("kind", "priority"), [("apps/v1 Deployment", 125), ("apps/v1 StatefulSet", 50), ("batch/v1 Job", 50)]
)
def test_pods_of_plain_controllers_start_one_by_one_with_kais_priority(kind: str, priority: int) -> None:
    api_version, name = kind.split()
    counts = "parallelism: 2" if name == "Job" else "replicas: 2, selector: {matchLabels: {app: a}}"
    labels = "labels: {app: a}"
    pod_spec = SPEC.replace("{sch", "{restartPolicy: Never, sch") if name == "Job" else SPEC
    manifests = read(f"""
apiVersion: {api_version}
kind: {name}
metadata: {{name: web, labels: {{kai.scheduler/queue: team}}}}
spec: {{{counts}, template: {{metadata: {{{labels}}}, spec: {pod_spec}}}}}
""")

    assert manifests.gangs == []
    assert [pod.spec.priority for pod in manifests.pods] == [priority] * 2
    assert {(pod.metadata.labels or {})["kai.scheduler/queue"] for pod in manifests.pods} == {"team"}


def bare(labels: str, spec: str = "") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: web, labels: {{{labels}}}}}
spec: {{schedulerName: kai-scheduler, {spec} containers: [{{name: main, image: x}}]}}
"""


@pytest.mark.parametrize(
    ("labels", "spec", "priority", "may_go"),
    [
        pytest.param("", "", 50, True, id="training by default"),
        pytest.param("priorityClassName: build", "", 100, False, id="a label"),
        pytest.param("priorityClassName: build", "priorityClassName: train,", 100, False, id="a label goes first"),
        pytest.param("priorityClassName: nobody", "priorityClassName: inference,", 125, False, id="an unknown label"),
        pytest.param("priorityClassName: build-preemptible", "", 75, True, id="a build that may go"),
        pytest.param("", "priority: 7,", 7, True, id="a priority of its own"),
        pytest.param("kai.scheduler/preemptibility: non-preemptible", "", 50, False, id="said not to go"),
        pytest.param(
            "priorityClassName: inference, kai.scheduler/preemptibility: preemptible", "", 125, True, id="said to go"
        ),
    ],
)
def test_a_pod_of_kai_has_the_priority_that_its_labels_say(labels: str, spec: str, priority: int, may_go: bool) -> None:
    pod = pod_named(read(bare(labels, spec)), "web")

    assert (pod.spec.priority, is_preemptible(pod)) == (priority, may_go)


def test_a_class_that_is_listed_goes_before_the_one_that_comes_with_kai() -> None:
    listed = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: train}\nvalue: 60\n---"

    assert pod_named(read(listed + bare("")), "web").spec.priority == 60


def test_a_group_that_is_given_is_taken_as_it_is() -> None:
    group = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: pg-train-7}\nspec: {minMember: 2}"

    assert only_gang(read(f"{pytorch_job()}---\n{group}")).minimum == 2


def test_a_group_of_a_build_is_nobodys_victim_unless_it_says_so() -> None:
    group = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 1, %s}"

    assert not only_gang(read(group % "priorityClassName: build")).preemptible
    assert only_gang(read(group % "priorityClassName: build, preemptibility: preemptible")).preemptible


def owned(name: str, kind: str, owner: str, *, api_version: str = "apps/v1", spec: str = "") -> str:
    reference = f"{{apiVersion: {api_version}, kind: {kind}, name: {owner}, uid: '1', controller: true}}"
    return f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, ownerReferences: [{reference}], labels: {{training.kubeflow.org/replica-type: worker}}}}
spec: {{priority: 0, nodeName: a, {spec} containers: [{{name: main, image: x}}]}}
"""


def test_pods_that_are_there_already_have_what_the_workload_on_top_says() -> None:
    manifests = read(f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, labels: {{kai.scheduler/queue: team}}}}
spec: {{replicas: 0, selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {SPEC}}}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: web, uid: "1", controller: true}}]
spec: {{replicas: 1, selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {SPEC}}}}}
{owned("web-1-x", "ReplicaSet", "web-1")}""")

    pod = pod_named(manifests, "web-1-x")
    assert (pod.spec.priority, (pod.metadata.labels or {})["kai.scheduler/queue"]) == (125, "team")


def test_pods_of_a_job_that_are_there_already_are_of_its_gang() -> None:
    job = pytorch_job(meta="labels: {kai.scheduler/queue: vision, priorityClassName: build}")
    manifests = read(job + owned("train-worker-0", "PyTorchJob", "train", api_version="kubeflow.org/v1"))

    gang = only_gang(manifests)
    assert (gang.minimum, gang.priority, gang.queue) == (4, 100, "vision")
    assert {found[0] for found in memberships(manifests).values()} == {"default/pg-train-7"}
