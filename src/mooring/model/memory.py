"""What must outlive a restart and cannot be found out from the objects of a cluster: sums over time, and what was when.

Each owner writes down its part and takes it up again; drivers keep it where people can read it. So times are written as
the API writes them, and queues, workloads and gangs go by the names that people know.
"""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

Moment = Annotated[datetime, msgspec.Meta(tz=True)]


def moment(seconds: float) -> Moment:
    """Seconds since 1970, for people."""
    return datetime.fromtimestamp(seconds, UTC)


class _Remembered(msgspec.Struct, rename="camel", omit_defaults=True):
    pass


class QueueUse(_Remembered):
    """What a queue used on average, later use counting more, by resource."""

    as_of: Moment
    averages: dict[str, float] = {}
    held: dict[str, float] = {}
    """What it has had since then."""


class SharedUse(_Remembered):
    """What the queues of one family had of a cluster: amounts times seconds, later ones counting more, by resource."""

    as_of: Moment
    used: dict[str, dict[str, float]] = {}
    """By queue."""
    available: dict[str, float] = {}
    """What the whole cluster had, counted alike."""
    held: dict[str, dict[str, int]] = {}
    """What each queue has had since then."""
    total: dict[str, int] = {}


class Memory(_Remembered):
    """All of it; empty where no policy looks back."""

    local_queues: dict[str, QueueUse] = {}
    """By namespace/name of a LocalQueue: what it used."""
    borrowed: dict[str, QueueUse] = {}
    """By `ClusterQueue/name` or `Cohort/name`: what it borrowed."""
    shared_queues: dict[str, SharedUse] = {}
    """By family: Volcano's queues, and those that share like them."""
    preemptions: dict[str, list[Moment]] = {}
    """By workload: when it was preempted, as far back as that counts."""
    gangs_waiting_since: dict[str, Moment] = {}
    """By gang: since when it has been tried in vain. Room is kept for one that has waited long."""
    gangs_short_since: dict[str, Moment] = {}
    """By gang of which some pods run: since when it lacks others. It is released when its time is up."""
