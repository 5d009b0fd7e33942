"""What a pod's gang adds to say of it: the priority that counts, the place it wants, the room there is for it."""

import math
from collections import Counter
from collections.abc import Iterable

from mooring.actions.gangs.explain import explain_gang
from mooring.actions.gangs.explain_groups import GroupRoom as RoomOfGroup
from mooring.actions.gangs.forecast import Forecast
from mooring.actions.gangs.placing import GangPlacer
from mooring.actions.place.section import PlacingSection
from mooring.engine.cycle import Scheduler
from mooring.engine.queue.entries import lacking
from mooring.engine.queue.queue import Entry, GangEntry
from mooring.engine.verdict import Rejection
from mooring.model.api.kueue_labels import pod_group, queue_name
from mooring.model.api.meta import timestamp_text
from mooring.model.api.pods import Pod
from mooring.model.gangs.membership import membership
from mooring.model.keys import GangKey, PodKey
from mooring.model.queued.pods import gather_groups
from mooring.model.topology.requests import TopologyRequest
from mooring.report.explain.data import GangAhead, GangStatus, GroupRoom, Leaver, LevelRoom, Room
from mooring.state.gangs import GangRecord, GangTable
from mooring.state.pods import UNBOUND


class Priorities:
    """What pods count for when others are evicted for them, or they for others: as much as their gangs do."""

    def __init__(self, gangs: GangTable, pods: Iterable[Pod]) -> None:
        self._gangs, self._pods = gangs, pods
        self._most_urgent: dict[GangKey, int] | None = None

    def of(self, pod: Pod) -> int:
        own = pod.spec.priority or 0
        root = self._root_of(pod)
        if root is None or root.gang is None:
            return own
        if root.gang.priority is not None:
            return root.gang.priority
        if self._most_urgent is None:
            self._most_urgent = {}
            for other in self._pods:
                if (found := self._root_of(other)) is not None:
                    urgency = max(other.spec.priority or 0, self._most_urgent.get(found.key, -(2**31)))
                    self._most_urgent[found.key] = urgency
        return self._most_urgent.get(root.key, own)

    def _root_of(self, pod: Pod) -> GangRecord | None:
        member = membership(pod) if self._gangs else None
        record = self._gangs.records.get(member.gang) if member is not None else None
        return None if record is None else self._gangs.root_of(record)


def members_with(gangs: GangTable, key: PodKey) -> set[PodKey]:
    """A pod, and whoever is placed at one moment with it."""
    record = gangs.of(key)
    parts = gangs.parts_of(gangs.root_of(record)) if record is not None else ()
    return {key, *(member for part in parts for member in part.members)}


def place_wanted(gangs: GangTable, key: PodKey) -> str:
    """Where a pod's gang wants to be, and the gangs and roles around it; empty if anywhere will do."""
    record = gangs.of(key)
    if record is None:
        return ""
    said: list[str] = []
    for found in gangs.lineage(record):
        gang = found.gang
        if gang is None:
            continue
        role = found.roles.get(key, "")
        for other in gang.roles:
            if other.name == role and other.topology_request is not None:
                said.append(f"its role {role} is to be {_in_words(other.topology_request)}")
        said += [
            f"{', '.join(group.roles)} of gang {gang.name} are to be {_in_words(group.topology_request)}"
            for group in gang.role_groups
            if role in group.roles
        ]
        if gang.topology_request is not None:
            said.append(f"gang {gang.name} is to be {_in_words(gang.topology_request)}")
    return ", ".join(said)


def _in_words(topology_request: TopologyRequest) -> str:
    return " and ".join(topology_request.words) or "in few domains of the topology"


def gang_status(scheduler: Scheduler, key: PodKey, now: float) -> GangStatus | None:
    """What the gang of a pod waits for, if it waits with one."""
    gang = next((found for found in scheduler.queue.gangs if found.has(key)), None)
    place = next(iter(scheduler.sections(PlacingSection, now)), None)
    if gang is None or place is None:
        return None
    found = explain_gang(scheduler.cluster, scheduler.queue, gang, place.gangs)
    status = GangStatus(
        name=found.name,
        minimum=found.minimum,
        members=found.members,
        running=found.running,
        message=found.message,
        wants=found.wants,
        groups=[_group(group) for group in found.groups],
        ahead=[GangAhead(ahead.name, ahead.members, ahead.message, ahead.has_reservation) for ahead in found.ahead],
    )
    if status.groups and status.message:
        _add_help(status, scheduler, gang, place.gangs, now)
    return status


def _add_help(status: GangStatus, scheduler: Scheduler, gang: GangEntry, placer: GangPlacer, now: float) -> None:
    """How much room a gang lacks, and who would have to go; or that nothing of the kind would help."""
    forecast = Forecast(placer)
    lacks: Counter[str] = Counter()
    for group in status.groups:
        for resource, amount in group.requests.items():
            lacks[resource] += amount * (group.needed - group.fitting)
    status.lacks = {resource: amount for resource, amount in lacks.items() if amount}
    if not forecast.could_ever_fit(scheduler.cluster, gang):
        status.never_fits = _when_empty(scheduler, gang, placer)
        return
    plan = forecast.plan(scheduler.cluster, gang, now)
    if plan is not None:
        status.starts_without = [
            Leaver(record.key, record.node_name, "" if math.isinf(end) or end <= now else timestamp_text(end))
            for end, record in plan.gone
        ]


def _when_empty(scheduler: Scheduler, gang: GangEntry, placer: GangPlacer) -> str:
    """What a gang would be told if nothing else ran."""
    cluster = scheduler.cluster
    mine = {key for part in cluster.gangs.parts_of(gang.root) for key in part.members}
    with cluster.what_if():
        for record in list(cluster.pods.records.values()):
            if record.row != UNBOUND and record.key not in mine:
                cluster.release(record.key)
        return placer.place_message(cluster, gang)


def _group(group: RoomOfGroup) -> GroupRoom:
    return GroupRoom(
        role=group.role,
        requests=group.requests,
        waiting=group.waiting,
        needed=group.needed,
        fitting=group.fitting,
        nodes=[Room(name, room) for name, room in group.nodes],
        levels=[
            LevelRoom(level.level, level.title, level.domains, level.domain, level.holds, level.needed)
            for level in group.levels
        ],
    )


class WhyHeld:
    """Why pods may not be tried; of a gang that lacks members also which of them exist and are not counted."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._uncounted: dict[str, str] = {}
        """By gang, as the same is said of all its members."""
        self._incomplete: dict[tuple[str, str], str] | None = None
        """By group of plain pods that queues as one, what it lacks."""

    def of(self, entry: Entry, rejection: Rejection) -> str:
        message = ", ".join(rejection.reasons)
        metadata = entry.record.pod.metadata
        if queue_name(metadata) and pod_group(metadata):
            return self._incomplete_groups().get((metadata.namespace, pod_group(metadata)), message)
        table = self._scheduler.cluster.gangs
        record = table.of(entry.record.key)
        gang = self._scheduler.queue.gangs.get(table.root_of(record).key) if record is not None else None
        if gang is None or not gang.has(entry.record.key):
            return message
        if gang.root.key not in self._uncounted:
            is_short = lacking(gang.root, gang.entries, table) == message
            self._uncounted[gang.root.key] = self._not_counted(gang) if is_short else ""
        return message + self._uncounted[gang.root.key]

    def _incomplete_groups(self) -> dict[tuple[str, str], str]:
        if self._incomplete is None:
            pods = (record.pod for record in self._scheduler.cluster.pods.records.values())
            groups = gather_groups((pod_group(pod.metadata), pod) for pod in pods if pod_group(pod.metadata))
            self._incomplete = {(found.namespace, found.name): found.problem for found in groups if found.problem}
        return self._incomplete

    def _not_counted(self, gang: GangEntry) -> str:
        found: Counter[str] = Counter()
        for part in self._scheduler.cluster.gangs.parts_of(gang.root):
            for record in part.members.values():
                if record.row != UNBOUND or gang.has(record.key):
                    continue
                if record.pod.spec.scheduler_name not in self._scheduler.profiles:
                    found["for another scheduler"] += 1
                elif record.pod.spec.scheduling_gates:
                    found["behind a gate"] += 1
        return "".join(f", and {number} more {where}" for where, number in found.items())
