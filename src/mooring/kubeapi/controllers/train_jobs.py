"""TrainJobs: each becomes a JobSet, its runtime with what it changes of it, and a PodGroup if the runtime wants one."""

from typing import Any

from mooring.kubeapi.controllers.conditions import find_condition, is_true, set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.status import ApiError
from mooring.model.jobs.train_job import GROUP, RUNTIME, job_set_document, pod_group_document

RESOURCE = f"trainjobs.{GROUP}"
RUNTIMES, CLUSTER_RUNTIMES = f"trainingruntimes.{GROUP}", f"clustertrainingruntimes.{GROUP}"
JOB_SETS = "jobsets.jobset.x-k8s.io"
_CONTROLLER = f"{GROUP}/trainjob-controller"
_COUNTS = ("name", "ready", "succeeded", "failed", "active", "suspended")


class TrainJobs(Controller):
    """Makes the JobSets of TrainJobs."""

    name = "trainjob-controller"

    def start(self) -> None:
        self.jobs = self.follow(RESOURCE)
        self.job_sets = self.informers.of(JOB_SETS)
        self.follow_controlled(self.job_sets, "TrainJob")
        for runtimes in (RUNTIMES, CLUSTER_RUNTIMES):
            self.informers.of(runtimes).on_change(self._runtime_changed)

    def _runtime_changed(self, old: Object | None, new: Object | None) -> None:
        """Look again at the jobs that name a runtime, which may have waited for it."""
        runtime = new or old
        for job in self.jobs.list():
            reference = job["spec"].get("runtimeRef") or {}
            if runtime is not None and reference.get("name") == runtime["metadata"]["name"]:
                self.enqueue((job["metadata"]["namespace"], job["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        found = self.api.find(RESOURCE, *key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        if found["spec"].get("managedBy") not in (None, "", _CONTROLLER):
            return
        if not is_true(found, "Complete") and not is_true(found, "Failed"):
            self._bring_into_order(found)

    def _bring_into_order(self, job: Object) -> None:
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        runtime = self._runtime(job)
        if runtime is None:
            reference = job["spec"].get("runtimeRef") or {}
            kind, wanted = reference.get("kind") or "ClusterTrainingRuntime", reference.get("name", "")
            message = f"{kind} {wanted} is not found: no pods are made, and the TrainJob is not admitted to a queue"
            self.context.recorder.event(job, "Warning", "TrainingRuntimeNotFound", message, self.name)
            return
        made = job_set_document(job, runtime)
        held = self.api.find(JOB_SETS, namespace, name)
        is_suspended = bool(job["spec"].get("suspend"))
        if held is None:
            self._create_group(pod_group_document(job, runtime, made), namespace)
            self._create(JOB_SETS, made, namespace)
        elif is_suspended or held["spec"].get("suspend"):  # the pods of one that runs stay as they are
            held["spec"] |= made["spec"]
            self.api.update(JOB_SETS, held)
        self._write_status(job, self.api.find(JOB_SETS, namespace, name), is_suspended)

    def _runtime(self, job: Object) -> Object | None:
        reference = job["spec"].get("runtimeRef") or {}
        resource, namespace = CLUSTER_RUNTIMES, ""
        if reference.get("kind") == RUNTIME:
            resource, namespace = RUNTIMES, job["metadata"]["namespace"]
        found = self.api.find(resource, namespace, reference.get("name", ""))
        return None if found is None else found["spec"]

    def _create_group(self, group: Object | None, namespace: str) -> None:
        if group is not None:
            self._create(self.api.registry.of_kind(group["apiVersion"], group["kind"]).key, group, namespace)

    def _create(self, resource: str, made: Object, namespace: str) -> None:
        try:
            self.api.create(resource, made, namespace)
        except ApiError as error:
            if error.code != 409:
                raise

    def _write_status(self, job: Object, job_set: Object | None, is_suspended: bool) -> None:
        status: Object = dict(job.get("status") or {})
        status["conditions"] = [dict(each) for each in status.get("conditions") or ()]
        if is_suspended:
            self._set(status, "Suspended", "True", "Suspended", "TrainJob is suspended")
        elif find_condition(status, "Suspended") is not None:
            self._set(status, "Suspended", "False", "Resumed", "TrainJob is resumed")
        theirs = (job_set or {}).get("status") or {}
        for type_, own in (("Completed", "Complete"), ("Failed", "Failed")):
            ended = find_condition(theirs, type_)
            if ended is not None and ended["status"] == "True":
                self._set(status, own, "True", ended.get("reason", ""), ended.get("message", ""))
        if counts := theirs.get("replicatedJobsStatus"):
            status["jobsStatus"] = [{field: each[field] for field in _COUNTS if field in each} for each in counts]
        if not status["conditions"]:
            del status["conditions"]
        if status != (job.get("status") or {}):
            self.api.update(RESOURCE, {**job, "status": status}, subresource="status")

    def _set(self, status: Object, type_: str, value: str, reason: str, message: str) -> Any:
        return set_condition(status, type_, value, self.now, reason=reason, message=message)
