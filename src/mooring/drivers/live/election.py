"""Who schedules, of several that could: whoever holds a Lease, by the rules and timings of client-go's leader election.

Time is measured here, by how long a Lease has not changed: clocks of other machines are not trusted.
"""

import asyncio
import logging
import os
import random
import socket
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from mooring.config.scheduler import DEFAULT_SCHEDULER, LeaderElection
from mooring.drivers.live.api.client import ApiError, Client
from mooring.drivers.live.api.requests import encode
from mooring.errors import MooringError
from mooring.model.values.durations import parse_duration

JITTER = 1.2
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ElectionSettings:
    """As kube-scheduler's flags have them, in seconds."""

    name: str
    namespace: str = "kube-system"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


def election_settings(configured: LeaderElection, schedulers: Iterable[str]) -> ElectionSettings | None:
    """What a configuration asks for; None if nobody else is to be asked.

    In kube-scheduler's place its own lease is used, so that the two never schedule at once.
    """
    if not configured.leader_elect:
        return None
    names = list(schedulers)
    own = "kube-scheduler" if DEFAULT_SCHEDULER in names or not names else names[0]
    return ElectionSettings(configured.resource_name or own, configured.resource_namespace, *lease_timings(configured))


def lease_timings(configured: LeaderElection) -> tuple[float, float, float]:
    """How long a lease lasts, until when it must be renewed, and how often that is tried, in seconds."""
    durations = (configured.lease_duration, configured.renew_deadline, configured.retry_period)
    lease, renew, retry = (parse_duration(text) or 0.0 for text in durations)
    return lease, renew, retry


class LeadershipLost(MooringError):
    """Somebody else leads now, or the Lease could not be renewed in time."""


class Election:
    """One candidate."""

    def __init__(self, client: Client, settings: ElectionSettings, *, group: str = "") -> None:
        """`group`: those of whom another election lets one go on at a time. Who of them wants the lease is the only
        one who can hold it: if another of them is written there, it is over."""
        self._client, self._settings = client, settings
        self._group = f"{group}/" if group else ""
        self.identity = f"{self._group}{socket.gethostname()}_{uuid.UUID(bytes=os.urandom(16), version=4)}"
        self.is_leader = False
        self._has_lost = False
        """Whether somebody else has led, or may have, since we did."""
        self._seen: dict[str, Any] = {}
        self._seen_at = 0.0
        self._renewed_at = 0.0
        root = f"/apis/coordination.k8s.io/v1/namespaces/{settings.namespace}/leases"
        self._root, self._path = root, f"{root}/{settings.name}"

    @property
    def is_sure(self) -> bool:
        """Whether no other candidate can lead now, nor by the time that a request which leaves now is carried out; also
        if this process was stopped for long and has yet to find out."""
        return self.is_leader and now() < self._renewed_at + self._settings.renew_deadline

    def overdue_seconds(self) -> float:
        """For how long the lease of a leader has been over; negative while it lasts, or without one."""
        return now() - self._renewed_at - self._settings.lease_duration if self.is_leader else -1.0

    async def acquire(self) -> None:
        """Wait until we lead."""
        _log.info("waiting for the lease %s/%s", self._settings.namespace, self._settings.name)
        while not await self._try():
            await asyncio.sleep(self._settings.retry_period * random.uniform(1.0, JITTER))
        self.is_leader = True
        _log.info("leading as %s", self.identity)

    async def hold(self) -> None:
        """Renew until that fails for too long; then raise LeadershipLost."""
        while True:
            await asyncio.sleep(self._settings.retry_period)
            if await self._try():
                continue
            if self._has_lost or now() > self._renewed_at + self._settings.renew_deadline:
                self.is_leader = False
                raise LeadershipLost(f"the lease {self._settings.namespace}/{self._settings.name} was lost")

    async def release(self) -> None:
        """Let another one lead at once."""
        if not self.is_leader:
            return
        self.is_leader = False
        try:
            lease = msgspec.json.decode(await self._client.get(self._path))
            if lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
                await self._client.request("PUT", self._path, encode(lease), is_fenced=False)
        except ApiError as error:
            _log.warning("the lease was not released: %s", error.message)

    async def _try(self) -> bool:
        """Acquire the lease, or renew it."""
        try:
            async with asyncio.timeout(self._settings.renew_deadline):
                return await self._acquire_or_renew()
        except ApiError as error:
            if error.code in (401, 403) and not self.is_leader:
                raise
            _log.warning("the lease could not be had: %s", error.message)
        except TimeoutError:
            _log.warning("the lease could not be had in time")
        return False

    async def _acquire_or_renew(self) -> bool:
        started = now()
        try:
            lease = msgspec.json.decode(await self._client.get(self._path))
        except ApiError as error:
            if error.code != 404:
                raise
            lease = None
        if self.is_leader and self._is_gone(lease, started):
            self._has_lost = True  # what we decided before must not be sent, also if nobody leads at the moment
            return False
        at = _now()
        ours = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": round(self._settings.lease_duration),
            "acquireTime": at,
            "renewTime": at,
            "leaseTransitions": 0,
        }
        if lease is None:
            await self._client.request("POST", self._root, encode(self._new(ours)), is_fenced=False)
        else:
            spec = lease.get("spec") or {}
            if spec != self._seen:
                self._seen, self._seen_at = spec, started
            holder = spec.get("holderIdentity", "")
            is_anothers = holder not in ("", self.identity) and not self._is_predecessor(holder)
            if is_anothers and started < self._seen_at + self._settings.lease_duration:
                return False
            if holder == self.identity:
                ours |= {key: spec[key] for key in ("acquireTime", "leaseTransitions") if key in spec}
            else:
                ours["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
            lease["spec"] = {**spec, **ours}
            try:
                await self._client.request("PUT", self._path, encode(lease), is_fenced=False)
            except ApiError as error:
                if error.code == 409:  # somebody was faster
                    return False
                raise
        self._seen, self._seen_at, self._renewed_at = ours, started, started
        return True

    def _is_gone(self, lease: dict[str, Any] | None, at: float) -> bool:
        """Whether the lease that we led by is not ours any more: another has it, or had it and gave it back. One that
        was deleted while it lasted was nobody else's."""
        if lease is None:
            return at >= self._renewed_at + self._settings.renew_deadline
        return (lease.get("spec") or {}).get("holderIdentity") != self.identity

    def _is_predecessor(self, holder: str) -> bool:
        """Whether one held it who could only do so while we could not."""
        return bool(self._group) and not self.is_leader and holder.startswith(self._group)

    def _new(self, spec: dict[str, Any]) -> dict[str, Any]:
        settings = self._settings
        metadata = {"name": settings.name, "namespace": settings.namespace}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def now() -> float:
    """Seconds that pass while this process is stopped, and while the machine is, where it can tell."""
    return time.clock_gettime(_CLOCK)


_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _now() -> str:
    return datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
