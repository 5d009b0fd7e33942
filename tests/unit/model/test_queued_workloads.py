"""What queues becomes a Workload as Kueue would build it, and its pods wait."""

from typing import Any

import pytest
from job_builders import (
    QUEUE_NAME,
    Document,
    document,
    grouped_pod,
    held,
    is_held,
    job,
    job_set,
    load,
    mpi_job,
    names,
    owned,
    plain_pod,
    pytorch_job,
    ray_cluster,
    ray_job,
    replicated_job,
    template,
    training_job,
    worker_group,
)

from mooring.model.api.kueue_workload import TopologyRequest, Workload
from mooring.model.loading.manifests import Manifests
from mooring.model.queued.workloads import QueuedWorkload, queued_workloads


def only(manifests: Manifests) -> QueuedWorkload:
    (workload,) = queued_workloads(manifests)
    return workload


def counts(workload: QueuedWorkload) -> dict[str, int]:
    return {pod_set.name: pod_set.count for pod_set in workload.workload.spec.pod_sets}


def volcano_job(name: str = "train", *, queue: str = "") -> Document:
    tasks = [
        {"name": task, "replicas": replicas, "template": template()} for task, replicas in (("ps", 1), ("worker", 2))
    ]
    return document("batch.volcano.sh/v1alpha1", "Job", name, {"tasks": tasks}, queue=queue)


def leader_worker_set(*, queue: str = "", replicas: int = 1, size: int = 3, leader: bool = True) -> Document:
    inner = {"size": size, "workerTemplate": template(), **({"leaderTemplate": template("2")} if leader else {})}
    spec = {"replicas": replicas, "leaderWorkerTemplate": inner}
    return document("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "serve", spec, queue=queue)


def replicated(kind: str, replicas: int = 2, *, queue: str = "", **more: Any) -> Document:
    inner = template()
    del inner["spec"]["restartPolicy"]
    return document("apps/v1", kind, "web", {"replicas": replicas, "template": inner}, queue=queue, **more)


@pytest.mark.parametrize(
    ("found", "key", "pod_sets", "pods"),
    [
        pytest.param(
            job("train", queue="team", suspend=True, parallelism=3, completions=2),
            ("Job", "default", "train"),
            {"main": 2},
            {"main": ["default/train-96gf9", "default/train-x99kp"]},
            id="Job",
        ),
        pytest.param(
            job_set("train", replicated_job("driver"), replicated_job("worker", 2), queue="team", suspend=True),
            ("JobSet", "default", "train"),
            {"driver": 1, "worker": 2},
            {
                "driver": ["default/train-driver-0-0-tvchk"],
                "worker": ["default/train-worker-0-0-hpr6x", "default/train-worker-1-0-bmvf5"],
            },
            id="JobSet",
        ),
        pytest.param(
            volcano_job(queue="team"),
            ("Job", "default", "train"),
            {"ps": 1, "worker": 2},
            {"ps": ["default/train-ps-0"], "worker": ["default/train-worker-0", "default/train-worker-1"]},
            id="Volcano Job",
        ),
        pytest.param(
            pytorch_job({"Worker": 1, "Master": 1}, queue="team", runPolicy={"suspend": True}),
            ("PyTorchJob", "default", "train"),
            {"master": 1, "worker": 1},
            {"master": ["default/train-master-0"], "worker": ["default/train-worker-0"]},
            id="PyTorchJob, the master first",
        ),
        pytest.param(
            training_job("TFJob", "tfReplicaSpecs", {"Worker": 1, "PS": 1}, queue="team"),
            ("TFJob", "default", "train"),
            {"ps": 1, "worker": 1},
            {"ps": ["default/train-ps-0"], "worker": ["default/train-worker-0"]},
            id="TFJob",
        ),
        pytest.param(
            mpi_job(1, queue="team", runPolicy={"suspend": True}),
            ("MPIJob", "default", "train"),
            {"launcher": 1, "worker": 1},
            {"launcher": ["default/train-launcher-0"], "worker": ["default/train-worker-0"]},
            id="MPIJob v2beta1",
        ),
        pytest.param(
            mpi_job(1, queue="team", version="v1"),
            ("MPIJob", "default", "train"),
            {"launcher": 1, "worker": 1},
            {"launcher": ["default/train-launcher"], "worker": ["default/train-worker-0"]},
            id="MPIJob v1",
        ),
        pytest.param(
            ray_cluster("ray", worker_group("Big", replicas=1, numOfHosts=2), queue="team", suspend=True),
            ("RayCluster", "default", "ray"),
            {"head": 1, "big": 2},
            {"head": ["default/ray-head"], "big": ["default/ray-Big-worker-0", "default/ray-Big-worker-1"]},
            id="RayCluster",
        ),
        pytest.param(
            ray_job("ray", worker_group(replicas=1), queue="team", suspend=True),
            ("RayJob", "default", "ray"),
            {"head": 1, "workers": 1, "submitter": 1},
            {
                "head": ["default/ray-raycluster-head"],
                "workers": ["default/ray-raycluster-workers-worker-0"],
                "submitter": ["default/ray-submitter"],
            },
            id="RayJob",
        ),
        pytest.param(
            replicated("StatefulSet", queue="team"),
            ("StatefulSet", "default", "web"),
            {"main": 2},
            {"main": ["default/web-0", "default/web-1"]},
            id="StatefulSet",
        ),
        pytest.param(
            leader_worker_set(queue="team"),
            ("LeaderWorkerSet", "default", "serve"),
            {"leader": 1, "worker": 2},
            {"leader": ["default/serve-0"], "worker": ["default/serve-0-1", "default/serve-0-2"]},
            id="LeaderWorkerSet",
        ),
        pytest.param(
            leader_worker_set(queue="team", leader=False, size=2),
            ("LeaderWorkerSet", "default", "serve"),
            {"main": 2},
            {"main": ["default/serve-0", "default/serve-0-1"]},
            id="LeaderWorkerSet of one template",
        ),
        pytest.param(plain_pod("web"), ("Pod", "default", "web"), {"main": 1}, {"main": ["default/web"]}, id="Pod"),
    ],
)
def test_a_job_becomes_pod_sets_and_its_pods_wait(
    found: Document, key: tuple[str, str, str], pod_sets: dict[str, int], pods: dict[str, list[str]]
) -> None:
    manifests = load(found)

    workload = only(manifests)

    assert (workload.owner_key, counts(workload), workload.pods) == (key, pod_sets, pods)
    assert list(counts(workload)) == list(pod_sets)
    assert workload.workload.spec.queue_name == "team"
    assert all(held(manifests).values()) and len(manifests.pods) == sum(map(len, pods.values()))


def test_workloads_are_named_as_kueue_names_them() -> None:
    found = job("train", queue="team", metadata={"uid": "4f1c"})

    workload = only(load(found)).workload

    # sha1 of kind, group, name and uid, a line each
    assert workload.metadata.name == "job-train-eeb64"
    (owner,) = workload.metadata.owner_references or []
    assert (owner.api_version, owner.kind, owner.name, owner.uid, owner.controller) == (
        "batch/v1",
        "Job",
        "train",
        "4f1c",
        True,
    )


def test_each_replica_of_a_leader_worker_set_queues_on_its_own() -> None:
    workloads = queued_workloads(load(leader_worker_set(queue="team", replicas=2)))

    assert [workload.pods["leader"] for workload in workloads] == [["default/serve-0"], ["default/serve-1"]]
    assert [workload.workload.metadata.name.rpartition("-")[0] for workload in workloads] == [
        "leaderworkerset-serve-0",
        "leaderworkerset-serve-1",
    ]


def test_pods_of_a_deployment_queue_one_by_one_with_its_priority() -> None:
    urgent = document("kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass", "urgent", {})
    found = replicated("Deployment", queue="team", labels={"kueue.x-k8s.io/priority-class": "urgent"})

    workloads = queued_workloads(load({**urgent, "value": 5}, found))

    assert [workload.owner_key for workload in workloads] == [
        ("Pod", "default", "web-5b46688cdd-2kv2k"),
        ("Pod", "default", "web-5b46688cdd-mnp8z"),
    ]
    assert [(workload.workload.spec.queue_name, workload.workload.spec.priority) for workload in workloads] == [
        ("team", 5)
    ] * 2


def test_a_pod_whose_template_names_the_queue_queues_though_its_owner_does_not() -> None:
    inner = template()
    inner["metadata"]["labels"] = {QUEUE_NAME: "team"}
    found = document("apps/v1", "ReplicaSet", "web", {"replicas": 2, "template": inner})

    assert [workload.owner_key[2] for workload in queued_workloads(load(found))] == ["web-mz6l6", "web-c5xrl"]


def test_what_belongs_to_queued_work_does_not_queue_again() -> None:
    cluster = owned(ray_cluster("tune-x7", worker_group(replicas=1), queue="team"), "RayJob", "tune")
    found = ray_job("tune", worker_group(replicas=1), queue="team", submissionMode="HTTPMode")

    workload = only(load({**found, "status": {"rayClusterName": "tune-x7"}}, cluster))

    assert workload.owner_key == ("RayJob", "default", "tune")
    assert workload.pods == {"head": ["default/tune-x7-head"], "workers": ["default/tune-x7-workers-worker-0"]}


def test_jobs_of_two_apis_with_one_name_keep_their_pods_apart() -> None:
    workloads = queued_workloads(load(job("train", queue="team"), volcano_job("train", queue="team")))

    assert [workload.pods for workload in workloads] == [
        {"main": ["default/train-96gf9"]},
        {"ps": ["default/train-ps-0"], "worker": ["default/train-worker-0", "default/train-worker-1"]},
    ]


def test_work_that_names_no_queue_does_not_queue() -> None:
    manifests = load(job("train"), plain_pod("web", queue=""), replicated("StatefulSet"))

    assert queued_workloads(manifests) == []
    assert not any(held(manifests).values())


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"conditions": [{"type": "Complete", "status": "True"}]}, id="complete"),
        pytest.param({"conditions": [{"type": "Failed", "status": "True"}]}, id="failed"),
    ],
)
def test_work_that_is_over_is_left_out(status: Document) -> None:
    assert queued_workloads(load({**job("train", queue="team"), "status": status})) == []


def test_a_pod_that_is_over_is_left_out() -> None:
    assert queued_workloads(load({**plain_pod("web"), "status": {"phase": "Succeeded"}})) == []


def test_a_suspended_cron_job_queues_nothing() -> None:
    spec = {"suspend": True, "jobTemplate": {"metadata": {"labels": {QUEUE_NAME: "team"}}, "spec": job()["spec"]}}

    assert names(load(document("batch/v1", "CronJob", "nightly", spec))) == []


def test_a_run_of_a_cron_job_queues() -> None:
    spec = {"jobTemplate": {"metadata": {"labels": {QUEUE_NAME: "team"}}, "spec": job(suspend=True)["spec"]}}

    workload = only(load(document("batch/v1", "CronJob", "nightly", spec)))

    assert (workload.owner_key, workload.pods) == (("Job", "default", "nightly"), {"main": ["default/nightly-pl92c"]})


def test_jobs_without_a_queue_go_to_their_namespaces_default_one() -> None:
    queue = document("kueue.x-k8s.io/v1beta1", "LocalQueue", "default", {"clusterQueue": "all"}, namespace="ml")
    manifests = load(
        queue,
        job("here", metadata={"namespace": "ml"}, suspend=True),
        job("elsewhere", suspend=True),
        plain_pod("web", queue="", namespace="ml"),
    )

    assert [(workload.owner_key, workload.workload.spec.queue_name) for workload in queued_workloads(manifests)] == [
        (("Job", "ml", "here"), "default")
    ]
    assert names(manifests) == ["web", "here-v9qff"]


def test_a_job_may_say_with_how_few_pods_it_would_start() -> None:
    annotations = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    found = job("train", queue="team", parallelism=5, metadata={"annotations": annotations})

    (pod_set,) = only(load(found)).workload.spec.pod_sets

    assert (pod_set.count, pod_set.min_count) == (5, 2)


def test_pods_that_succeeded_are_reclaimable() -> None:
    found = {**job("train", queue="team", parallelism=3, completions=4), "status": {"succeeded": 2}}
    done = {"replicatedJobsStatus": [{"name": "worker", "succeeded": 1}]}
    several = {**job_set("several", replicated_job("worker", 2, pods=2), queue="team"), "status": done}

    first, second = queued_workloads(load(found, several))

    assert [(pods.name, pods.count) for pods in first.workload.status.reclaimable_pods or ()] == [("main", 1)]
    assert [(pods.name, pods.count) for pods in second.workload.status.reclaimable_pods or ()] == [("worker", 2)]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"podset-required-topology": "rack"}, {"required": "rack"}, id="required"),
        pytest.param({"podset-preferred-topology": "rack"}, {"preferred": "rack"}, id="preferred"),
        pytest.param({"podset-unconstrained-topology": "true"}, {"unconstrained": True}, id="unconstrained"),
        pytest.param({"podset-unconstrained-topology": "false"}, None, id="not even unconstrained"),
        pytest.param(
            {"podset-required-topology": "block", "podset-group-name": "g"},
            {"required": "block", "pod_set_group_name": "g"},
            id="with another pod set",
        ),
        pytest.param(
            {"podset-slice-required-topology": "rack", "podset-slice-size": "2"},
            {"pod_set_slice_required_topology": "rack", "pod_set_slice_size": 2},
            id="slices",
        ),
    ],
)
def test_where_pods_want_to_be_is_read_from_their_annotations(
    annotations: dict[str, str], expected: dict[str, Any] | None
) -> None:
    given = {f"kueue.x-k8s.io/{key}": value for key, value in annotations.items()}
    found = job("train", queue="team", parallelism=4, template=template(annotations=given))

    (pod_set,) = only(load(found)).workload.spec.pod_sets

    index = "batch.kubernetes.io/job-completion-index"
    wanted = None if expected is None else TopologyRequest(pod_index_label=index, **expected)
    assert pod_set.topology_request == wanted


def test_pod_sets_of_a_job_set_say_how_their_pods_are_ranked() -> None:
    inner = template(annotations={"kueue.x-k8s.io/podset-required-topology": "rack"})
    worker = {"name": "worker", "replicas": 3, "template": {"spec": {"template": inner}}}

    (pod_set,) = only(load(job_set("train", worker, queue="team"))).workload.spec.pod_sets

    request = pod_set.topology_request
    assert request is not None
    assert (request.sub_group_index_label, request.sub_group_count) == ("jobset.sigs.k8s.io/job-index", 3)


def workload_class(name: str, value: int) -> Document:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def pod_class(name: str, value: int, **more: Any) -> Document:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return {**head, "value": value, **more}


def reference(workload: Workload) -> tuple[str, str] | None:
    found = workload.spec.priority_class_ref
    return None if found is None else (found.kind, found.name)


@pytest.mark.parametrize(
    ("classes", "found", "expected"),
    [
        pytest.param([], job(queue="team"), (0, None), id="nobody says anything"),
        pytest.param(
            [workload_class("urgent", 9), pod_class("high", 3)],
            job(
                queue="team",
                metadata={"labels": {"kueue.x-k8s.io/priority-class": "urgent"}},
                template=template(priorityClassName="high"),
            ),
            (9, ("WorkloadPriorityClass", "urgent")),
            id="a class of workloads before one of pods",
        ),
        pytest.param(
            [workload_class("default", 4), pod_class("high", 3)],
            job(queue="team", template=template(priorityClassName="high")),
            (4, ("WorkloadPriorityClass", "default")),
            id="the default class of workloads",
        ),
        pytest.param(
            [pod_class("high", 3)],
            job(queue="team", template=template(priorityClassName="high")),
            (3, ("PriorityClass", "high")),
            id="the class of the pods",
        ),
        pytest.param(
            [pod_class("usual", 2, globalDefault=True)],
            job(queue="team"),
            (2, ("PriorityClass", "usual")),
            id="the default class of pods",
        ),
        pytest.param(
            [pod_class("high", 3), pod_class("low", 1)],
            pytorch_job(
                {"Worker": {"template": template(priorityClassName="low")}},
                queue="team",
                runPolicy={"schedulingPolicy": {"priorityClass": "high"}},
            ),
            (3, ("PriorityClass", "high")),
            id="a training job's own word before its pods'",
        ),
        pytest.param([], job(queue="team", template=template(priority=6)), (6, None), id="a priority as such"),
    ],
)
def test_priority_comes_from_the_class_that_is_nearest_to_the_job(
    classes: list[Document], found: Document, expected: tuple[int, tuple[str, str] | None]
) -> None:
    workload = only(load(*classes, found)).workload

    assert (workload.spec.priority, reference(workload)) == expected


def test_limits_and_times_are_handed_down_from_the_job() -> None:
    found = job(
        queue="team",
        metadata={
            "labels": {"kueue.x-k8s.io/max-exec-time-seconds": "3600"},
            "annotations": {"mooring.dev/check-placement": "true", "example.com/other": "x"},
            "creationTimestamp": "2025-06-01T12:00:00Z",
        },
    )

    workload = only(load(found)).workload

    assert workload.spec.maximum_execution_time_seconds == 3600
    assert workload.metadata.creation_timestamp == "2025-06-01T12:00:00Z"
    assert workload.metadata.annotations == {"mooring.dev/check-placement": "true"}


def test_what_is_given_first_comes_first_where_no_times_are_given() -> None:
    workloads = queued_workloads(load(job("b", queue="team"), job("a", queue="team"), plain_pod("c")))

    assert sorted(workloads, key=lambda workload: workload.workload.metadata.uid) == workloads


def test_a_group_of_pods_is_one_workload_with_a_pod_set_for_each_role() -> None:
    manifests = load(grouped_pod("a", 3), grouped_pod("b", 3, cpu="4"), grouped_pod("c", 3))

    workload = only(manifests)

    assert (workload.owner_key, workload.workload.metadata.name) == (("PodGroup", "default", "crew"), "crew")
    assert sorted(workload.pods.values()) == [["default/a", "default/c"], ["default/b"]]
    assert {name: len(pods) for name, pods in workload.pods.items()} == counts(workload)
    assert list(counts(workload)) == sorted(counts(workload))
    roles = {(pod.metadata.annotations or {})["kueue.x-k8s.io/role-hash"] for pod in manifests.pods}
    assert roles == set(counts(workload))


def test_a_group_that_lacks_pods_waits_for_them() -> None:
    manifests = load(grouped_pod("a", 3), grouped_pod("b", 3))

    assert queued_workloads(manifests) == []
    assert held(manifests) == {"a": True, "b": True}


def test_a_group_with_fast_admission_does_not_wait_for_all_of_its_pods() -> None:
    annotations = {"kueue.x-k8s.io/pod-group-fast-admission": "true"}

    workload = only(load(grouped_pod("a", 3, annotations=annotations)))

    assert (list(counts(workload).values()), list(workload.pods.values())) == ([3], [["default/a"]])


def test_pods_beyond_the_total_of_their_group_stay_outside() -> None:
    times = [("a", "2025-06-01T12:00:02Z"), ("b", "2025-06-01T12:00:00Z"), ("c", "2025-06-01T12:00:01Z")]
    manifests = load(*(grouped_pod(name, 2, creationTimestamp=time) for name, time in times))

    workload = only(manifests)

    assert list(workload.pods.values()) == [["default/b", "default/c"]]
    assert workload.workload.metadata.creation_timestamp == "2025-06-01T12:00:01Z"
    assert held(manifests)["a"]


def test_pods_of_a_group_that_succeeded_are_reclaimable() -> None:
    done = {**grouped_pod("a", 2), "status": {"phase": "Succeeded"}}

    workload = only(load(done, grouped_pod("b", 2)))

    assert list(counts(workload).values()) == [2]
    assert [pods.count for pods in workload.workload.status.reclaimable_pods or ()] == [1]
    assert list(workload.pods.values()) == [["default/b"]]


def test_a_group_that_is_over_is_left_out() -> None:
    pods = [{**grouped_pod(name, 2), "status": {"phase": "Succeeded"}} for name in "ab"]

    assert queued_workloads(load(*pods)) == []


def test_pods_that_wait_share_their_spec_as_those_that_do_not() -> None:
    manifests = load(job("train", queue="team", parallelism=100))

    assert len({id(pod.spec) for pod in manifests.pods}) == 1
    assert is_held(manifests.pods[0])
