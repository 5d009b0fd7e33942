from datetime import UTC, datetime
from typing import Any

import pytest
from worlds import Object, World, template

from mooring.kubeapi.controllers.cron_jobs import CronJobs
from mooring.kubeapi.controllers.cron_schedule import ScheduleError, parse_schedule
from mooring.kubeapi.controllers.garbage_collector import GarbageCollector
from mooring.kubeapi.controllers.jobs import Jobs


def make_world() -> World:
    return World(CronJobs, Jobs, GarbageCollector)


def cron_job(*command: str, **spec: Any) -> Object:
    job = {"completions": 1, "parallelism": 1, "template": template(*command, restartPolicy="Never")}
    return {"metadata": {"name": "hourly"}, "spec": {"schedule": "*/1 * * * *", "jobTemplate": {"spec": job}, **spec}}


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("*/15 * * * *", None, "2026-03-02T12:01:30", "2026-03-02T12:15:00"),
        ("0 9 * * mon-fri", None, "2026-03-06T10:00:00", "2026-03-09T09:00:00"),
        ("30 4 1,15 * 5", None, "2026-03-02T00:00:00", "2026-03-06T04:30:00"),
        ("@daily", None, "2026-03-02T12:00:00", "2026-03-03T00:00:00"),
        ("0 12 * * *", "Europe/Berlin", "2026-03-02T12:00:00", "2026-03-03T11:00:00"),
        ("0 0 29 2 *", None, "2026-03-02T12:00:00", "2028-02-29T00:00:00"),
        ("0 0 * * 7", None, "2026-03-02T12:00:00", "2026-03-08T00:00:00"),
    ],
)
def test_a_schedule_knows_when_it_is_due_next(schedule: str, zone: str | None, after: str, expected: str) -> None:
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC).timestamp()

    due = parse_schedule(schedule, zone).next_after(moment)

    assert due is not None
    assert datetime.fromtimestamp(due, UTC).strftime("%Y-%m-%dT%H:%M:%S") == expected


@pytest.mark.parametrize("schedule", ["", "* * * *", "61 * * * *", "a * * * *", "*/0 * * * *", "@sometimes"])
def test_what_is_no_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(schedule)


def test_a_job_is_made_each_minute_and_old_ones_go() -> None:
    world = make_world()
    world.create("cronjobs.batch", cron_job("true", successfulJobsHistoryLimit=2))

    world.run(270)

    jobs = world.api.list("jobs.batch")
    assert len(jobs) == 2
    assert all(job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] for job in jobs)
    assert "lastScheduleTime" in world.get("cronjobs.batch", "hourly")["status"]


@pytest.mark.parametrize(("policy", "jobs"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
def test_a_policy_says_what_happens_while_one_still_runs(policy: str, jobs: int) -> None:
    world = make_world()
    world.create("cronjobs.batch", cron_job("sleep", "600", concurrencyPolicy=policy))

    world.run(185)

    running = [job for job in world.api.list("jobs.batch") if "deletionTimestamp" not in job["metadata"]]
    assert len(running) == jobs


def test_a_suspended_cron_job_makes_nothing() -> None:
    world = make_world()
    world.create("cronjobs.batch", cron_job("true", suspend=True))

    world.run(180)

    assert world.api.list("jobs.batch") == []
