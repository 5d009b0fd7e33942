"""Who admits, of several schedulers, and what the others are told."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.dispatcher import Dispatcher
from mooring.drivers.live.driver import Live
from mooring.drivers.live.election import Election, ElectionSettings
from mooring.drivers.live.watching.cache import ObjectCache
from mooring.drivers.live.workloads.admitting import WorkloadView
from mooring.model.api.kueue_workload import QuotaAdmission, Workload, WorkloadCondition, WorkloadSpec, WorkloadStatus
from mooring.model.api.meta import ObjectMeta
from mooring.model.decisions import Admit, Bind, Defer, Evict
from mooring.model.events import WorkloadLost, WorkloadSeen
from mooring.model.queued.gathering import QueuedWorkload
from mooring.testing.queueing_builders import make_queue
from mooring.testing.tenant_builders import TenantWorld, make_job


def seen(*conditions: str, admission: bool = False, version: str = "1") -> WorkloadSeen:
    said = [WorkloadCondition(type=type_, status="True") for type_ in conditions]
    workload = Workload(
        metadata=ObjectMeta(name="job", namespace="default", uid="uid", resource_version=version),
        spec=WorkloadSpec(queue_name="team"),
        status=WorkloadStatus(conditions=said, admission=QuotaAdmission(cluster_queue="team") if admission else None),
    )
    return WorkloadSeen(QueuedWorkload(workload, ("Job", "default", "job"), {}))


def is_told_of(view: WorkloadView, event: WorkloadSeen) -> tuple[bool, bool]:
    """Whether the scheduler hears that it is active, and that it has quota."""
    told = view.of(event)
    assert isinstance(told, WorkloadSeen)
    workload = told.workload.workload
    return workload.spec.active, workload.status.admission is not None


def test_who_does_not_admit_hears_only_of_those_that_may_start() -> None:
    view = WorkloadView()
    assert is_told_of(view, seen()) == (False, False)
    assert is_told_of(view, seen("QuotaReserved", admission=True)) == (False, False)
    assert is_told_of(view, seen("QuotaReserved", "Admitted", admission=True)) == (True, True)
    assert is_told_of(view, seen("QuotaReserved", "Admitted", "Evicted", admission=True)) == (False, False)
    assert view.is_older(seen(version="2").workload.workload)
    assert not view.is_older(seen(version="1").workload.workload)
    last = seen("Evicted")
    view.of(last)
    assert view.take_over() == [last]
    assert is_told_of(view, seen()) == (True, False)


def test_who_is_gone_is_not_told_of_to_who_takes_over() -> None:
    view, one = WorkloadView(), seen()
    view.of(one)
    lost = WorkloadLost("default/job")
    assert view.of(lost) is lost
    assert view.take_over() == []


def test_pods_without_quota_are_held_back_until_another_admits_them_or_we_do() -> None:
    world = TenantWorld([make_queue()], [make_job("first", cpu=4)])
    view = WorkloadView()
    world.scheduler.catch_up(world.now)
    for queued in list(world.scheduler.cluster.tenants.workloads.values()):
        world.scheduler.handle(view.of(WorkloadSeen(queued)))
    assert [type(found) for found in world.cycle()][:1] == [Defer]
    assert world.running() == []
    world.scheduler.handle(*view.take_over())
    assert [type(found) for found in world.cycle()] == [Admit, Bind]


def test_evictions_that_were_left_to_who_admits_are_made_up_for_when_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was killed after it had stopped a workload, and before it evicted its pods."""
    world, nobody = TenantWorld([make_queue()], [make_job("first", cpu=4)]), Any
    world.cycle()
    (running,) = world.running()
    decision = Evict(f"default/{running}", "n0", "", "its workload was stopped")

    async def story() -> list[Evict]:
        live = Live(world.scheduler, ObjectCache(), cast(Client, nobody), Dispatcher())
        evicted: list[Evict] = []
        monkeypatch.setattr(live, "_evict", evicted.append)
        live.carry_out(decision)
        assert evicted == []
        live._evict_what_was_left()
        live._evict_what_was_left()  # once
        return evicted

    assert asyncio.run(story()) == [decision]


class Leases:
    """A server of one Lease."""

    def __init__(self) -> None:
        self.lease: Any = None

    async def get(self, path: str) -> bytes:
        if self.lease is None:
            raise ApiError(404, "NotFound", "not found")
        return msgspec.json.encode(self.lease)

    async def post(self, path: str, body: bytes) -> bytes:
        self.lease = msgspec.json.decode(body)
        return body

    async def request(self, method: str, path: str, body: bytes, *, is_fenced: bool) -> bytes:
        assert not is_fenced
        if method == "POST":
            return await self.post(path, body)
        return await self.post(path, body)


def gets_it(server: Any, group: str) -> bool:
    """Whether somebody gets the lease within a moment."""

    async def play() -> bool:
        election = Election(server, ElectionSettings("mooring-admission"), group=group)
        try:
            async with asyncio.timeout(0.05):
                await election.acquire()
        except TimeoutError:
            return False
        return election.is_sure

    return asyncio.run(play())


def test_the_next_to_lead_takes_the_lease_of_who_led_before_and_of_nobody_else() -> None:
    server = Leases()
    assert gets_it(server, "kube-system/one")
    assert not gets_it(server, "kube-system/other")
    assert not gets_it(server, "")
    assert gets_it(server, "kube-system/one")
    alone = Leases()
    assert gets_it(alone, "")
    assert not gets_it(alone, "")
