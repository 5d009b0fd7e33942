"""What stands on Workloads: made when their jobs come, and no more written than has changed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
import yaml
from msgspec.structs import replace

from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.object_events import ObjectEvents
from mooring.drivers.live.pods.refusals import Refusals
from mooring.drivers.live.workloads import conditions as workload_conditions
from mooring.drivers.live.workloads.conditions import WorkloadConditions
from mooring.drivers.live.workloads.finished import finished_condition
from mooring.drivers.live.workloads.requests import all_conditions, condition
from mooring.drivers.live.workloads.writer import WORKLOAD, WorkloadWriter
from mooring.model.api.kueue_workload import QuotaAdmission, Workload, WorkloadCondition, WorkloadSpec, WorkloadStatus
from mooring.model.api.meta import Condition, ObjectMeta, OwnerReference
from mooring.model.api.pods import PodTemplateSpec
from mooring.model.api.workloads import Job, JobSpec, JobStatus
from mooring.model.decisions import Defer
from mooring.model.events import WorkloadSeen
from mooring.model.keys import WorkloadKey
from mooring.model.loading.catalog import Catalog
from mooring.model.objects.kinds import KINDS, decode
from mooring.model.places import Place
from mooring.model.queued.building import MADE_FROM, fingerprint
from mooring.model.queued.gathering import QueuedWorkload
from mooring.testing.builders import make_pod

KEY = WorkloadKey("default/job")


def workload(uid: str, *, version: str = "", **status: Any) -> Workload:
    metadata = ObjectMeta(name="job", namespace="default", uid=uid, resource_version=version)
    return Workload(metadata=metadata, spec=WorkloadSpec(queue_name="team"), status=WorkloadStatus(**status))


class World:
    """A server that counts versions, and one workload as the scheduler knows it."""

    def __init__(self, found: Workload) -> None:
        self.workload = found
        self.requests: list[tuple[str, Any]] = []
        self.events: list[str] = []
        self.version = 10
        self.refusals: list[int] = []
        self.wrote: list[int] = []

    async def request(self, method: str, path: str, body: bytes | None, content_type: str = "") -> bytes:
        return await self._answer(method, path, body)

    async def post(self, path: str, body: bytes) -> bytes:
        found = msgspec.json.decode(body)
        assert (found["regarding"]["kind"], found["regarding"]["uid"]) == ("Workload", "real")
        self.events.append(found["reason"])
        return b"{}"

    async def _answer(self, method: str, path: str, body: bytes | None) -> bytes:
        self.requests.append((f"{method} {path.rpartition('/default/')[2]}", msgspec.json.decode(body or b"{}")))
        if self.refusals:
            raise ApiError(self.refusals.pop(0), "No", "no")
        self.version += 1
        return msgspec.json.encode({"metadata": {"uid": "real", "resourceVersion": str(self.version)}})

    def play(self, *steps: Callable[[WorkloadConditions], None]) -> list[str]:
        """Take these steps, one after the other; the requests."""

        async def alone(key: WorkloadKey, work: Callable[[], Awaitable[None]]) -> None:
            await work()

        async def run() -> None:
            kind = next(kind for kind in KINDS if (kind.group, kind.name) == WORKLOAD)
            dispatcher, client = Dispatcher(), self
            writer = WorkloadWriter(client, dispatcher)  # type: ignore[arg-type]
            writer.served = {WORKLOAD: Resource(kind, "v1beta2", "workloads", True)}
            conditions = WorkloadConditions(
                writer,
                ObjectEvents(client, dispatcher),  # type: ignore[arg-type]
                dispatcher,
                find=lambda key: self.queued,
                alone=alone,
                wrote=lambda key, version: self.wrote.append(version),
                vanished=writer.forget,
            )
            for step in steps:
                step(conditions)
                assert await dispatcher.drain(5)
                await asyncio.sleep(0.05)
                assert await dispatcher.drain(5)

        asyncio.run(run())
        return [request for request, _ in self.requests]

    @property
    def queued(self) -> QueuedWorkload:
        return QueuedWorkload(self.workload, ("Job", "default", "job"), {})

    def shows(self, **status: Any) -> None:
        """The watch brings what was written."""
        self.workload = workload("real", version=str(self.version), **status)


def say(message: str) -> Callable[[WorkloadConditions], None]:
    return lambda conditions: conditions.say(Defer(KEY, "WaitingForQuota", message))


def waits(message: str) -> dict[str, list[WorkloadCondition]]:
    return {"conditions": [WorkloadCondition(type="QuotaReserved", status="False", reason="Pending", message=message)]}


def test_a_workload_is_made_when_its_job_comes_and_told_why_it_waits() -> None:
    world = World(workload("made-1"))
    requests = world.play(
        lambda conditions: conditions.arrived(world.queued), lambda conditions: world.shows(), say("too little")
    )
    assert requests == ["POST workloads", "PATCH workloads/job/status"]
    made, said = (body for _, body in world.requests)
    assert made["metadata"]["annotations"] == {MADE_FROM: fingerprint(world.workload.spec)}
    assert said["metadata"] == {"resourceVersion": "11"}
    (found,) = said["status"]["conditions"]
    assert (found["type"], found["status"], found["message"]) == ("QuotaReserved", "False", "too little")
    assert world.events == ["Pending"]
    assert world.wrote == [11, 12]


@pytest.mark.parametrize("code", [403, 404, 422])
def test_a_workload_that_could_not_be_made_is_made_later(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kind may be deleted and come back, or a webhook may refuse it for a while."""
    monkeypatch.setattr(Refusals, "note", lambda self, who, now, at_once: 0.01)
    world = World(workload("made-1"))
    world.refusals = [code, code]
    assert world.play(lambda conditions: conditions.arrived(world.queued)) == ["POST workloads"] * 3


def test_a_workload_that_is_deleted_before_it_was_seen_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_conditions, "LATER_SECONDS", 0.01)
    monkeypatch.setattr(workload_conditions, "UNSEEN_SECONDS", 0.015)
    world = World(workload("made-1"))

    def delete(conditions: WorkloadConditions) -> None:
        world.refusals = [404]
        say("too little")(conditions)

    requests = world.play(lambda conditions: conditions.arrived(world.queued), delete, lambda conditions: world.shows())
    assert requests[:4] == ["POST workloads", "GET workloads/job", "POST workloads", "PATCH workloads/job/status"]


def test_of_many_words_the_last_is_written_and_none_that_is_there_already() -> None:
    world = World(workload("real", version="1"))

    def all_at_once(conditions: WorkloadConditions) -> None:
        for number in range(50):
            say(f"{number} more needed")(conditions)

    assert world.play(all_at_once) == ["PATCH workloads/job/status"]
    assert world.requests[0][1]["status"]["conditions"][0]["message"] == "49 more needed"
    known = WorkloadCondition(type="QuotaReserved", status="False", reason="WaitingForQuota", message="the same")
    assert World(workload("real", version="1", conditions=[known])).play(say("the same")) == []


def test_who_was_told_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_conditions, "SAY_AGAIN_SECONDS", 3600.0)
    world = World(workload("real", version="1"))
    assert world.play(say("1"), say("2"), say("3")) == ["PATCH workloads/job/status"]
    monkeypatch.setattr(workload_conditions, "SAY_AGAIN_SECONDS", 0.02)
    world = World(workload("real", version="1"))
    assert len(world.play(say("1"), say("2"))) == 2


def test_words_on_a_workload_that_was_another_are_written_when_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_conditions, "LATER_SECONDS", 0.01)
    world = World(workload("real", version="1"))
    world.refusals = [409]
    assert world.play(say("why")) == ["PATCH workloads/job/status"] * 2


def told(world: World) -> list[str]:
    return [body["status"]["conditions"][0]["message"] for _, body in world.requests]


def test_words_that_another_writer_has_replaced_are_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an eviction does that is written after the reason why the workload waits now."""
    monkeypatch.setattr(workload_conditions, "SAY_AGAIN_SECONDS", 0.02)
    world = World(workload("real", version="1"))

    def overwritten(conditions: WorkloadConditions) -> None:
        world.shows(**waits("it was preempted"))
        conditions.arrived(world.queued)

    def seen_as_said(conditions: WorkloadConditions) -> None:
        known = WorkloadCondition(type="QuotaReserved", status="False", reason="WaitingForQuota", message="why")
        world.shows(conditions=[known])
        conditions.arrived(world.queued)

    world.play(say("why"), overwritten, seen_as_said)
    assert told(world) == ["why", "why"]


def test_words_that_could_not_be_written_are_when_the_workload_is_seen_again() -> None:
    world = World(workload("real", version="1"))
    world.refusals = [403]
    world.play(say("why"), lambda conditions: conditions.arrived(world.queued))
    assert told(world) == ["why", "why"]


def test_a_workload_that_was_given_quota_or_waits_for_nothing_said_is_left_as_it_is() -> None:
    world = World(workload("real", version="1", **waits("of another")))
    world.play(lambda conditions: conditions.arrived(world.queued))

    def admitted(conditions: WorkloadConditions) -> None:
        world.shows(admission=QuotaAdmission(cluster_queue="team"))
        conditions.take_back(KEY)
        conditions.arrived(world.queued)

    world.play(admitted)
    assert world.requests == []


def test_of_who_has_quota_it_is_not_said_that_it_waits() -> None:
    world = World(workload("real", version="1", admission=QuotaAdmission(cluster_queue="team")))
    assert world.play(say("why"), lambda conditions: conditions.take_back(KEY)) == []


def test_a_job_that_has_become_another_asks_for_that() -> None:
    found = workload("real", version="5")
    found = replace(found, metadata=replace(found.metadata, annotations={MADE_FROM: ""}))
    world = World(found)
    assert world.play(lambda conditions: conditions.arrived(world.queued)) == ["PATCH workloads/job"]
    body = world.requests[0][1]
    assert body["metadata"]["annotations"] == {MADE_FROM: fingerprint(found.spec)}
    assert (body["spec"]["queueName"], body["spec"]["priority"]) == ("team", None)


def test_a_condition_has_changed_when_its_status_has() -> None:
    before = WorkloadCondition(type="QuotaReserved", status="False", last_transition_time="2026-01-01T00:00:00Z")
    kept = WorkloadCondition(type="PodsReady", status="True", reason="Ready")
    known = workload("real", conditions=[before, kept])
    new = [condition("QuotaReserved", "False", "Pending", "why"), condition("Admitted", "False", "None", "")]
    found = all_conditions(known, new)
    assert [each["type"] for each in found] == ["PodsReady", "QuotaReserved"]
    assert found[1]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert all_conditions(known, [condition("QuotaReserved", "True", "R", "")])[1]["lastTransitionTime"] > "2026-01-02"


def ended(job: Job | None = None, *phases: str) -> tuple[str, str] | None:
    found = workload("real", version="1")
    pods = {f"default/p{i}": make_pod(f"p{i}", phase=phase) for i, phase in enumerate(phases)}
    owners = [OwnerReference(kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid) for pod in pods.values()]
    owners = owners or [OwnerReference(kind="Job", name="job", uid="u", controller=True)]
    found.metadata.owner_references = owners
    return finished_condition(found, lambda kind, namespace, name: job, pods.get)


def make_owner(type_: str = "", uid: str = "u") -> Job:
    conditions = [Condition(type=type_, status="True", message="said by the job")] if type_ else None
    spec = JobSpec(template=PodTemplateSpec())
    return Job(metadata=ObjectMeta(name="job", uid=uid), spec=spec, status=JobStatus(conditions=conditions))


def test_how_it_ended_is_what_the_job_or_the_pods_say() -> None:
    assert ended(make_owner("Complete")) == ("Succeeded", "said by the job")
    assert ended(make_owner("Failed")) == ("Failed", "said by the job")
    assert ended(make_owner()) is None
    assert ended(make_owner("Complete", uid="of another")) is None
    assert ended(None) is None
    assert ended(None, "Succeeded", "Succeeded") == ("Succeeded", "Pods succeeded: 2/2.")
    assert ended(None, "Succeeded", "Failed") == ("Failed", "Pods succeeded: 1/2.")
    assert ended(None, "Succeeded", "Running") is None


JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: job, namespace: default, uid: u, labels: {kueue.x-k8s.io/queue-name: %s}}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: pause}]}}
"""


def followed(made_from: str, queue: str) -> tuple[str, str, bool]:
    """What is told of a Workload made from one queue when its job names another: queue, mark, whether it is active."""
    catalog, place = Catalog(expands=False), Place("here")

    def tell(text: str) -> Workload:
        catalog.put(decode(msgspec.json.encode(yaml.safe_load(text)), Job, place, "Job"), place)
        (event,) = [event for event in catalog.changes() if isinstance(event, WorkloadSeen)]
        return event.workload.workload

    made = tell(JOB % made_from)
    marks = {MADE_FROM: fingerprint(made.spec)}
    metadata = replace(made.metadata, uid="real", resource_version="1", annotations=marks)
    catalog.put(replace(made, metadata=metadata, spec=replace(made.spec, active=False)), place)
    assert any(isinstance(event, WorkloadSeen) for event in catalog.changes())
    found = made if queue == made_from else tell(JOB % queue)
    return found.spec.queue_name, (found.metadata.annotations or marks)[MADE_FROM], found.spec.active


def test_a_workload_follows_its_job_and_keeps_what_others_say_of_it() -> None:
    assert followed("team", "other") == ("other", "", False)
    assert followed("team", "team")[1] != ""
