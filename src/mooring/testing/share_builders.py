"""Builders of queues and jobs for shares: plain functions with honest defaults that return the real thing."""

from collections.abc import Iterable, Mapping
from typing import Any

from mooring.actions.shares.demands import JobDemand, QueueSpec, Role
from mooring.actions.shares.division import BY_SPEC, WEIGHTED, Division
from mooring.actions.shares.settings import ShareSettings
from mooring.actions.shares.sharing import Offer, Sharing
from mooring.state.undo import UndoLog

CPU, GPU, MEMORY = "cpu", "nvidia.com/gpu", "memory"


def amounts(*, cpu: float = 0, gpu: int = 0, memory: int = 0, **others: int) -> dict[str, int]:
    """Amounts by resource, CPU in whole ones; without those that are 0.

    >>> amounts(cpu=2, gpu=1)
    {'cpu': 2000, 'nvidia.com/gpu': 1}
    """
    found = {CPU: round(cpu * 1000), GPU: gpu, MEMORY: memory, **others}
    return {name: amount for name, amount in found.items() if amount}


def make_share_queue(
    name: str,
    *,
    parent: str = "",
    weight: float = 1.0,
    priority: int = 0,
    capability: Mapping[str, int] | None = None,
    deserved: Mapping[str, int] | None = None,
    guarantee: Mapping[str, int] | None = None,
    reclaimable: bool = True,
    minimum_runtime: float | None = None,
) -> QueueSpec:
    return QueueSpec(
        name,
        parent=parent,
        weight=weight,
        priority=priority,
        capability=capability or {},
        deserved=deserved or {},
        guarantee=guarantee or {},
        is_reclaimable=reclaimable,
        minimum_runtime_seconds=minimum_runtime,
    )


def make_share_job(
    key: str,
    queue: str,
    *,
    members: int = 1,
    min_members: int = 1,
    held: int = 0,
    priority: int = 0,
    created: float = 0.0,
    started: float | None = None,
    preemptible: bool = True,
    enqueued: bool = True,
    request: Mapping[str, int] | None = None,
) -> JobDemand:
    """A job of equal members; each asks for one GPU if nothing else is said."""
    wanted = amounts(gpu=1) if request is None else request
    return JobDemand(
        key,
        queue,
        (Role(wanted, members, held=held),),
        min_members=min_members,
        priority=priority,
        created=created,
        started=started,
        is_preemptible=preemptible,
        is_enqueued=enqueued,
    )


def our_settings(division: Division, **others: Any) -> ShareSettings:
    """Settings with what is ours where Volcano does otherwise: guarantees are kept, and shares always as they are."""
    return ShareSettings(division=division, keeps_guarantees=True, moves_parent_shares=True, **others)


def make_sharing(
    queues: Iterable[QueueSpec],
    jobs: Iterable[JobDemand] = (),
    *,
    total: Mapping[str, int],
    capacity: bool = False,
    settings: ShareSettings | None = None,
) -> Sharing:
    """Shares with all jobs taken in and a cycle begun at second 0; by our own rules if no settings say otherwise."""
    if settings is None:
        settings = our_settings(BY_SPEC if capacity else WEIGHTED)
    sharing = Sharing(queues, total, settings, log=UndoLog())
    for job in jobs:
        reason = sharing.add(job)
        assert not reason, reason
    sharing.start_cycle(0.0)
    return sharing


def fill(sharing: Sharing, most: int = 1_000_000) -> list[Offer]:
    """Take every offer, until there are no more."""
    taken: list[Offer] = []
    while len(taken) < most and (offer := sharing.next_job()) is not None:
        sharing.allocate(offer.job, offer.members)
        taken.append(offer)
    return taken
