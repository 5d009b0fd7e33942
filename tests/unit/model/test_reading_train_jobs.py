"""TrainJobs are read with their runtimes: which pods they have, what these ask for, how they queue and start."""

from typing import Any

import msgspec
import pytest
import yaml
from gang_manifests import only_gang, read, refusal

from mooring.model.events import WorkloadSeen
from mooring.model.jobs.jobset import JobSet
from mooring.model.jobs.train_job import job_set_document
from mooring.model.loading.catalog import Catalog
from mooring.model.objects.kinds import find_kind
from mooring.model.places import Place
from mooring.model.queued.workloads import queued_workloads
from mooring.model.values.requests import pod_requests, whole_requests

RUNTIME = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  %s
  template:
    spec:
      replicatedJobs:
        - name: dataset-initializer
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
            spec:
              template:
                spec:
                  restartPolicy: Never
                  containers: [{name: dataset-initializer, resources: {requests: {cpu: 100m}}}]
        - name: node
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                spec:
                  restartPolicy: Never
                  priorityClassName: research
                  containers: [{name: node, resources: {requests: {cpu: 2, memory: 1Gi}}}, {name: side}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: research}
value: 7
---
"""
JOB = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train, labels: {%s}}
spec:
  runtimeRef: {name: torch}
  %s
"""
QUEUE = "kueue.x-k8s.io/queue-name: team"


def both(labels: str = "", spec: str = "", policy: str = "") -> str:
    return RUNTIME % policy + JOB % (labels, spec)


def counted(manifests: Any) -> dict[str, int]:
    roles = [pod.metadata.labels["jobset.sigs.k8s.io/replicatedjob-name"] for pod in manifests.pods]
    return {role: roles.count(role) for role in dict.fromkeys(roles)}


def test_a_train_job_has_the_pods_of_its_runtime() -> None:
    manifests = read(both())

    assert counted(manifests) == {"dataset-initializer": 1, "node": 2}
    assert [pod.spec.priority for pod in manifests.pods] == [0, 7, 7]


def test_what_a_job_asks_for_its_nodes_is_put_into_the_container_that_trains() -> None:
    trainer = (
        "trainer: {numNodes: 4, resourcesPerNode: {requests: {cpu: 6, nvidia.com/gpu: 8}, limits: {nvidia.com/gpu: 8}}}"
    )
    manifests = read(both(spec=trainer))

    assert counted(manifests) == {"dataset-initializer": 1, "node": 4}
    assert whole_requests(pod_requests(manifests.pods[-1])) == {"cpu": 6000, "memory": 1 << 30, "nvidia.com/gpu": 8}


@pytest.mark.parametrize(("as_node", "nodes"), [("true", 3), ("false", 4)])
def test_a_launcher_may_be_one_of_the_nodes(as_node: str, nodes: int) -> None:
    containers = "containers: [{name: node, resources: {requests: {cpu: 1}}}]"
    text = f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {{name: mpi}}
spec:
  mlPolicy: {{numNodes: 1, mpi: {{runLauncherAsNode: {as_node}}}}}
  template:
    spec:
      replicatedJobs:
        - {{name: node, template: {{spec: {{template: {{spec: {{{containers}}}}}}}}}}}
        - name: launcher
          template:
            metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
            spec: {{template: {{spec: {{{containers}}}}}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: train}}
spec:
  runtimeRef: {{name: mpi, kind: TrainingRuntime}}
  trainer: {{numNodes: 4}}
"""
    assert counted(read(text)) == {"node": nodes, "launcher": 1}


def test_patches_of_a_runtime_change_the_templates_that_they_name() -> None:
    patch = """
  runtimePatches:
    - manager: example.com/team
      trainingRuntimeSpec:
        template:
          spec:
            replicatedJobs:
              - name: node
                template:
                  spec: {template: {spec: {nodeSelector: {pool: a}, tolerations: [{key: gpu, operator: Exists}]}}}
"""
    manifests = read(both(spec=patch))

    selectors = [pod.spec.node_selector for pod in manifests.pods]
    assert selectors == [None, {"pool": "a"}, {"pool": "a"}]
    assert whole_requests(pod_requests(manifests.pods[1]))["cpu"] == 2000


def test_a_train_job_queues_as_one_without_what_admission_gave_it_before() -> None:
    patch = (
        "runtimePatches: [{manager: kueue.x-k8s.io/manager, trainingRuntimeSpec: {template: {spec: {replicatedJobs: "
        "[{name: node, template: {spec: {template: {spec: {nodeSelector: {pool: a}}}}}}]}}}}]"
    )
    [queued] = queued_workloads(read(both(QUEUE, f"suspend: true\n  {patch}")))

    workload = queued.workload
    assert queued.owner_key == ("TrainJob", "default", "train")
    assert [(each.name, each.count) for each in workload.spec.pod_sets] == [("dataset-initializer", 1), ("node", 2)]
    assert [each.template.spec.node_selector for each in workload.spec.pod_sets] == [None, None]
    assert workload.spec.priority == 7
    assert {name: len(pods) for name, pods in queued.pods.items()} == {"dataset-initializer": 1, "node": 2}


def test_a_queued_train_job_of_which_a_cluster_has_the_job_set_has_pods_that_wait() -> None:
    """As in a dump: the JobSet is suspended with its TrainJob, and names no queue itself."""
    text = both(QUEUE, "suspend: true")
    job_set = read(text).of(JobSet)[0]
    job_set.spec.suspend = True
    document = {"apiVersion": job_set.api_version, "kind": "JobSet", **msgspec.to_builtins(job_set)}
    manifests = read(f"{text}---\n{msgspec.json.encode(document).decode()}")

    [queued] = queued_workloads(manifests)
    assert {name: len(pods) for name, pods in queued.pods.items()} == {"dataset-initializer": 1, "node": 2}


def test_a_suspended_train_job_that_does_not_queue_has_no_pods() -> None:
    assert read(both(spec="suspend: true")).pods == []


@pytest.mark.parametrize("policy", ["coscheduling: {scheduleTimeoutSeconds: 60}", "volcano: {}"])
def test_a_runtime_may_let_all_pods_of_a_job_start_together(policy: str) -> None:
    gang = only_gang(read(both(policy=f"podGroupPolicy: {{{policy}}}")))

    assert gang.name == "default/train"
    assert gang.minimum == 3


def test_a_runtime_that_is_not_there_is_named() -> None:
    assert refusal(JOB % ("", "")) == (
        "1 (TrainJob default/train): spec.runtimeRef.name: "
        'expected a ClusterTrainingRuntime that is among the manifests, found "torch"'
    )


def test_on_a_cluster_a_train_job_queues_when_its_runtime_comes() -> None:
    """Nothing is made there: the pod sets are those of the runtime, as it is now."""
    catalog = Catalog(expands=False)

    def put(text: str) -> list[Any]:
        for document in filter(None, yaml.safe_load_all(text)):
            kind = find_kind(document["apiVersion"], document["kind"])
            assert kind is not None
            catalog.put(msgspec.convert(document, kind.type), Place(""))
        return [event for event in catalog.changes() if isinstance(event, WorkloadSeen)]

    assert put(JOB % (QUEUE, "suspend: true")) == []
    [came] = put(RUNTIME % "")
    assert [each.count for each in came.workload.workload.spec.pod_sets] == [1, 2]
    [changed] = put((RUNTIME % "").replace("numNodes: 2", "numNodes: 5"))
    assert [each.count for each in changed.workload.workload.spec.pod_sets] == [1, 5]


def test_the_override_of_older_releases_is_read() -> None:
    override = {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"pool": "a"}}}
    owner = {"metadata": {"name": "train"}, "spec": {"podTemplateOverrides": [override]}}
    jobs: list[dict[str, Any]] = [
        {"name": name, "template": {"spec": {"template": {"spec": {"containers": [{"name": "node", "image": "x"}]}}}}}
        for name in ("load", "node")
    ]
    made = job_set_document(owner, {"template": {"spec": {"replicatedJobs": jobs}}})

    found = [each["template"]["spec"]["template"]["spec"] for each in made["spec"]["replicatedJobs"]]
    assert [each.get("nodeSelector") for each in found] == [None, {"pool": "a"}]
    assert [each["containers"] for each in found] == [[{"name": "node", "image": "x"}]] * 2
