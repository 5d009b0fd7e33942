"""What is wrong with a job is said in one line: file, document, field, expected, found."""

import pytest
from job_builders import (
    Document,
    document,
    job_set,
    load,
    mpi_job,
    pytorch_job,
    ray_cluster,
    ray_job,
    replicated_job,
    template,
    training_job,
    worker_group,
)

from mooring.errors import ManifestError


def complaint(*documents: Document) -> str:
    with pytest.raises(ManifestError) as raised:
        load(*documents)
    return str(raised.value).removeprefix("<memory>: document 1 ")


NO_CONTAINERS: Document = {"spec": {"containers": []}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            job_set("train", replicated_job("worker", -1)),
            "(JobSet default/train): spec.replicatedJobs[0].replicas: expected a number of at least 0, found -1",
            id="negative replicas",
        ),
        pytest.param(
            job_set("train", replicated_job("worker"), replicated_job("worker")),
            '(JobSet default/train): spec.replicatedJobs[1].name: expected a name that is not taken, found "worker"',
            id="two replicated Jobs of one name",
        ),
        pytest.param(
            job_set("train", {"name": "worker", "template": {"spec": {"template": NO_CONTAINERS}}}),
            "(JobSet default/train): spec.replicatedJobs[0].template.spec.template.spec.containers: expected at least "
            "one container, found none",
            id="a JobSet's template without containers",
        ),
        pytest.param(
            job_set("train", {"name": "worker", "replicas": "two", "template": {"spec": {"template": template()}}}),
            '(JobSet default/train): spec.replicatedJobs[0].replicas: expected an integer, found "two"',
            id="a word for a number",
        ),
        pytest.param(
            document("kubeflow.org/v1", "PyTorchJob", "train", {}),
            "(PyTorchJob default/train): spec.pytorchReplicaSpecs: expected a value, found none",
            id="no replicas at all",
        ),
        pytest.param(
            pytorch_job({}),
            "(PyTorchJob default/train): spec.pytorchReplicaSpecs: expected at least one of Master, Worker, found none",
            id="an empty map of replicas",
        ),
        pytest.param(
            pytorch_job({"Boss": 1}),
            '(PyTorchJob default/train): spec.pytorchReplicaSpecs: expected only Master, Worker, found "Boss"',
            id="an unknown type of replica",
        ),
        pytest.param(
            pytorch_job({"Worker": 1, "worker": 1}),
            "(PyTorchJob default/train): spec.pytorchReplicaSpecs.worker: expected each type once, found "
            "Worker as well",
            id="a type twice",
        ),
        pytest.param(
            pytorch_job({"Master": 2}),
            "(PyTorchJob default/train): spec.pytorchReplicaSpecs.Master.replicas: expected 1, as there is one Master, "
            "found 2",
            id="two masters",
        ),
        pytest.param(
            pytorch_job({"Worker": {"template": NO_CONTAINERS}}),
            "(PyTorchJob default/train): spec.pytorchReplicaSpecs.Worker.template.spec.containers: expected at least "
            "one container, found none",
            id="a replica without containers",
        ),
        pytest.param(
            pytorch_job(runPolicy={"schedulingPolicy": {"minAvailable": 4}}),
            "(PyTorchJob default/train): spec.runPolicy.schedulingPolicy.minAvailable: expected 1 to 3, the number of "
            "replicas, found 4",
            id="a minimum that is never reached",
        ),
        pytest.param(
            pytorch_job(elasticPolicy={"minReplicas": 3, "maxReplicas": 2}),
            "(PyTorchJob default/train): spec.elasticPolicy.minReplicas: expected at most maxReplicas, 2, found 3",
            id="elastic bounds the wrong way round",
        ),
        pytest.param(
            training_job("XGBoostJob", "xgbReplicaSpecs", {"Worker": 1}),
            "(XGBoostJob default/train): spec.xgbReplicaSpecs: expected a Master, found Worker",
            id="no master where one is needed",
        ),
        pytest.param(
            mpi_job(-1),
            "(MPIJob default/train): spec.mpiReplicaSpecs.Worker.replicas: expected a number of at least 0, found -1",
            id="negative workers",
        ),
        pytest.param(
            training_job("MPIJob", "mpiReplicaSpecs", {"Worker": 1}, version="v2beta1"),
            "(MPIJob default/train): spec.mpiReplicaSpecs: expected a Launcher, found Worker",
            id="no launcher",
        ),
        pytest.param(
            document("ray.io/v1", "RayCluster", "ray", {}),
            "(RayCluster default/ray): spec.headGroupSpec: expected a value, found none",
            id="a cluster without a head",
        ),
        pytest.param(
            ray_cluster("ray", worker_group("a"), worker_group("a")),
            "(RayCluster default/ray): spec.workerGroupSpecs[1].groupName: expected a name that is not taken, "
            'found "a"',
            id="two groups of one name",
        ),
        pytest.param(
            ray_cluster("ray", worker_group("head")),
            "(RayCluster default/ray): spec.workerGroupSpecs[0].groupName: expected a name other than the head's, "
            'found "head"',
            id="workers called head",
        ),
        pytest.param(
            ray_cluster("ray", worker_group(numOfHosts=0)),
            "(RayCluster default/ray): spec.workerGroupSpecs[0].numOfHosts: expected a number of at least 1, found 0",
            id="no hosts",
        ),
        pytest.param(
            ray_cluster("ray", worker_group(minReplicas=2, maxReplicas=1)),
            "(RayCluster default/ray): spec.workerGroupSpecs[0].minReplicas: expected at most maxReplicas, 1, found 2",
            id="bounds the wrong way round",
        ),
        pytest.param(
            ray_job("ray", submissionMode="Telepathy"),
            "(RayJob default/ray): spec.submissionMode: expected one of K8sJobMode, HTTPMode, InteractiveMode, "
            'SidecarMode, found "Telepathy"',
            id="an unknown mode",
        ),
        pytest.param(
            document("ray.io/v1", "RayJob", "ray", {}),
            "(RayJob default/ray): spec.rayClusterSpec: expected a cluster, as there is no clusterSelector, found none",
            id="a job without a cluster",
        ),
        pytest.param(
            ray_job("ray", submitterPodTemplate=NO_CONTAINERS),
            "(RayJob default/ray): spec.submitterPodTemplate.spec.containers: expected at least one container, "
            "found none",
            id="a submitter without containers",
        ),
    ],
)
def test_a_mistake_is_named_with_its_field(found: Document, expected: str) -> None:
    assert complaint(found) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            ray_job("ray", queue="team", shutdownAfterJobFinishes=False),
            "(RayJob default/ray): spec.shutdownAfterJobFinishes: expected true for a job that queues: its cluster "
            "must go when it is done, found false",
            id="a queued RayJob that keeps its cluster",
        ),
        pytest.param(
            ray_job("ray", queue="team", clusterSelector={"ray.io/cluster": "shared"}),
            "(RayJob default/ray): spec.clusterSelector: expected none for a job that queues: it needs a cluster of "
            "its own, found an object",
            id="a queued RayJob on somebody's cluster",
        ),
        pytest.param(
            ray_cluster("ray", queue="team", enableInTreeAutoscaling=True),
            "(RayCluster default/ray): spec.enableInTreeAutoscaling: expected false for what queues without "
            'kueue.x-k8s.io/elastic-job: "true", found true',
            id="a queued RayCluster that grows",
        ),
        pytest.param(
            job_set("train", *(replicated_job(f"r{index}") for index in range(19)), queue="team"),
            "(JobSet default/train): spec: expected at most 18 kinds of pods in what queues, found 19",
            id="too many pod sets",
        ),
        pytest.param(
            pytorch_job(queue="team", runPolicy={"schedulingPolicy": {"priorityClass": "vip"}}),
            "(PyTorchJob default/train): spec.runPolicy.schedulingPolicy.priorityClass: expected a known PriorityClass "
            '(system-cluster-critical, system-node-critical), found "vip"',
            id="an unknown class",
        ),
    ],
)
def test_what_queues_must_be_fit_for_it(found: Document, expected: str) -> None:
    assert complaint(found) == expected
