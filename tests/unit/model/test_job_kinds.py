"""Jobs of other controllers become the pods that those would make."""

from typing import Any

import pytest
from job_builders import (
    Document,
    document,
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

from mooring.model.api.pods import Pod


def owner(pod: Pod) -> tuple[str, str]:
    (reference,) = pod.metadata.owner_references or []
    return reference.kind, reference.name


def labels(pod: Pod, prefix: str) -> dict[str, str]:
    found = pod.metadata.labels or {}
    return {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}


def with_condition(found: Document, type_: str) -> Document:
    return {**found, "status": {"conditions": [{"type": type_, "status": "True"}]}}


def test_a_job_set_makes_the_pods_of_its_jobs() -> None:
    manifests = load(job_set("train", replicated_job("driver"), replicated_job("worker", 2, pods=2)))

    assert names(manifests) == [
        "train-driver-0-0-tvchk",
        "train-worker-0-0-hpr6x",
        "train-worker-0-1-7rlcg",
        "train-worker-1-0-bmvf5",
        "train-worker-1-1-zpplk",
    ]
    last = manifests.pods[-1]
    assert owner(last) == ("Job", "train-worker-1")
    assert labels(last, "jobset.sigs.k8s.io/") == {
        "jobset-name": "train",
        "replicatedjob-name": "worker",
        "restart-attempt": "0",
        "replicatedjob-replicas": "2",
        "global-replicas": "3",
        "job-index": "1",
        "job-global-index": "2",
        "job-key": labels(manifests.pods[-2], "jobset.sigs.k8s.io/")["job-key"],
    }
    assert labels(last, "batch.kubernetes.io/") == {"job-name": "train-worker-1", "job-completion-index": "1"}
    assert (last.metadata.annotations or {})["jobset.sigs.k8s.io/job-index"] == "1"


def test_pods_of_one_job_of_a_job_set_share_their_spec() -> None:
    manifests = load(job_set("train", replicated_job("worker", 2, pods=50)))

    assert len({id(pod.spec) for pod in manifests.pods}) == 1


def test_a_job_set_with_exclusive_topology_keeps_each_job_to_a_domain_of_its_own() -> None:
    annotations = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    manifests = load(job_set("train", replicated_job("worker", 2), annotations=annotations))

    first, second = manifests.pods
    keys = [labels(pod, "jobset.sigs.k8s.io/")["job-key"] for pod in (first, second)]
    affinity = second.spec.affinity
    assert affinity is not None and affinity.pod_affinity is not None and affinity.pod_anti_affinity is not None
    ((own,), (others,)) = affinity.pod_affinity.required or [], affinity.pod_anti_affinity.required or []
    assert own.topology_key == others.topology_key == "rack"
    assert own.label_selector is not None and others.label_selector is not None
    assert [found.values for found in own.label_selector.match_expressions or ()] == [[keys[1]]]
    assert [(found.operator, found.values) for found in others.label_selector.match_expressions or ()] == [
        ("Exists", None),
        ("NotIn", [keys[1]]),
    ]
    assert keys[0] != keys[1]


def test_a_job_set_that_selects_nodes_by_job_name_gets_selector_and_toleration() -> None:
    annotations = {
        "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack",
        "alpha.jobset.sigs.k8s.io/node-selector": "true",
    }
    manifests = load(job_set("train", replicated_job("worker"), annotations=annotations))

    (pod,) = manifests.pods
    assert pod.spec.node_selector == {"alpha.jobset.sigs.k8s.io/namespaced-job": "default_train-worker-0"}
    assert [found.key for found in pod.spec.tolerations or ()] == ["alpha.jobset.sigs.k8s.io/no-schedule"]
    assert pod.spec.affinity is None


def test_a_job_set_makes_only_the_jobs_that_a_dump_lacks() -> None:
    known = owned(job("train-worker-0"), "JobSet", "train")
    pod = owned(plain_pod("train-worker-0-abcde", queue=""), "Job", "train-worker-0")

    manifests = load(job_set("train", replicated_job("worker", 2)), known, pod)

    assert names(manifests) == ["train-worker-0-abcde", "train-worker-1-0-bmvf5"]


def test_a_job_of_a_job_set_that_runs_without_pods_in_the_dump_gets_them_once() -> None:
    manifests = load(job_set("train", replicated_job("worker")), owned(job("train-worker-0"), "JobSet", "train"))

    assert names(manifests) == ["train-worker-0-hpr6x"]


def test_replicas_of_a_training_job_are_named_by_type_and_index() -> None:
    manifests = load(pytorch_job())

    assert names(manifests) == ["train-master-0", "train-worker-0", "train-worker-1"]
    assert [owner(pod) for pod in manifests.pods] == [("PyTorchJob", "train")] * 3
    common = {"job-name": "train", "operator-name": "pytorchjob-controller"}
    assert [labels(pod, "training.kubeflow.org/") for pod in manifests.pods] == [
        {**common, "replica-type": "master", "replica-index": "0", "job-role": "master"},
        {**common, "replica-type": "worker", "replica-index": "0"},
        {**common, "replica-type": "worker", "replica-index": "1"},
    ]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            training_job("TFJob", "tfReplicaSpecs", {"worker": 1, "PS": 1, "Chief": 1, "Evaluator": 1}),
            ["train-chief-0", "train-ps-0", "train-worker-0", "train-evaluator-0"],
            id="TFJob, in the order of its types",
        ),
        pytest.param(
            training_job("XGBoostJob", "xgbReplicaSpecs", {"Master": 1, "Worker": 1}),
            ["train-master-0", "train-worker-0"],
            id="XGBoostJob",
        ),
        pytest.param(
            training_job("PaddleJob", "paddleReplicaSpecs", {"Worker": 2}),
            ["train-worker-0", "train-worker-1"],
            id="PaddleJob",
        ),
        pytest.param(
            training_job("JAXJob", "jaxReplicaSpecs", {"Worker": {"template": template()}}),
            ["train-worker-0"],
            id="JAXJob, one replica by default",
        ),
        pytest.param(mpi_job(version="v1"), ["train-launcher", "train-worker-0", "train-worker-1"], id="MPIJob v1"),
        pytest.param(mpi_job(), ["train-launcher-0", "train-worker-0", "train-worker-1"], id="MPIJob v2beta1"),
    ],
)
def test_every_training_kind_makes_its_replicas(found: Document, expected: list[str]) -> None:
    assert names(load(found)) == expected


def test_the_first_worker_of_a_tf_job_without_a_chief_is_its_master() -> None:
    manifests = load(training_job("TFJob", "tfReplicaSpecs", {"Worker": 2}))

    roles = [labels(pod, "training.kubeflow.org/").get("job-role") for pod in manifests.pods]
    assert roles == ["master", None]


def test_the_launcher_of_an_mpi_job_is_a_pod_of_its_own_job_since_v2() -> None:
    launcher, worker, _ = load(mpi_job()).pods

    assert (owner(launcher), owner(worker)) == (("Job", "train-launcher"), ("MPIJob", "train"))
    common = {"job-name": "train", "operator-name": "mpi-operator"}
    assert labels(launcher, "training.kubeflow.org/") == {**common, "job-role": "launcher"}
    assert labels(worker, "training.kubeflow.org/") == {**common, "job-role": "worker", "replica-index": "0"}


def test_a_launcher_that_is_a_worker_takes_the_first_index() -> None:
    launcher, worker = load(mpi_job(1, runLauncherAsWorker=True)).pods

    indexes = [labels(pod, "training.kubeflow.org/")["replica-index"] for pod in (launcher, worker)]
    assert indexes == ["0", "1"]


def test_a_training_job_with_a_scheduling_policy_is_a_gang() -> None:
    policy = {"schedulingPolicy": {"minAvailable": 2, "queue": "research"}}
    manifests = load(pytorch_job(runPolicy=policy))

    assert (manifests.pods[-1].metadata.annotations or {}) == {
        "scheduling.k8s.io/group-name": "train",
        "scheduling.volcano.sh/group-min-member": "2",
        "scheduling.volcano.sh/queue-name": "research",
        "volcano.sh/task-spec": "worker",
    }


def test_a_training_job_without_a_scheduling_policy_is_no_gang() -> None:
    assert not load(pytorch_job()).pods[0].metadata.annotations


def test_a_training_job_makes_only_the_replicas_that_a_dump_lacks() -> None:
    pod = owned(plain_pod("train-worker-0", queue=""), "PyTorchJob", "train", "kubeflow.org/v1")

    assert names(load(pytorch_job(), pod)) == ["train-worker-0", "train-master-0", "train-worker-1"]


def test_a_ray_cluster_has_a_head_and_groups_of_workers() -> None:
    manifests = load(
        ray_cluster("ray", worker_group("small", replicas=2), worker_group("big", replicas=1, numOfHosts=2))
    )

    assert names(manifests) == [
        "ray-head",
        "ray-small-worker-0",
        "ray-small-worker-1",
        "ray-big-worker-0",
        "ray-big-worker-1",
    ]
    assert labels(manifests.pods[0], "ray.io/") == {
        "is-ray-node": "yes",
        "cluster": "ray",
        "node-type": "head",
        "group": "headgroup",
        "identifier": "ray-head",
    }
    assert labels(manifests.pods[1], "ray.io/")["group"] == "small"


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        pytest.param({}, 0, id="none by default"),
        pytest.param({"minReplicas": 2}, 2, id="the minimum"),
        pytest.param({"replicas": 1, "minReplicas": 2}, 2, id="no fewer than the minimum"),
        pytest.param({"replicas": 5, "maxReplicas": 3}, 3, id="no more than the maximum"),
        pytest.param({"replicas": 2, "numOfHosts": 3}, 6, id="each on several hosts"),
        pytest.param({"replicas": 2, "suspend": True}, 0, id="a suspended group"),
    ],
)
def test_a_group_of_ray_workers_stays_within_its_bounds(fields: dict[str, Any], count: int) -> None:
    assert len(load(ray_cluster("ray", worker_group(**fields))).pods) == 1 + count


def test_a_ray_cluster_makes_only_the_pods_that_a_dump_lacks() -> None:
    worker = plain_pod(
        "ray-workers-worker-x7", queue="", labels={"ray.io/group": "workers", "ray.io/node-type": "worker"}
    )
    head = plain_pod("ray-head-x1", queue="", labels={"ray.io/group": "headgroup", "ray.io/node-type": "head"})
    given = [owned(pod, "RayCluster", "ray", "ray.io/v1") for pod in (worker, head)]

    manifests = load(ray_cluster("ray", worker_group(replicas=2)), *given)

    assert names(manifests) == ["ray-workers-worker-x7", "ray-head-x1", "ray-workers-worker-0"]


def test_a_ray_job_makes_its_cluster_and_its_submitter() -> None:
    manifests = load(ray_job("tune", worker_group(replicas=1)))

    assert names(manifests) == ["tune-raycluster-head", "tune-raycluster-workers-worker-0", "tune-submitter"]
    submitter = manifests.pods[-1]
    resources = submitter.spec.containers[0].resources
    assert owner(submitter) == ("Job", "tune")
    assert resources is not None and resources.requests == {"cpu": "500m", "memory": "200Mi"}
    assert submitter.spec.scheduler_name == "default-scheduler"


@pytest.mark.parametrize("mode", ["HTTPMode", "InteractiveMode", "SidecarMode"])
def test_a_ray_job_that_is_submitted_otherwise_has_no_submitter(mode: str) -> None:
    assert names(load(ray_job("tune", submissionMode=mode))) == ["tune-raycluster-head"]


def test_a_ray_job_leaves_its_cluster_to_the_one_in_the_dump() -> None:
    cluster = owned(ray_cluster("tune-x7", worker_group(replicas=1)), "RayJob", "tune")
    found = {**ray_job("tune", worker_group(replicas=1)), "status": {"rayClusterName": "tune-x7"}}

    assert names(load(found, cluster)) == ["tune-submitter", "tune-x7-head", "tune-x7-workers-worker-0"]


SUSPENDED = [
    pytest.param(job_set("train", replicated_job("worker"), suspend=True), id="JobSet"),
    pytest.param(pytorch_job(runPolicy={"suspend": True}), id="PyTorchJob"),
    pytest.param(mpi_job(runPolicy={"suspend": True}), id="MPIJob"),
    pytest.param(ray_cluster("ray", suspend=True), id="RayCluster"),
    pytest.param(ray_job("ray", suspend=True), id="RayJob"),
    pytest.param(job("train", suspend=True), id="Job"),
]


@pytest.mark.parametrize("found", SUSPENDED)
def test_a_suspended_job_that_does_not_queue_makes_no_pods(found: Document) -> None:
    assert names(load(found)) == []


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(with_condition(job_set("train", replicated_job("worker")), "Completed"), id="JobSet completed"),
        pytest.param(with_condition(job_set("train", replicated_job("worker")), "Failed"), id="JobSet failed"),
        pytest.param(with_condition(pytorch_job(), "Succeeded"), id="PyTorchJob succeeded"),
        pytest.param(with_condition(mpi_job(), "Failed"), id="MPIJob failed"),
        pytest.param({**ray_job(), "status": {"jobDeploymentStatus": "Complete"}}, id="RayJob complete"),
    ],
)
def test_a_job_that_is_over_makes_no_pods(found: Document) -> None:
    assert names(load(found)) == []


def test_a_job_makes_only_the_pods_that_are_still_needed() -> None:
    plain = {**job("plain", parallelism=3, completions=4), "status": {"succeeded": 2}}
    indexed = {
        **job("indexed", parallelism=2, completions=5, completionMode="Indexed"),
        "status": {"succeeded": 3, "completedIndexes": "0-1,3"},
    }

    assert names(load(plain, indexed)) == ["plain-2gqn2", "plain-qkkth", "indexed-2-cvjrg", "indexed-4-m465c"]


def test_templates_of_all_kinds_get_defaults_and_priorities() -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    inner = {"spec": {"template": template(priorityClassName="high")}}

    manifests = load(
        high,
        job_set("set", {"name": "worker", "template": inner}),
        training_job("PyTorchJob", "pytorchReplicaSpecs", {"Worker": {"template": template(priorityClassName="high")}}),
        document("ray.io/v1", "RayCluster", "ray", {"headGroupSpec": {"template": template(priorityClassName="high")}}),
    )

    assert [(pod.spec.priority, pod.spec.scheduler_name) for pod in manifests.pods] == [(7, "default-scheduler")] * 3
