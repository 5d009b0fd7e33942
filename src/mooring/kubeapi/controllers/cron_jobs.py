"""CronJobs: a Job whenever their schedule is due."""

from datetime import datetime
from zoneinfo import ZoneInfo

from mooring.kubeapi.controllers.conditions import is_true
from mooring.kubeapi.controllers.controller import Controller, Key, Object
from mooring.kubeapi.controllers.cron_schedule import CronSchedule, ScheduleError, parse_schedule
from mooring.kubeapi.controllers.ownership import owner_reference
from mooring.kubeapi.status import ApiError
from mooring.model.api.meta import timestamp_seconds, timestamp_text

RESOURCE, JOBS = "cronjobs.batch", "jobs.batch"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MOST_MISSED = 100


class CronJobs(Controller):
    """Makes the Jobs of CronJobs, and keeps as many of the finished as asked for."""

    name = "cronjob-controller"

    def start(self) -> None:
        self.follow(RESOURCE)
        self._jobs = self.informers.of(JOBS)
        self.follow_controlled(self._jobs, "CronJob")

    def sync(self, key: Key) -> None:
        cron = self.api.find(RESOURCE, *key)
        if cron is None:
            return
        jobs = list(self._jobs.controlled_by(cron["metadata"]["uid"]))
        self._clean_up(cron, jobs)
        status = cron.setdefault("status", {})
        before = dict(status)
        self._follow_active(cron, jobs)
        if "deletionTimestamp" not in cron["metadata"] and not cron["spec"].get("suspend"):
            self._make_due(cron)
        if not status.get("active"):
            status.pop("active", None)
        if status != before:
            fresh = self.api.find(RESOURCE, *key)
            if fresh is not None:
                fresh["status"] = status
                self.api.update(RESOURCE, fresh, subresource="status")

    def _follow_active(self, cron: Object, jobs: list[Object]) -> None:
        """Keep the list of Jobs that are under way."""
        status, by_uid = cron["status"], {job["metadata"]["uid"]: job for job in jobs}
        active = []
        for reference in status.get("active") or ():
            job = by_uid.get(reference["uid"])
            if job is None:
                self._event(cron, "Normal", "MissingJob", f"Active job went missing: {reference['name']}")
            elif not _is_over(job):
                active.append(reference)
        known = {reference["uid"] for reference in active}
        listed = {reference["uid"] for reference in status.get("active") or ()}
        for job in jobs:
            uid = job["metadata"]["uid"]
            if not _is_over(job) and uid not in known:
                self._event(
                    cron,
                    "Warning",
                    "UnexpectedJob",
                    f"Saw a job that the controller did not create or forgot: {job['metadata']['name']}",
                )
            elif _is_over(job) and uid in listed:
                outcome = "Complete" if is_true(job, "Complete") else "Failed"
                self._event(
                    cron,
                    "Normal",
                    "SawCompletedJob",
                    f"Saw completed job: {job['metadata']['name']}, condition: {outcome}",
                )
                ended = job["status"].get("completionTime")
                if outcome == "Complete" and ended and (status.get("lastSuccessfulTime") or "") < ended:
                    status["lastSuccessfulTime"] = ended
        status["active"] = active

    def _make_due(self, cron: Object) -> None:
        spec, key = cron["spec"], (cron["metadata"]["namespace"], cron["metadata"]["name"])
        try:
            schedule = parse_schedule(spec["schedule"], spec.get("timeZone"))
        except ScheduleError as error:
            reason = "UnknownTimeZone" if "time zone" in str(error) else "UnparseableSchedule"
            self._event(cron, "Warning", reason, f"invalid schedule: {spec['schedule']} : {error}")
            return
        due = self._last_due(cron, schedule)
        coming = schedule.next_after(self.now)
        if coming is not None:
            self.enqueue(key, after=coming - self.now + 0.05)
        if due is None:
            return
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None and due + deadline < self.now:
            self._event(cron, "Warning", "MissSchedule", f"Missed scheduled time to start a job: {timestamp_text(due)}")
            return
        if cron["status"]["active"]:
            policy = spec.get("concurrencyPolicy", "Allow")
            if policy == "Forbid":
                self._event(
                    cron,
                    "Normal",
                    "JobAlreadyActive",
                    "Not starting job because prior execution is running and concurrency policy is Forbid",
                )
                return
            if policy == "Replace":
                for reference in cron["status"]["active"]:
                    self._delete_job(cron, reference["name"], reference["uid"])
                cron["status"]["active"] = []
        self._create_job(cron, due)

    def _last_due(self, cron: Object, schedule: CronSchedule) -> float | None:
        """The latest moment that was due and has not been seen to."""
        metadata, status = cron["metadata"], cron["status"]
        since = (
            timestamp_seconds(status.get("lastScheduleTime"))
            or timestamp_seconds(metadata["creationTimestamp"])
            or self.now
        )
        deadline = cron["spec"].get("startingDeadlineSeconds")
        if deadline is not None:
            since = max(since, self.now - deadline)
        last, missed = None, 0
        due = schedule.next_after(since)
        while due is not None and due <= self.now:
            last, missed = due, missed + 1
            if missed > MOST_MISSED:
                # Far behind: begin a little before now rather than count the years.
                self._event(
                    cron,
                    "Warning",
                    "TooManyMissedTimes",
                    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
                )
                due = max(due, self._shortly_before_now(schedule, due))
                missed = -(10**9)
            due = schedule.next_after(due)
        return last

    def _shortly_before_now(self, schedule: CronSchedule, due: float) -> float:
        step = 60.0
        while self.now - step > due:
            found = schedule.next_after(self.now - step)
            if found is not None and found <= self.now:
                return found - 1
            step *= 2
        return due

    def _create_job(self, cron: Object, due: float) -> None:
        template, metadata = cron["spec"]["jobTemplate"], cron["metadata"]
        given = template.get("metadata") or {}
        name = f"{metadata['name']}-{int(due // 60)}"
        zone = cron["spec"].get("timeZone")
        job = {
            "metadata": {
                "name": name,
                "labels": dict(given.get("labels") or {}),
                "annotations": {**(given.get("annotations") or {}), SCHEDULED_AT: _in_zone(due, zone)},
                "ownerReferences": [owner_reference(cron)],
                "creationTimestamp": None,
            },
            "spec": template["spec"],
        }
        try:
            created = self.api.create(JOBS, job, metadata["namespace"])
        except ApiError as error:
            if error.code != 409:
                self._event(cron, "Warning", "FailedCreate", f"Error creating job: {error}")
                if error.code == 403:
                    return
                raise
            created = self.api.get(JOBS, metadata["namespace"], name)
        else:
            self._event(cron, "Normal", "SuccessfulCreate", f"Created job {name}")
        about = created["metadata"]
        reference = {"kind": "Job", "apiVersion": "batch/v1", "name": name, "namespace": metadata["namespace"]}
        reference |= {"uid": about["uid"], "resourceVersion": about["resourceVersion"]}
        if not _is_over(created):
            cron["status"]["active"] = [*cron["status"]["active"], reference]
        cron["status"]["lastScheduleTime"] = timestamp_text(due)

    def _clean_up(self, cron: Object, jobs: list[Object]) -> None:
        spec = cron["spec"]
        for outcome, limit in (
            ("Complete", spec.get("successfulJobsHistoryLimit", 3)),
            ("Failed", spec.get("failedJobsHistoryLimit", 1)),
        ):
            over = [job for job in jobs if is_true(job, outcome) and "deletionTimestamp" not in job["metadata"]]
            over.sort(key=lambda job: ((job.get("status") or {}).get("startTime") or "", job["metadata"]["name"]))
            for job in over[: max(0, len(over) - limit)]:
                self._delete_job(cron, job["metadata"]["name"], job["metadata"]["uid"])

    def _delete_job(self, cron: Object, name: str, uid: str) -> None:
        try:
            self.api.delete(JOBS, cron["metadata"]["namespace"], name, uid=uid, propagation="Background")
        except ApiError as error:
            if error.code not in (404, 409):
                raise
        else:
            self._event(cron, "Normal", "SuccessfulDelete", f"Deleted job {name}")

    def _event(self, cron: Object, type_: str, reason: str, message: str) -> None:
        self.context.recorder.event(cron, type_, reason, message, self.name)


def _is_over(job: Object) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _in_zone(moment: float, zone: str | None) -> str:
    return datetime.fromtimestamp(moment, ZoneInfo(zone)).isoformat() if zone else timestamp_text(moment)
