"""JobSets: Jobs of several templates that start, fail and succeed together."""

import msgspec

from mooring.kubeapi.controllers.conditions import find_condition, is_true, set_condition
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.controllers.pods import PodView, pod_document
from mooring.kubeapi.controllers.slices import MOST_MEMBERS, SLICE, at_most
from mooring.kubeapi.status import ApiError
from mooring.model.api.pods import Pod
from mooring.model.api.workloads import Job
from mooring.model.jobs.jobset import JobSet, make_job
from mooring.model.kubelet.plan import GANG_RESTART, IN_PLACE

RESOURCE, JOBS = "jobsets.jobset.x-k8s.io", "jobs.batch"
NAME, ATTEMPT = "jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/in-place-restart-attempt"
BLOCKING_RECREATE, IN_PLACE_RESTART = "BlockingRecreate", "InPlaceRestart"
"""Strategies of a restart, besides Recreate, which makes each Job anew as soon as its own pods are gone."""
REPLICATED_JOB, RESTART_ATTEMPT = "jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/restart-attempt"


class JobSets(Controller):
    """Makes the Jobs of JobSets."""

    name = "jobset-controller"

    def start(self) -> None:
        self.follow(RESOURCE)
        self.jobs = self.informers.of(JOBS)
        self.follow_controlled(self.jobs, "JobSet")
        self.informers.pods.on_change(self._pod_changed)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        """A pod that began anew in place counts for its JobSet."""
        if new is not None and attempt_of(new) is not None and (old is None or attempt_of(old) != attempt_of(new)):
            name = new.metadata.labels.get(NAME)
            if name:
                self.enqueue((new.metadata.namespace, name))

    def sync(self, key: Key) -> None:
        found = self.api.find(RESOURCE, *key)
        if found is None or "deletionTimestamp" in found["metadata"] or found["spec"].get("managedBy"):
            return
        _Turn(self, found).run()


class _Turn:
    """One look at one JobSet."""

    def __init__(self, controller: JobSets, found: Object) -> None:
        self.controller, self.api = controller, controller.api
        self.set, self.spec = found, found["spec"]
        self.namespace, self.name = found["metadata"]["namespace"], found["metadata"]["name"]
        self.status: Object = dict(found.get("status") or {})
        self.status["conditions"] = [dict(one) for one in self.status.get("conditions") or ()]
        self.restarts = int(self.status.get("restarts") or 0)
        self.typed = msgspec.convert(found, JobSet)
        owned = list(controller.jobs.controlled_by(found["metadata"]["uid"]))
        attempt = str(self.restarts)
        self.jobs = [job for job in owned if _label(job, RESTART_ATTEMPT) == attempt]
        self.old = [job for job in owned if _label(job, RESTART_ATTEMPT) != attempt]
        self.strategy = (self.spec.get("failurePolicy") or {}).get("restartStrategy") or "Recreate"

    def run(self) -> None:
        if is_true(self.set, "Completed") or is_true(self.set, "Failed"):
            self._end()
            return
        for job in self.old:
            self._delete(job)
        self._judge()
        if self.strategy == IN_PLACE_RESTART and not self._is_over():
            self._count_restarts_in_place()
        if not self._is_over():
            self._keep_service()
            self._set_suspended()
            self._create()
        self._write()

    # Whether it is over

    def _is_over(self) -> bool:
        return any(find_condition(self.status, type_) is not None for type_ in ("Completed", "Failed"))

    def _judge(self) -> None:
        failed = next((job for job in self.jobs if is_true(job, "Failed")), None)
        if failed is not None:
            self._fail(failed)
            return
        policy = self.spec.get("successPolicy") or {}
        targets = set(policy.get("targetReplicatedJobs") or ()) or {one.name for one in self.typed.spec.replicated_jobs}
        wanted = sum(one.replicas for one in self.typed.spec.replicated_jobs if one.name in targets)
        done = [job for job in self.jobs if is_true(job, "Complete") and _label(job, REPLICATED_JOB) in targets]
        enough = 1 if policy.get("operator") == "Any" else wanted
        if wanted and len(done) >= enough:
            self._say("Completed", "AllJobsCompleted", "jobset completed successfully")
            self.status["terminalState"] = "Completed"

    def _fail(self, job: Object) -> None:
        """Start all over as often as the policy allows, then give up."""
        policy = self.spec.get("failurePolicy") or {}
        action = self._action(policy, job)
        limit = int(policy.get("maxRestarts") or 0)
        counted = int(self.status.get("restartsCountTowardsMax") or 0)
        name = job["metadata"]["name"]
        if action == "FailJobSet" or (action == "RestartJobSet" and counted >= limit):
            reason = "ReachedMaxRestarts" if policy and action != "FailJobSet" else "FailedJobs"
            told = "reaching max number of restarts" if policy else "one or more job failures"
            self._say("Failed", reason, f"jobset failed due to {told} (first failed job: {name})")
            self.status["terminalState"] = "Failed"
            return
        self.restarts += 1
        self.status["restarts"] = self.restarts
        if action == "RestartJobSet":
            self.status["restartsCountTowardsMax"] = counted + 1
        self._event("Warning", "RestartJobSet", f"restarting jobset, attempt {self.restarts}: job {name} failed")
        for one in self.jobs:
            self._delete(one)
        self.jobs = []
        self.typed.status.restarts = self.restarts

    @staticmethod
    def _action(policy: Object, job: Object) -> str:
        reason = (find_condition(job["status"], "Failed") or {}).get("reason", "")
        for rule in policy.get("rules") or ():
            targets, reasons = rule.get("targetReplicatedJobs"), rule.get("onJobFailureReasons")
            if (not targets or _label(job, REPLICATED_JOB) in targets) and (not reasons or reason in reasons):
                return str(rule["action"])
        return "RestartJobSet"

    def _say(self, type_: str, reason: str, message: str, value: str = "True") -> None:
        found = find_condition(self.status, type_)
        if found is None or found["status"] != value:
            set_condition(self.status, type_, value, self.controller.now, reason=reason, message=message)
            self._event("Normal" if type_ != "Failed" else "Warning", reason, message)

    def _count_restarts_in_place(self) -> None:
        """Note at which attempt all pods are, or the attempt behind which none may stay; too many fail the JobSet."""
        informer = self.controller.informers.pods
        pods = [pod for job in self.jobs for pod in informer.controlled_by(job["metadata"]["uid"])]
        found = [attempt for pod in pods if pod.is_active and (attempt := attempt_of(pod)) is not None]
        limit = int((self.spec.get("failurePolicy") or {}).get("maxRestarts") or 0)
        if found and max(found) > limit:
            self._say("Failed", "ReachedMaxRestarts", "jobset failed due to reaching max number of restarts")
            self.status["terminalState"] = "Failed"
        elif len(found) == self._total_pods() and len(set(found)) == 1:
            self.status["currentInPlaceRestartAttempt"] = found[0]
        elif found and max(found) > 0:
            self.status["previousInPlaceRestartAttempt"] = max(found) - 1

    def _total_pods(self) -> int:
        total = 0
        for one in self.typed.spec.replicated_jobs:
            spec = one.template.spec
            parallelism = 1 if spec.parallelism is None else spec.parallelism
            completions = parallelism if spec.completions is None else spec.completions
            total += one.replicas * min(parallelism, completions)
        return total

    # Suspended or not

    def _set_suspended(self) -> None:
        is_suspended = bool(self.spec.get("suspend"))
        was = find_condition(self.status, "Suspended")
        if is_suspended:
            self._say("Suspended", "SuspendedJobs", "jobset is suspended")
        elif was is not None:
            self._say("Suspended", "ResumeJobs", "jobset is resumed", value="False")
        for job in self.jobs:
            if bool(job["spec"].get("suspend")) != is_suspended and not _is_over(job):
                fresh = self.api.find(JOBS, self.namespace, job["metadata"]["name"])
                if fresh is not None:
                    if not is_suspended:
                        self._take_over_directives(fresh)
                    fresh["spec"]["suspend"] = is_suspended
                    self.api.update(JOBS, fresh)

    def _take_over_directives(self, job: Object) -> None:
        """A suspended JobSet may have been told other nodes for its pods since its Jobs were made."""
        named = (each for each in self.spec.get("replicatedJobs") or () if each["name"] == _label(job, REPLICATED_JOB))
        replicated = next(named, None)
        template = ((replicated or {}).get("template", {}).get("spec") or {}).get("template")
        if template is None:
            return
        metadata, spec = job["spec"]["template"].setdefault("metadata", {}), job["spec"]["template"]["spec"]
        for name in ("labels", "annotations"):
            if more := (template.get("metadata") or {}).get(name):
                metadata[name] = {**(metadata.get(name) or {}), **more}
        for name in ("nodeSelector", "tolerations", "schedulingGates"):
            spec.pop(name, None)
            if given := (template.get("spec") or {}).get(name):
                spec[name] = given

    # Jobs

    def _create(self) -> None:
        held = {job["metadata"]["name"] for job in (*self.jobs, *self._leaving())}
        if self.strategy == BLOCKING_RECREATE and self._leaving():
            return  # nothing is made before all of the last attempt is gone
        is_in_order = (self.spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
        total = sum(one.replicas for one in self.typed.spec.replicated_jobs)
        if at_most(self.controller, self.set, total, MOST_MEMBERS) < total:
            return
        position = made = 0
        for replicated, raw in zip(self.typed.spec.replicated_jobs, self.spec.get("replicatedJobs") or (), strict=True):
            for index in range(replicated.replicas):
                position += 1
                if f"{self.name}-{replicated.name}-{index}" in held:
                    continue
                if made == SLICE:
                    self.controller.enqueue((self.namespace, self.name))
                    return
                made += 1
                self._create_job(make_job(self.typed, replicated, index, position - 1), raw["template"])
            if (
                is_in_order
                and not self.spec.get("suspend")
                and not self._has_started(replicated.name, replicated.replicas)
            ):
                return

    def _leaving(self) -> list[Object]:
        owned = self.controller.jobs.controlled_by(self.set["metadata"]["uid"])
        return [job for job in owned if _label(job, RESTART_ATTEMPT) != str(self.restarts)]

    def _has_started(self, name: str, replicas: int) -> bool:
        mine = [job for job in self.jobs if _label(job, REPLICATED_JOB) == name]
        return len(mine) == replicas and all(_is_started(job) for job in mine)

    def _create_job(self, made: Job, template: Object) -> None:
        metadata = msgspec.to_builtins(made.metadata)
        for owner in metadata.get("ownerReferences") or ():
            owner["blockOwnerDeletion"] = True
        given: Object = msgspec.to_builtins(made.spec)
        spec = dict(template.get("spec") or {})
        spec |= {field: given[field] for field in ("completionMode", "completions", "parallelism") if field in given}
        pod_template = made.spec.template
        pod = pod_document(spec["template"], Pod(metadata=pod_template.metadata, spec=pod_template.spec))
        spec["template"] = {"metadata": pod["metadata"], "spec": pod["spec"]}
        if self.strategy == IN_PLACE_RESTART:  # simulated nodes play the part of JobSet's agent for these
            annotations = pod["metadata"].setdefault("annotations", {}) or {}
            pod["metadata"]["annotations"] = {GANG_RESTART: IN_PLACE, **annotations}
        if (self.spec.get("network") or {}).get("enableDNSHostnames", True):
            spec["template"]["spec"].setdefault("subdomain", self._subdomain())
        spec["suspend"] = bool(self.spec.get("suspend"))
        try:
            self.api.create(JOBS, {"metadata": metadata, "spec": spec}, self.namespace)
        except ApiError as error:
            if error.code != 409:
                self._event("Warning", "JobCreationFailed", f"job creation failed: {error}")
                raise

    def _subdomain(self) -> str:
        return str((self.spec.get("network") or {}).get("subdomain") or self.name)

    def _keep_service(self) -> None:
        """The headless service by which pods find each other."""
        if not (self.spec.get("network") or {}).get("enableDNSHostnames", True):
            return
        name = self._subdomain()
        if self.api.find("services", self.namespace, name) is None:
            selector = {"jobset.sigs.k8s.io/jobset-name": self.name}
            spec = {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True}
            self.api.create(
                "services",
                {"metadata": {"name": name, "ownerReferences": [owner_reference(self.set)]}, "spec": spec},
                self.namespace,
            )

    def _delete(self, job: Object) -> None:
        if "deletionTimestamp" in job["metadata"]:
            return
        try:
            self.api.delete(
                JOBS, self.namespace, job["metadata"]["name"], uid=job["metadata"]["uid"], propagation="Foreground"
            )
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def _end(self) -> None:
        """What still runs when all is over goes; the JobSet itself when its time is."""
        for job in (*self.jobs, *self.old):
            if not _is_over(job):
                self._delete(job)

    # What is written

    def _write(self) -> None:
        self.status["restarts"] = self.restarts
        self.status["replicatedJobsStatus"] = [
            self._replicated_status(one.name) for one in self.typed.spec.replicated_jobs
        ]
        if not self.status["conditions"]:
            del self.status["conditions"]
        if self.status != (self.set.get("status") or {}):
            fresh = self.api.find(RESOURCE, self.namespace, self.name)
            if fresh is not None:
                fresh["status"] = self.status
                self.api.update(RESOURCE, fresh, subresource="status")

    def _replicated_status(self, name: str) -> Object:
        mine = [job for job in self.jobs if _label(job, REPLICATED_JOB) == name]
        live = [job for job in mine if not _is_over(job)]
        return {
            "name": name,
            "ready": sum(_is_started(job) and not _is_over(job) for job in mine),
            "succeeded": sum(is_true(job, "Complete") for job in mine),
            "failed": sum(is_true(job, "Failed") for job in mine),
            "active": sum(bool((job.get("status") or {}).get("active")) for job in live),
            "suspended": sum(bool(job["spec"].get("suspend")) for job in live),
        }

    def _event(self, type_: str, reason: str, message: str) -> None:
        self.controller.context.recorder.event(self.set, type_, reason, message, self.controller.name)


def attempt_of(pod: PodView) -> int | None:
    """How often a pod has begun anew in place; None if nothing counts that."""
    said = pod.metadata.annotations.get(ATTEMPT, "")
    return int(said) if said.isdecimal() else None


def _label(job: Object, key: str) -> str:
    return str((job["metadata"].get("labels") or {}).get(key, ""))


def _is_over(job: Object) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _is_started(job: Object) -> bool:
    """Whether as many of a Job's pods are ready, or have succeeded, as it wants."""
    status, spec = job.get("status") or {}, job["spec"]
    wanted = min(spec.get("parallelism", 1), spec.get("completions") or spec.get("parallelism", 1))
    return is_true(job, "Complete") or status.get("ready", 0) + status.get("succeeded", 0) >= wanted
