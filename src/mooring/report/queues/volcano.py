"""How Volcano's queues stand: what each deserves, holds and could have, and why its pods wait."""

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.section import SharesSection
from mooring.actions.shares.volcano.family import VolcanoFamily
from mooring.engine.cycle import Scheduler
from mooring.model.api.volcano_queue import DEFAULT_QUEUE, ROOT, Queue, queue_named_default
from mooring.report.amounts import in_units
from mooring.report.queues.data import VolcanoQueueStatus
from mooring.report.queues.shares import Standing, standing_of


def volcano_statuses(scheduler: Scheduler) -> list[VolcanoQueueStatus]:
    """All queues that have a manifest, as they stand now; also the one that Volcano makes, if anybody is in it."""
    shares = (share for share in scheduler.sections(SharesSection) if isinstance(share.family, VolcanoFamily))
    standing = next((standing_of(scheduler, share) for share in shares), None)
    if standing is None:
        return []
    given = dict(scheduler.cluster.related.volcano_queues)
    if any(job.queue == DEFAULT_QUEUE for job in standing.jobs.values()):
        given.setdefault(DEFAULT_QUEUE, queue_named_default())
    return [_status(standing, spec, given[spec.name]) for spec in standing.specs if spec.name in given]


def _status(standing: Standing, spec: QueueSpec, queue: Queue) -> VolcanoQueueStatus:
    report = standing.sharing.report(spec.name)
    part, resource = standing.dominant(spec.name)
    return VolcanoQueueStatus(
        name=spec.name,
        parent="" if spec.parent in ("", ROOT) else spec.parent,
        state=queue.status.state,
        weight=queue.spec.weight or 1,
        priority=spec.priority,
        reclaimable=spec.is_reclaimable,
        share=round(report.share, 4),
        allocated=standing.shown(report.allocated),
        deserved=standing.shown(report.deserved),
        demand=standing.shown(report.demand),
        guarantee=standing.shown(report.guarantee),
        capability={name: in_units(name, amount) for name, amount in spec.capability.items()},
        real_capability=standing.shown(report.real_capability),
        dominant_share=part,
        dominant_resource=resource,
        running_pods=standing.running[spec.name],
        waiting_pods=standing.waiting[spec.name],
        waiting_reasons=standing.waiting_reasons(spec.name),
    )
