"""How Volcano's queues stand: what each deserves, holds and could have, and why its pods wait."""

from collections import Counter
from collections.abc import Mapping, Set

from mooring.actions.volcano.allocate import Share
from mooring.actions.volcano.demands import QueueSpec
from mooring.actions.volcano.following import total_of
from mooring.actions.volcano.queues import compile_queues
from mooring.actions.volcano.settings import ShareSettings
from mooring.actions.volcano.shared_jobs import shared_jobs
from mooring.actions.volcano.sharing import Sharing
from mooring.actions.volcano.tree import ROOT_ROW
from mooring.engine.cycle import Scheduler
from mooring.engine.queue.parked import Turn
from mooring.engine.queue.shared import Family, share_queue
from mooring.model.api.volcano_queue import DEFAULT_QUEUE, ROOT, Queue, queue_named_default
from mooring.model.values.requests import PODS
from mooring.report.amounts import in_units
from mooring.report.queues.data import VolcanoQueueStatus, WaitingReason
from mooring.report.waiting import reasons
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND


def volcano_statuses(scheduler: Scheduler) -> list[VolcanoQueueStatus]:
    """All queues that have a manifest, as they stand now; also the one that Volcano makes, if anybody is in it."""
    cluster, queue = scheduler.cluster, scheduler.queue
    given = dict(cluster.related.volcano_queues)
    if not given:
        return []
    parked = [turn for found in queue.parked() for turn in found.turns()]
    waiting = [turn for turn in (*parked, *queue.shared.values()) if _queue_of(cluster, turn)]
    jobs = shared_jobs(cluster, waiting)
    sharing = Sharing(compile_queues(cluster.related.volcano_queues.values()), total_of(cluster), _settings(scheduler))
    running, held_back = Counter[str](), Counter[str]()
    for job in jobs.values():
        sharing.add(job.demand(cluster))
        records = [record for group in job.members.values() for record in group]
        for name in _with_those_above(sharing, job.queue):
            running[name] += sum(record.row != UNBOUND for record in records)
            held_back[name] += sum(record.row == UNBOUND for record in records)
    if any(job.queue == DEFAULT_QUEUE for job in jobs.values()):
        given.setdefault(DEFAULT_QUEUE, queue_named_default())
    why: dict[str, Counter[str]] = {}
    for entry, message, _ in reasons(scheduler):
        name = _queue_of(cluster, entry)
        if name:
            why.setdefault(name, Counter())[message] += 1
    in_play = _resources_in_play(sharing)
    found = []
    for row, spec in enumerate(sharing.book.tree.specs):
        if spec.name in given and row != ROOT_ROW:
            status = _status(sharing, spec, given[spec.name], in_play)
            status.running_pods, status.waiting_pods = running[spec.name], held_back[spec.name]
            known = why.get(spec.name, Counter()).most_common()
            status.waiting_reasons = [WaitingReason(message, pods) for message, pods in known]
            found.append(status)
    return found


def _queue_of(cluster: Cluster, turn: Turn) -> str:
    """The name of a turn's queue, if it is one of Volcano's."""
    queue = share_queue(cluster, turn)
    return queue.name if queue is not None and queue.family is Family.VOLCANO else ""


def _with_those_above(sharing: Sharing, queue: str) -> list[str]:
    """A queue and all above it; only itself if there is no queue of that name."""
    tree = sharing.book.tree
    row = tree.row_of.get(queue)
    return [queue] if row is None else [tree.name(above) for above in tree.paths[row]]


def _settings(scheduler: Scheduler) -> ShareSettings:
    return next(
        (
            action.settings
            for action in scheduler.actions
            if isinstance(action, Share) and action.family is Family.VOLCANO
        ),
        ShareSettings(),
    )


def _status(sharing: Sharing, spec: QueueSpec, queue: Queue, in_play: Set[str]) -> VolcanoQueueStatus:
    report, book = sharing.report(spec.name), sharing.book
    held = book.resources.amount(report.allocated)
    dominant = book.dominant.dominant(held)

    def shown(amounts: Mapping[str, int]) -> dict[str, float]:
        return {name: in_units(name, amount) for name, amount in amounts.items() if amount and name in in_play}

    return VolcanoQueueStatus(
        name=spec.name,
        parent="" if spec.parent in ("", ROOT) else spec.parent,
        state=queue.status.state,
        weight=queue.spec.weight or 1,
        priority=spec.priority,
        reclaimable=spec.is_reclaimable,
        share=round(report.share, 4),
        allocated=shown(report.allocated),
        deserved=shown(report.deserved),
        demand=shown(report.demand),
        guarantee=shown(report.guarantee),
        capability={name: in_units(name, amount) for name, amount in spec.capability.items()},
        real_capability=shown(report.real_capability),
        dominant_share=round(book.dominant.share(held), 4),
        dominant_resource="" if dominant is None else book.resources.names[dominant],
    )


def _resources_in_play(sharing: Sharing) -> set[str]:
    """What queues name or jobs ask for: of the cluster's other resources there is nothing to say."""
    named = {
        name
        for spec in sharing.book.tree.specs
        for amounts in (spec.capability, spec.deserved, spec.guarantee)
        for name in amounts
    }
    asked = {name for job in sharing.demands() for role in job.roles for name in role.request}
    return named | (asked - {PODS})
