"""What is decided about workloads, carried out: never more admitted in the world than there is quota."""

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from mooring.drivers.live.api.backoff import Backoff
from mooring.drivers.live.api.client import ApiError
from mooring.drivers.live.api.discovery import Resource
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.pods.refusals import Refusals
from mooring.drivers.live.workloads import writer as workload_writer
from mooring.drivers.live.workloads.executor import WorkloadExecutor
from mooring.drivers.live.workloads.versions import WorkloadVersions
from mooring.model.api.kueue_workload import QuotaAdmission, Workload, WorkloadSpec, WorkloadStatus
from mooring.model.api.meta import ObjectMeta, OwnerReference
from mooring.model.decisions import Admit, Decision, Suspend
from mooring.model.events import Event, WorkloadLost, WorkloadSeen
from mooring.model.keys import WorkloadKey
from mooring.model.objects.kinds import KINDS
from mooring.model.queued.gathering import QueuedWorkload

WORKLOAD, JOB = ("kueue.x-k8s.io", "Workload"), ("batch", "Job")


def queued(name: str, version: int = 1, admission: QuotaAdmission | None = None, owner: str = "") -> QueuedWorkload:
    metadata = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", resource_version=str(version))
    if owner:
        metadata.owner_references = [OwnerReference(api_version=owner, kind="Job", name=name, controller=True)]
    workload = Workload(
        metadata=metadata, spec=WorkloadSpec(queue_name="team"), status=WorkloadStatus(admission=admission)
    )
    return QueuedWorkload(workload, ("Job", "default", name), {})


class Server:
    """Jobs that run and Workloads; what is changed is noted, some requests are refused at first."""

    def __init__(self, refusals: int = 0) -> None:
        self.changed: list[str] = []
        self._refusals = refusals

    async def request(self, method: str, path: str, body: bytes | None, content_type: str) -> bytes:
        await asyncio.sleep(0.01)
        if method == "GET":
            return msgspec.json.encode(
                {"kind": "Job", "metadata": {"resourceVersion": "1"}, "spec": {"suspend": "waiting" in path}}
            )
        if "victim" in path and self._refusals:
            self._refusals -= 1
            raise ApiError(500 if self._refusals % 2 else 409, "NotNow", "not now", 0.001)
        self.changed.append(path.removeprefix("/apis/").partition("namespaces/default/")[2])
        return b'{"metadata": {"resourceVersion": "7"}}'


def carried_out(server: Server, *decisions: Admit | Suspend, owner: str = "") -> list[Decision]:
    """Let these be carried out; those that failed."""
    failed: list[Decision] = []

    async def play() -> None:
        kinds = {(kind.group, kind.name): kind for kind in KINDS}
        dispatcher = Dispatcher()
        queue = SimpleNamespace(metadata=ObjectMeta(name="team"), spec=SimpleNamespace(cohort_name=""))
        tenants: Any = SimpleNamespace(
            workloads={f"default/{name}": queued(name, owner=owner) for name in ("victim", "waiting")},
            local_queues={"default/team": SimpleNamespace(spec=SimpleNamespace(cluster_queue="team"))},
            cluster_queues={"team": queue},
            cohorts={},
            flavors={},
        )
        client: Any = server
        executor = WorkloadExecutor(
            client,
            dispatcher,
            tenants,
            failed=lambda decision, message: failed.append(decision),
            tell=lambda event: None,
            find_pod=lambda key: None,
            find_job=lambda kind, namespace, name: None,
            refusals=Refusals(),
        )
        executor.served = {
            WORKLOAD: Resource(kinds[WORKLOAD], "kueue.x-k8s.io/v1beta2", "workloads", True),
            JOB: Resource(kinds[JOB], "batch/v1", "jobs", True),
        }
        for decision in decisions:
            executor.carry_out(decision)
        assert await dispatcher.drain(10)

    asyncio.run(play())
    return failed


STOPPED = ["jobs/victim", "workloads/victim/status"]
STARTED = ["workloads/waiting/status", "jobs/waiting"]


def test_nobody_is_admitted_before_who_made_room_is_stopped() -> None:
    server = Server()
    suspend, admit = Suspend("default/victim", "Preempted", ""), Admit("default/waiting", "team", (), "")
    assert carried_out(server, suspend, admit) == []
    assert server.changed == [*STOPPED, *STARTED]


def test_a_volcano_job_is_not_taken_for_the_job_of_its_name() -> None:
    server = Server()
    admit = Admit("default/waiting", "team", (), "")
    assert carried_out(server, admit, owner="batch.volcano.sh/v1alpha1") == []
    assert server.changed == ["workloads/waiting/status"]


def test_who_is_to_stop_is_told_until_somebody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_writer, "Backoff", lambda: Backoff(first=0.001))
    server = Server(refusals=7)
    suspend, admit = Suspend("default/victim", "Preempted", ""), Admit("default/waiting", "team", (), "")
    assert carried_out(server, suspend, admit) == []
    assert server.changed == [*STOPPED, *STARTED]


def seen(version: int, admission: QuotaAdmission | None = None) -> WorkloadSeen:
    return WorkloadSeen(queued("job", version, admission))


def versions_of(event: Event) -> tuple[str, bool]:
    assert isinstance(event, WorkloadSeen)
    workload = event.workload.workload
    return workload.metadata.resource_version, workload.status.admission is not None


def test_an_admission_that_was_taken_back_is_not_believed_when_the_watch_shows_it_late() -> None:
    known, busy = queued("job", 1), set[WorkloadKey]()
    versions = WorkloadVersions(lambda key: known, busy.__contains__)
    key = known.workload.key
    versions.wrote(key, 5)
    versions.wrote(key, 8)
    assert versions_of(versions.current(seen(5, QuotaAdmission("team")))) == ("1", False)
    assert versions_of(versions.current(seen(8))) == ("8", False)
    # What comes while something is being written is told when that is done, unless it is older.
    busy.add(key)
    assert versions_of(versions.current(seen(9, QuotaAdmission("team")))) == ("1", False)
    versions.wrote(key, 9)
    busy.clear()
    told = versions.take_news(key)
    assert told is not None and versions_of(told) == ("9", True)
    assert versions.take_news(key) is None
    versions.current(WorkloadLost(key))
    assert versions_of(versions.current(seen(2))) == ("2", False)
