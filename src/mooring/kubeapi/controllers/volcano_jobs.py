"""Volcano's Jobs: tasks of pods that start together, and policies for what happens to one of them."""

import msgspec

from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.controllers.pods import PodView, delete_pod, pod_document
from mooring.kubeapi.controllers.slices import MOST_MEMBERS, SLICE, at_most
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_text
from mooring.model.gangs.dialects.volcano_job import (
    OVER,
    RESTARTING,
    VolcanoJob,
    default_job,
    expand_volcano_job,
    group_name,
)
from mooring.model.gangs.membership import VOLCANO_ROLE

RESOURCE, GROUPS = "jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh"
JOB_VERSION = "volcano.sh/job-version"
MOST_RETRIES = 3
_ENDS = {"AbortJob": "Aborting", "TerminateJob": "Terminating", "CompleteJob": "Completing", "RestartJob": RESTARTING}
_SETTLED = {"Aborting": "Aborted", "Terminating": "Terminated", "Completing": "Completed"}


class VolcanoJobs(Controller):
    """Makes the pods of Volcano Jobs, and carries out their policies."""

    name = "vc-controller-manager"

    def start(self) -> None:
        self.follow(RESOURCE)
        self.follow_controlled(self.informers.pods, "Job", "batch.volcano.sh/")

    def sync(self, key: Key) -> None:
        job = self.api.find(RESOURCE, *key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return
        _Turn(self, job).run()


class _Turn:
    """One look at one Job."""

    def __init__(self, controller: VolcanoJobs, job: Object) -> None:
        self.controller, self.api = controller, controller.api
        self.job, self.spec = job, job["spec"]
        self.status: Object = dict(job.get("status") or {})
        self.typed = msgspec.convert(job, VolcanoJob)
        default_job(self.typed)
        self.pods = list(controller.informers.pods.controlled_by(job["metadata"]["uid"]))

    @property
    def phase(self) -> str:
        return str((self.status.get("state") or {}).get("phase") or "")

    def run(self) -> None:
        if not self.phase:
            self._enter("Pending")
        self._keep_group()
        self._follow_policies()
        if self.phase == RESTARTING or self.phase in _SETTLED:
            self._clear()
        elif self.phase not in OVER:
            self._create()
            self._judge()
        self._write()

    def _enter(self, phase: str, reason: str = "", message: str = "") -> None:
        if self.phase == phase:
            return
        moment = timestamp_text(self.controller.now)
        self.status["state"] = {"phase": phase, "lastTransitionTime": moment, "reason": reason, "message": message}
        self.status.setdefault("conditions", [])
        self.status["conditions"] = [*self.status["conditions"], {"status": phase, "lastTransitionTime": moment}]

    # The group

    def _keep_group(self) -> None:
        """The PodGroup that stands for the Job."""
        metadata = self.job["metadata"]
        name = group_name(self.typed)
        if self.phase in OVER or self.api.find(GROUPS, metadata["namespace"], name) is not None:
            return
        members = {task.name: task.minimum for task in self.typed.spec.tasks}
        total = sum(task.count for task in self.typed.spec.tasks)
        minimum = self.typed.spec.min_available
        spec: Object = {
            "minMember": total if minimum is None else minimum,
            "minTaskMember": members,
            "queue": self.typed.spec.queue,
        }
        for field in ("priorityClassName", "networkTopology"):
            if self.spec.get(field):
                spec[field] = self.spec[field]
        group = {"metadata": {"name": name, "ownerReferences": [owner_reference(self.job)]}, "spec": spec}
        self.api.create(GROUPS, group, metadata["namespace"])

    # Pods

    def _create(self) -> None:
        total = sum(task.count for task in self.typed.spec.tasks)
        if at_most(self.controller, self.job, total, MOST_MEMBERS) < total:
            return
        held = {pod.metadata.name for pod in self.pods}
        key = (self.job["metadata"]["namespace"], self.job["metadata"]["name"])
        count = 0
        templates = {
            task.name: raw["template"] for task, raw in zip(self.typed.spec.tasks, self.spec["tasks"], strict=True)
        }
        for made in expand_volcano_job(self.typed, {}):
            task = (made.metadata.annotations or {})[VOLCANO_ROLE]
            if made.metadata.name in held or not self._may_start(task):
                continue
            if count == SLICE:
                self.controller.enqueue(key)
                break
            count += 1
            document = pod_document(templates[task], made)
            document["metadata"]["annotations"][JOB_VERSION] = str(self.typed.status.version)
            document["spec"].setdefault("restartPolicy", "OnFailure")
            try:
                self.api.create("pods", document, made.metadata.namespace)
            except ApiError as error:
                if error.code == 409:
                    continue
                self._event("Warning", "FailedCreate", f"Error creating: {error}")
                self.controller.try_again(key)
                return
        self.pods = list(self.controller.informers.pods.controlled_by(self.job["metadata"]["uid"]))

    def _may_start(self, task: str) -> bool:
        """A task that depends on others waits until those run."""
        found = next((one for one in self.typed.spec.tasks if one.name == task), None)
        needed = (found.depends_on.name if found is not None and found.depends_on is not None else None) or []
        running = [name for name in needed if self._is_under_way(name)]
        any_is_enough = found is not None and found.depends_on is not None and found.depends_on.iteration == "any"
        return bool(running) if needed and any_is_enough else len(running) == len(needed)

    def _is_under_way(self, task: str) -> bool:
        found = next((one for one in self.typed.spec.tasks if one.name == task), None)
        pods = [pod for pod in self._of(task) if pod.status.phase in ("Running", "Succeeded")]
        return found is not None and len(pods) >= found.minimum

    def _of(self, task: str) -> list[PodView]:
        return [pod for pod in self.pods if pod.metadata.annotations.get(VOLCANO_ROLE) == task]

    # Policies

    def _follow_policies(self) -> None:
        """See whether what happened to a pod asks for something."""
        if self.phase in OVER or self.phase == RESTARTING:
            return
        for pod in self.pods:
            if pod.status.phase == "Failed" and self._is_of_now(pod):
                self._act(pod, "PodFailed", _exit_code(pod))
            elif pod.is_leaving and self._is_of_now(pod) and not pod.is_terminal:
                self._act(pod, "PodEvicted", None)
        for task in self.typed.spec.tasks:
            done = [pod for pod in self._of(task.name) if pod.status.phase == "Succeeded"]
            if (
                task.count
                and len(done) >= task.count
                and self._action(task.name, "TaskCompleted", None) == "CompleteJob"
            ):
                self._enter("Completing")

    def _is_of_now(self, pod: PodView) -> bool:
        return pod.metadata.annotations.get(JOB_VERSION, "0") == str(self.typed.status.version)

    def _action(self, task: str, event: str, exit_code: int | None) -> str:
        raw: Object = next((one for one in self.spec["tasks"] if one.get("name") == task), {})
        for policy in (*(raw.get("policies") or ()), *(self.spec.get("policies") or ())):
            if exit_code is not None and policy.get("exitCode") == exit_code:
                return str(policy["action"])
            if {event, "*"} & {policy.get("event"), *(policy.get("events") or ())}:
                return str(policy["action"])
        return ""

    def _act(self, pod: PodView, event: str, exit_code: int | None) -> None:
        task = pod.metadata.annotations.get(VOLCANO_ROLE, "")
        action = self._action(task, event, exit_code)
        if action == "RestartJob" and self._has_retried_too_often():
            self._enter("Failed", "ReachMaxRetry", "the job has been restarted as often as it may be")
        elif action in _ENDS:
            self._event("Normal", "ExecuteAction", f"Start to execute action {action}")
            self._enter(_ENDS[action], event, f"pod {pod.metadata.name}")
        elif action in ("RestartTask", "RestartPod"):
            for other in self._of(task) if action == "RestartTask" else [pod]:
                if not other.is_leaving:
                    delete_pod(self.api, other)

    def _has_retried_too_often(self) -> bool:
        return int(self.status.get("retryCount") or 0) >= int(self.spec.get("maxRetry") or MOST_RETRIES)

    def _clear(self) -> None:
        """Take all pods away that still run; then go on, or stay where the policy wanted to be."""
        restarts = self.phase == RESTARTING
        left = [pod for pod in self.pods if restarts or not pod.is_terminal]
        for pod in left:
            if not pod.is_leaving:
                delete_pod(self.api, pod)
        self.pods = list(self.controller.informers.pods.controlled_by(self.job["metadata"]["uid"]))
        if any(restarts or not pod.is_terminal for pod in self.pods):
            return
        if restarts:
            self.status["retryCount"] = int(self.status.get("retryCount") or 0) + 1
            self.status["version"] = int(self.status.get("version") or 0) + 1
            self._enter("Pending")
            self.controller.enqueue((self.job["metadata"]["namespace"], self.job["metadata"]["name"]))
        else:
            self._enter(_SETTLED[self.phase])

    # What is written

    def _judge(self) -> None:
        """Pending until enough run; over when every pod is."""
        total = sum(task.count for task in self.typed.spec.tasks)
        minimum = self.typed.spec.min_available
        phases = [pod.status.phase for pod in self.pods if not pod.is_leaving]
        running, succeeded, failed = (phases.count(phase) for phase in ("Running", "Succeeded", "Failed"))
        if running + succeeded + failed >= total and running == 0 and total:
            least = self.spec.get("minSuccess")
            enough = total if minimum is None else minimum
            is_done = succeeded >= (least if least is not None else enough)
            self._enter("Completed" if is_done else "Failed")
        elif self.phase == "Pending" and running + succeeded >= (total if minimum is None else minimum):
            self._enter("Running")

    def _write(self) -> None:
        counts = {"pending": "Pending", "running": "Running", "succeeded": "Succeeded", "failed": "Failed"}
        here = [pod for pod in self.pods if not pod.is_leaving]
        for field, phase in counts.items():
            self.status[field] = sum(pod.status.phase == phase for pod in here)
        self.status["terminating"] = sum(pod.is_leaving for pod in self.pods)
        minimum = self.typed.spec.min_available
        self.status["minAvailable"] = (
            minimum if minimum is not None else sum(task.count for task in self.typed.spec.tasks)
        )
        self.status["taskStatusCount"] = {
            task.name: {
                "phase": {phase: count for phase in counts.values() if (count := _count(self._of(task.name), phase))}
            }
            for task in self.typed.spec.tasks
        }
        if self.status != (self.job.get("status") or {}):
            fresh = self.api.find(RESOURCE, self.job["metadata"]["namespace"], self.job["metadata"]["name"])
            if fresh is not None:
                fresh["status"] = self.status
                self.api.update(RESOURCE, fresh, subresource="status")

    def _event(self, type_: str, reason: str, message: str) -> None:
        self.controller.context.recorder.event(self.job, type_, reason, message, self.controller.name)


def _count(pods: list[PodView], phase: str) -> int:
    return sum(pod.status.phase == phase for pod in pods)


def _exit_code(pod: PodView) -> int | None:
    codes = [(one.state.get("terminated") or {}).get("exitCode") for one in pod.status.container_statuses]
    return next((code for code in codes if code), None)
