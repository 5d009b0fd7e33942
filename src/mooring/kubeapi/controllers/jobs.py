"""Jobs: pods until enough of them have succeeded, or too many have failed."""

from collections.abc import Iterator
from itertools import islice

from mooring.kubeapi.controllers.conditions import find_condition, is_true, set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.job_indexes import format_indexes, parse_indexes
from mooring.kubeapi.controllers.job_pods import TRACKING, failures_of, index_of
from mooring.kubeapi.controllers.job_policies import FAIL_INDEX, FAIL_JOB, IGNORE, on_failure, success_message
from mooring.kubeapi.controllers.job_replicas import JobReplicas
from mooring.kubeapi.controllers.ownership import Claims, selector_of
from mooring.kubeapi.controllers.pods import PodView, delete_pod
from mooring.kubeapi.controllers.slices import SLICE
from mooring.model.api.meta import timestamp_seconds, timestamp_text

RESOURCE = "jobs.batch"
OURS = ("", "kubernetes.io/job-controller")


class Jobs(Controller):
    """Runs Jobs to completion."""

    name = "job-controller"

    def start(self) -> None:
        self._jobs = self.follow(RESOURCE)
        self._jobs.on_change(self._job_gone)
        self.follow_controlled(self.informers.pods, "Job", "batch/")
        self.informers.pods.on_change(self._orphan_changed)

    def _job_gone(self, old: Object | None, new: Object | None) -> None:
        """Its pods still wait to be counted."""
        if new is None and old is not None:
            self.enqueue(key_of(old))

    def _orphan_changed(self, old: PodView | None, new: PodView | None) -> None:
        """A pod of nobody is counted by nobody, and concerns whoever selects it."""
        for pod in (old, new):
            if pod is None or pod.metadata.controller is not None:
                continue
            if TRACKING in pod.metadata.finalizers:
                drop_tracking(self, pod)
            for job in list(self._jobs.list(pod.metadata.namespace)):
                if selector_of(job["spec"].get("selector")).matches(pod.metadata.labels):
                    self.enqueue((pod.metadata.namespace, job["metadata"]["name"]))

    def sync(self, key: Key) -> None:
        job = self.api.find(RESOURCE, *key)
        if job is None:
            self._release_all(key)
            return
        if (job["spec"].get("managedBy") or "") not in OURS:
            return
        pods = self._pods_of(job)
        if is_true(job, "Complete") or is_true(job, "Failed"):
            self._release(key, (pod for pod in pods if TRACKING in pod.metadata.finalizers))
            return
        JobTurn(self, job, pods).run()

    def _release_all(self, key: Key) -> None:
        """The pods of a Job that is gone wait for nobody."""
        tracked = [pod for pod in self.informers.pods.list(key[0]) if TRACKING in pod.metadata.finalizers]
        owned = ((pod, pod.metadata.controller) for pod in tracked)
        ours = (pod for pod, owner in owned if owner and (owner["kind"], owner["name"]) == ("Job", key[1]))
        self._release(key, ours)

    def _release(self, key: Key, tracked: Iterator[PodView]) -> None:
        pods = list(islice(tracked, SLICE))
        for pod in pods:
            drop_tracking(self, pod)
        if len(pods) == SLICE:
            self.enqueue(key)

    def _pods_of(self, job: Object) -> list[PodView]:
        selector = selector_of(job["spec"].get("selector"))
        owned = list(self.informers.pods.controlled_by(job["metadata"]["uid"]))
        orphans = (
            []
            if selector.is_empty or selector.is_nothing
            else [pod for pod in self.informers.pods.orphans(key_of(job)[0]) if selector.matches(pod.metadata.labels)]
        )
        is_selective = not (selector.is_empty or selector.is_nothing)
        if not orphans and (not is_selective or all(selector.matches(pod.metadata.labels) for pod in owned)):
            return owned
        claimed = Claims(self.api, "pods", job, selector).settle([*owned, *orphans], lambda pod: pod.metadata)
        return [pod for pod in (self.informers.pods.get(*found.key) for found in claimed) if pod is not None]


def key_of(job: Object) -> Key:
    return job["metadata"]["namespace"], job["metadata"]["name"]


def drop_tracking(controller: Controller, pod: PodView) -> None:
    """Let go of a pod that has been counted."""
    if TRACKING not in pod.metadata.finalizers:
        return
    found = controller.api.find("pods", *pod.key)
    if found is None or found["metadata"]["uid"] != pod.metadata.uid:
        return
    found["metadata"]["finalizers"] = [one for one in found["metadata"].get("finalizers") or () if one != TRACKING]
    controller.api.update("pods", found)


class JobTurn:
    """One look at one Job."""

    def __init__(self, controller: Jobs, job: Object, pods: list[PodView]) -> None:
        self.controller, self.api, self.now = controller, controller.api, controller.now
        self.job, self.spec, self.pods = job, job["spec"], pods
        self.before = job.get("status") or {}
        self.status: Object = {**self.before, "conditions": [dict(one) for one in self.before.get("conditions") or ()]}
        self.key: Key = key_of(job)
        self.is_indexed = self.spec.get("completionMode") == "Indexed"
        self.completions: int | None = self.spec.get("completions")
        self.parallelism = int(self.spec.get("parallelism", 1))
        self.is_suspended = bool(self.spec.get("suspend"))
        self.per_index: int | None = self.spec.get("backoffLimitPerIndex")
        self.replaces_failed_only = self.spec.get("podReplacementPolicy") == "Failed"
        self.succeeded_indexes: set[int] = set()
        self.failed_indexes: set[int] = set()
        if self.is_indexed:
            self.succeeded_indexes = parse_indexes(self.status.get("completedIndexes"), self.completions or 0)
            self.failed_indexes = parse_indexes(self.status.get("failedIndexes"), self.completions or 0)
        self.failure: tuple[str, str] | None = None
        self.active: list[PodView] = []

    def run(self) -> None:
        if "startTime" not in self.status and not self.is_suspended:
            self.status["startTime"] = timestamp_text(self.now)
        if not self._count_finished():
            if self.failure is not None:  # it stands in no other place
                self._set("FailureTarget", *self.failure)
            self._write()
            self.controller.enqueue(self.key)
            return
        self.active = [pod for pod in self.pods if pod.is_active]
        self._judge()
        if self.failure is not None or self._met():
            for pod in self.active[:SLICE]:
                delete_pod(self.api, pod)
            self.active = self.active[SLICE:]
        elif "deletionTimestamp" not in self.job["metadata"]:
            self._set_suspended()
            JobReplicas(self).manage()
        self._finish()
        self._write_indexes()
        self._count_active()
        self._write()

    # 1. What has ended

    def is_failed(self, pod: PodView) -> bool:
        if pod.status.phase == "Failed":
            return True
        return not self.replaces_failed_only and pod.is_leaving and pod.status.phase != "Succeeded"

    def _count_finished(self) -> bool:
        """Count pods that have ended, once: those that still carry the finalizer have not been counted. False if there
        may be more of them.

        Who is about to be counted is written down before it is let go of, and counted with the next write: after a
        crash in between nobody is counted twice, and nobody is lost.
        """
        self._count_left_over()
        self.uncounted: dict[str, list[str]] = {"succeeded": [], "failed": []}
        tracked = (pod for pod in self.pods if TRACKING in pod.metadata.finalizers)
        ended = list(islice((pod for pod in tracked if self._take_account(pod)), SLICE))
        if not ended:
            return True
        self.status["uncountedTerminatedPods"] = {name: uids for name, uids in self.uncounted.items() if uids}
        self._write_indexes()
        self._write()
        for pod in ended:
            drop_tracking(self.controller, pod)
        self.status["uncountedTerminatedPods"] = {}
        for name, uids in self.uncounted.items():
            if uids:
                self.status[name] = self.status.get(name, 0) + len(uids)
        if self.is_indexed and self.succeeded_indexes:
            self.status["succeeded"] = len(self.succeeded_indexes)
        self.pods = self._current()
        return len(ended) < SLICE

    def _current(self) -> list[PodView]:
        found = (self.controller.informers.pods.get(*pod.key) for pod in self.pods)
        return [pod for pod in found if pod is not None]

    def _count_left_over(self) -> None:
        """Count those that were let go of, but not counted, when we were stopped."""
        kept = {pod.metadata.uid for pod in self.pods if TRACKING in pod.metadata.finalizers}
        for name, uids in (self.status.get("uncountedTerminatedPods") or {}).items():
            count = sum(uid not in kept for uid in uids)
            if count:
                self.status[name] = self.status.get(name, 0) + count
        self.status["uncountedTerminatedPods"] = {}

    def _take_account(self, pod: PodView) -> bool:
        """Note how a pod ended, if it did."""
        if pod.status.phase == "Succeeded":
            self._count_success(pod)
            return True
        if self.is_failed(pod):
            self._count_failure(pod)
            return True
        return False

    def _count_success(self, pod: PodView) -> None:
        if not self.is_indexed:
            self.uncounted["succeeded"].append(pod.metadata.uid)
            return
        index = index_of(pod)
        if index is not None and index < (self.completions or 0):
            self.succeeded_indexes.add(index)

    def _count_failure(self, pod: PodView) -> None:
        matched = on_failure(self.spec.get("podFailurePolicy"), pod)
        index = index_of(pod)
        if matched.action == FAIL_JOB and self.failure is None:
            self.failure = "PodFailurePolicy", matched.message
        if matched.action == FAIL_INDEX and index is not None:
            self.failed_indexes.add(index)
        if matched.action == IGNORE:
            return
        self.uncounted["failed"].append(pod.metadata.uid)
        if self.per_index is not None and index is not None and failures_of(pod) >= self.per_index:
            self.failed_indexes.add(index)

    # 2. Whether it is over

    def _judge(self) -> None:
        """See whether the Job has failed, from its pods and the clock."""
        if self.failure is None and (target := find_condition(self.status, "FailureTarget")) is not None:
            self.failure = target["reason"], target["message"]
        if self.failure is not None or self._met():
            return
        limit = self.spec.get("backoffLimit", 6)
        if self.status.get("failed", 0) > limit or self._restarts_exceed(limit):
            self.failure = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        elif self._is_past_deadline():
            self.failure = "DeadlineExceeded", "Job was active longer than specified deadline"
        elif self.is_indexed and self.per_index is not None:
            self._judge_indexes()
        if self.failure is None and self.is_indexed and self.spec.get("successPolicy"):
            message = success_message(self.spec["successPolicy"], self.succeeded_indexes, self.completions or 0)
            if message:
                self._set("SuccessCriteriaMet", "SuccessPolicy", message)
        if self.failure is None and not self._met() and self._is_complete():
            self._set("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")

    def _met(self) -> bool:
        return find_condition(self.status, "SuccessCriteriaMet") is not None

    def _restarts_exceed(self, limit: int) -> bool:
        """Where pods restart in place, it is their restarts that count."""
        if self.spec["template"]["spec"].get("restartPolicy") != "OnFailure":
            return False
        running = [pod for pod in self.active if pod.status.phase in ("Running", "Pending")]
        restarts = sum(pod.restarts for pod in running)
        return restarts > 0 if limit == 0 else restarts >= limit

    def _is_past_deadline(self) -> bool:
        deadline = self.spec.get("activeDeadlineSeconds")
        since = timestamp_seconds(self.status.get("startTime"))
        if deadline is None or since is None or self.is_suspended:
            return False
        if self.now >= since + deadline:
            return True
        self.controller.enqueue(self.key, after=since + deadline - self.now)
        return False

    def _judge_indexes(self) -> None:
        most = self.spec.get("maxFailedIndexes")
        if most is not None and len(self.failed_indexes) > most:
            self.failure = "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
        elif self.failed_indexes and len(self.failed_indexes | self.succeeded_indexes) >= (self.completions or 0):
            self.failure = "FailedIndexes", "Job has failed indexes"

    def _is_complete(self) -> bool:
        succeeded = self.status.get("succeeded", 0)
        if self.completions is None:
            return bool(succeeded > 0 and not self.active)
        if self.is_indexed:
            return len(self.succeeded_indexes) >= self.completions
        return bool(succeeded >= self.completions)

    def _set(self, type_: str, reason: str, message: str, value: str = "True") -> None:
        moment = timestamp_text(self.now)
        if find_condition(self.status, type_) is None or find_condition(self.status, type_)["status"] != value:  # type: ignore[index]
            set_condition(self.status, type_, value, self.now, reason=reason, message=message, lastProbeTime=moment)

    # 3. Suspended or not

    def _set_suspended(self) -> None:
        found = find_condition(self.status, "Suspended")
        if self.is_suspended:
            if found is None or found["status"] != "True":
                self._set("Suspended", "JobSuspended", "Job suspended")
                self.event("Normal", "Suspended", "Job suspended")
            self.status.pop("startTime", None)
        elif found is not None and found["status"] == "True":
            self._set("Suspended", "JobResumed", "Job resumed", value="False")
            self.event("Normal", "Resumed", "Job resumed")
            self.status["startTime"] = timestamp_text(self.now)

    def event(self, type_: str, reason: str, message: str) -> None:
        self.controller.context.recorder.event(self.job, type_, reason, message, self.controller.name)

    # 4. What is written

    def _finish(self) -> None:
        """A Job that failed or succeeded ends when its last pod has."""
        current = self._current()
        terminating = [pod for pod in current if pod.is_leaving and not pod.is_terminal]
        self.status["terminating"] = len(terminating)
        uncounted = any(TRACKING in pod.metadata.finalizers for pod in current if pod.is_terminal)
        goes_on = bool(terminating or uncounted or self.active)
        if self.failure is not None:
            self._set("FailureTarget", *self.failure)
            if not goes_on:
                self._set("Failed", *self.failure)
                self.event("Warning", *self.failure)
        elif (met := find_condition(self.status, "SuccessCriteriaMet")) is not None and not goes_on:
            self._set("Complete", met["reason"], met["message"])
            self.status["completionTime"] = timestamp_text(self.now)
            self.event("Normal", "Completed", "Job completed")
        if (self.failure is not None or self._met()) and goes_on:
            self.controller.enqueue(self.key, after=0.0 if self.active else 0.5)
        if uncounted:
            self.controller.enqueue(self.key)

    def _write_indexes(self) -> None:
        if not self.is_indexed:
            return
        self.status["completedIndexes"] = format_indexes(self.succeeded_indexes)
        if not self.status["completedIndexes"]:
            del self.status["completedIndexes"]
        if self.per_index is not None:
            self.status["failedIndexes"] = format_indexes(self.failed_indexes)

    def _count_active(self) -> None:
        self.status["ready"] = sum(pod.is_ready for pod in self.active)
        self.status["active"] = len(self.active)
        if not self.active:
            del self.status["active"]

    def _write(self) -> None:
        if not self.status["conditions"]:
            del self.status["conditions"]
        if self.status != self.before:
            self.job["status"] = self.status
            self.job = self.api.update(RESOURCE, self.job, subresource="status")
        self.before = self.job.get("status") or {}
        self.status = {**self.before, "conditions": [dict(one) for one in self.before.get("conditions") or ()]}
