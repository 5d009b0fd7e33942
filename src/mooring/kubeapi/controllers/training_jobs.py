"""Training jobs and Ray clusters: the pods that their operators would make, as far as scheduling needs them.

Pods are made and kept, a suspended job loses them, and one whose first pod has succeeded is over. What operators do
beyond that (configuration of the framework, elastic scaling, retries) is not done here.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from mooring.kubeapi.controllers.conditions import find_condition, is_true, set_condition
from mooring.kubeapi.controllers.context import Context
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.controllers.pods import PodView, delete_pod, pod_document
from mooring.kubeapi.controllers.slices import MOST_MEMBERS, SLICE, at_most
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import ObjectMeta
from mooring.model.api.pods import Pod, PodStatus
from mooring.model.api.workloads import Job
from mooring.model.jobs.expansion import Owned, owner_key
from mooring.model.jobs.kubeflow import (
    REPLICA_TYPE,
    TRAINING_KINDS,
    JaxJob,
    PaddleJob,
    PyTorchJob,
    TfJob,
    XgBoostJob,
    expand_training_job,
)
from mooring.model.jobs.mpi import MpiJob, expand_mpi_job
from mooring.model.jobs.ray import (
    RayCluster,
    RayJob,
    RayService,
    cluster_name,
    expand_ray_cluster,
    expand_ray_job,
)

JOBS, CLUSTERS = "jobs.batch", "rayclusters.ray.io"
FIRST = ("master", "chief", "launcher")
"""Roles whose pod decides how the job ends; without one of them it is the workers, all together."""


class Kind(NamedTuple):
    """A kind whose pods are made here."""

    resource: str
    type: type[Any]
    expand: Callable[[Any, Owned], list[Pod]]


KINDS = (
    Kind("pytorchjobs.kubeflow.org", PyTorchJob, expand_training_job),
    Kind("tfjobs.kubeflow.org", TfJob, expand_training_job),
    Kind("xgboostjobs.kubeflow.org", XgBoostJob, expand_training_job),
    Kind("paddlejobs.kubeflow.org", PaddleJob, expand_training_job),
    Kind("jaxjobs.kubeflow.org", JaxJob, expand_training_job),
    Kind("mpijobs.kubeflow.org", MpiJob, expand_mpi_job),
    Kind("rayservices.ray.io", RayService, expand_ray_job),
    Kind("rayjobs.ray.io", RayJob, expand_ray_job),
    Kind(CLUSTERS, RayCluster, expand_ray_cluster),
)


class TrainingJobs(Controller):
    """Makes the pods of one kind."""

    def __init__(self, context: Context, kind: Kind) -> None:
        super().__init__(context)
        self.kind = kind
        self.title = KIND_NAMES[kind.type]

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.title.lower()}-controller"

    def start(self) -> None:
        self.follow(self.kind.resource)
        self.follow_controlled(self.informers.pods, self.title)
        self.jobs, self.clusters = self.informers.of(JOBS), self.informers.of(CLUSTERS)
        self.follow_controlled(self.jobs, self.title)
        if self.kind.type in (RayJob, RayService):
            self.follow_controlled(self.clusters, self.title)

    def sync(self, key: Key) -> None:
        found = self.api.find(self.kind.resource, *key)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            _Turn(self, found).run()


KIND_NAMES: dict[type[Any], str] = {
    PyTorchJob: "PyTorchJob",
    TfJob: "TFJob",
    XgBoostJob: "XGBoostJob",
    PaddleJob: "PaddleJob",
    JaxJob: "JAXJob",
    MpiJob: "MPIJob",
    RayService: "RayService",
    RayJob: "RayJob",
    RayCluster: "RayCluster",
}


class _Turn:
    """One look at one job or cluster."""

    def __init__(self, controller: TrainingJobs, found: Object) -> None:
        self.controller, self.api, self.job = controller, controller.api, found
        self.spec: Object = found["spec"]
        self.namespace, self.name = found["metadata"]["namespace"], found["metadata"]["name"]
        self.status: Object = dict(found.get("status") or {})
        self.status["conditions"] = [dict(one) for one in self.status.get("conditions") or ()]
        self.typed = msgspec.convert(found, controller.kind.type)
        uid = found["metadata"]["uid"]
        self.pods = list(controller.informers.pods.controlled_by(uid))
        self.jobs = list(controller.jobs.controlled_by(uid))
        self.clusters = list(controller.clusters.controlled_by(uid))

    @property
    def is_suspended(self) -> bool:
        return bool(self.spec.get("suspend") or (self.spec.get("runPolicy") or {}).get("suspend"))

    def run(self) -> None:
        if self._is_over():
            return
        if self.is_suspended:
            self._stop_pods()
            self._delete_children()
        else:
            self._create()
            self._judge()
        self._say_suspended()
        self._write()

    def _is_over(self) -> bool:
        ended = is_true(self.job, "Succeeded") or is_true(self.job, "Failed")
        return ended or self.status.get("jobDeploymentStatus") in ("Complete", "Failed")

    # Pods

    def _create(self) -> None:
        owned: dict[Any, list[Any]] = {
            owner_key(self.typed): [
                *(_as_pod(pod) for pod in self.pods if not pod.is_leaving),
                *(msgspec.convert(job, Job) for job in self.jobs),
                *(msgspec.convert(cluster, RayCluster) for cluster in self.clusters),
            ]
        }
        made = self.controller.kind.expand(self.typed, owned)
        if at_most(self.controller, self.job, len(made), MOST_MEMBERS) < len(made):
            return
        key = (self.namespace, self.name)
        for number, pod in enumerate(made):
            if number == SLICE:
                self.controller.enqueue(key)
                return
            try:
                self._make(pod)
            except ApiError as error:
                if error.code == 409:
                    continue
                recorder = self.controller.context.recorder
                recorder.event(self.job, "Warning", "FailedCreatePod", f"Error creating: {error}", self.controller.name)
                self.controller.try_again(key)
                return

    def _make(self, pod: Pod) -> None:
        """Create a pod, or the object that makes it: a Job for those that submit, a RayCluster for those of one."""
        owner = (pod.metadata.owner_references or [])[0]
        document = pod_document(self._template(pod), pod)
        if owner.kind == self.job["kind"]:
            document["metadata"]["ownerReferences"] = [owner_reference(self.job)]
            self.api.create("pods", document, self.namespace)
            return
        metadata: Object = {"name": owner.name, "ownerReferences": [owner_reference(self.job)]}
        for name in ("labels", "annotations"):
            if name in self.job["metadata"] and owner.kind == "RayCluster":
                kept = {k: v for k, v in self.job["metadata"][name].items() if "kueue.x-k8s.io/" not in k}
                metadata[name] = kept
        if owner.kind == "RayCluster":
            spec = self.spec.get("rayClusterSpec") or self.spec.get("rayClusterConfig")
            self.api.create(CLUSTERS, {"metadata": metadata, "spec": spec}, self.namespace)
            self.status["rayClusterName"] = owner.name
            return
        labels = {k: v for k, v in (pod.metadata.labels or {}).items() if "job-name" not in k or "training" in k}
        named = {"labels": labels, "annotations": document["metadata"].get("annotations") or {}}
        template = {"metadata": named, "spec": {"restartPolicy": "Never", **document["spec"]}}
        self.api.create(JOBS, {"metadata": metadata, "spec": {"template": template}}, self.namespace)

    def _template(self, pod: Pod) -> Object:
        """The template that a pod was made of, as it was written; what the model made where there is none."""
        labels = pod.metadata.labels or {}
        role = labels.get(REPLICA_TYPE) or labels.get("training.kubeflow.org/job-role", "")
        kind = TRAINING_KINDS.get(self.controller.kind.type)
        replicas = self.spec.get(kind.field if kind is not None else "mpiReplicaSpecs") or {}
        for name, spec in replicas.items():
            if name.lower() == role:
                usual = "Never" if self.controller.kind.type is MpiJob else "OnFailure"
                policy = spec.get("restartPolicy") or usual
                policy = "Never" if policy == "ExitCode" else policy
                return {**spec["template"], "spec": {**spec["template"]["spec"], "restartPolicy": policy}}
        if labels.get("ray.io/node-type") == "head" and "headGroupSpec" in self.spec:
            return dict(self.spec["headGroupSpec"]["template"])
        for group in self.spec.get("workerGroupSpecs") or ():
            if group.get("groupName") == labels.get("ray.io/group"):
                return dict(group["template"])
        return {"spec": msgspec.to_builtins(pod.spec)}

    def _stop_pods(self) -> None:
        for pod in self.pods:
            if not pod.is_leaving and not pod.is_terminal:
                delete_pod(self.api, pod)

    def _delete_children(self) -> None:
        for resource, children in ((JOBS, self.jobs), (CLUSTERS, self.clusters)):
            for child in children:
                if "deletionTimestamp" not in child["metadata"]:
                    self.api.delete(resource, self.namespace, child["metadata"]["name"], propagation="Background")

    # What is written

    def _judge(self) -> None:
        type_ = self.controller.kind.type
        if type_ is RayCluster:
            running = [pod for pod in self.pods if pod.status.phase == "Running"]
            self.status["state"] = "ready" if self.pods and len(running) == len(self.pods) else ""
            return
        if type_ in (RayJob, RayService):
            self.status["rayClusterName"] = cluster_name(self.typed)
            for condition, state in (("Complete", "Complete"), ("Failed", "Failed")):
                if type_ is RayJob and any(is_true(job, condition) for job in self.jobs):
                    self.status |= {
                        "jobDeploymentStatus": state,
                        "jobStatus": "SUCCEEDED" if state == "Complete" else "FAILED",
                    }
            return
        self._say("Created", f"{self.job['kind']}Created", f"{self.job['kind']} {self.name} is created.")
        if any(pod.status.phase == "Running" for pod in self.pods):
            self._say("Running", f"{self.job['kind']}Running", f"{self.job['kind']} {self.name} is running.")
        first = [pod for pod in self.pods if _role(pod) in FIRST]
        done = [*first, *self.jobs] or self.pods
        if any(pod.status.phase == "Failed" for pod in self.pods) or any(is_true(job, "Failed") for job in self.jobs):
            self._say("Failed", f"{self.job['kind']}Failed", f"{self.job['kind']} {self.name} has failed.")
        elif done and all(_has_succeeded(each) for each in done):
            self._say("Succeeded", f"{self.job['kind']}Succeeded", f"{self.job['kind']} {self.name} has succeeded.")
            self._stop_pods()

    def _say_suspended(self) -> None:
        was = find_condition(self.status, "Suspended")
        if self.is_suspended or was is not None:
            verb = "suspended" if self.is_suspended else "resumed"
            reason = f"{self.job['kind']}{verb.capitalize()}"
            self._say("Suspended", reason, f"{self.job['kind']} {self.name} is {verb}.", is_so=self.is_suspended)

    def _say(self, type_: str, reason: str, message: str, *, is_so: bool = True) -> None:
        value = "True" if is_so else "False"
        found = find_condition(self.status, type_)
        if found is None or found["status"] != value:
            set_condition(self.status, type_, value, self.controller.now, reason=reason, message=message)

    def _write(self) -> None:
        if not self.status["conditions"]:
            del self.status["conditions"]
        if self.status != (self.job.get("status") or {}):
            fresh = self.api.find(self.controller.kind.resource, self.namespace, self.name)
            if fresh is not None:
                fresh["status"] = self.status
                self.api.update(self.controller.kind.resource, fresh, subresource="status")


def _as_pod(pod: PodView) -> Pod:
    metadata = ObjectMeta(name=pod.metadata.name, namespace=pod.metadata.namespace, labels=dict(pod.metadata.labels))
    return Pod(metadata=metadata, status=PodStatus(phase=pod.status.phase))


def _role(pod: PodView) -> str:
    return pod.metadata.labels.get(REPLICA_TYPE) or pod.metadata.labels.get("training.kubeflow.org/job-role", "")


def _has_succeeded(found: Any) -> bool:
    return is_true(found, "Complete") if isinstance(found, dict) else found.status.phase == "Succeeded"
