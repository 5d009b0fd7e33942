"""How queues that share the cluster stand: what each deserves and holds, who runs and waits in it, and why."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.family import Family
from mooring.actions.shares.following import total_of
from mooring.actions.shares.section import SharesSection
from mooring.actions.shares.shared_jobs import SharedJob, shared_jobs
from mooring.actions.shares.sharing import Sharing
from mooring.actions.shares.tree import ROOT_ROW
from mooring.actions.shares.volcano.family import VolcanoFamily
from mooring.engine.cycle import Scheduler
from mooring.engine.queue.parked import Turn
from mooring.model.api.volcano_queue import ROOT
from mooring.model.values.requests import PODS
from mooring.report.amounts import in_units
from mooring.report.queues.data import SharedQueueStatus, WaitingReason
from mooring.report.waiting import reasons
from mooring.state.pods import UNBOUND


@dataclass(frozen=True)
class Standing:
    """How a family's queues stand; pods are counted in their queue and in all above it."""

    sharing: Sharing
    jobs: Mapping[str, SharedJob]
    running: Counter[str]
    waiting: Counter[str]
    why: Mapping[str, Counter[str]]
    """Of the queue itself: how many pods wait for which reason."""
    in_play: Set[str]
    """The resources that queues name or jobs ask for."""

    @property
    def specs(self) -> list[QueueSpec]:
        """All queues but the root, parents before their children; at the end those that no path leads to."""
        tree = self.sharing.cache.tree
        in_tree = [spec for row, spec in enumerate(tree.specs) if row != ROOT_ROW]
        return in_tree + [found.spec for found in tree.cut_off.values()]

    def waiting_reasons(self, queue: str) -> list[WaitingReason]:
        cut_off = self.sharing.cache.tree.cut_off.get(queue)
        if cut_off is not None:
            return [WaitingReason(cut_off.why, self.waiting[queue])]
        known = self.why.get(queue, Counter()).most_common()
        return [WaitingReason(message, pods) for message, pods in known]

    def dominant(self, queue: str) -> tuple[float, str]:
        """The highest part that a queue holds of the cluster, and of what; of nothing if it holds nothing."""
        cache = self.sharing.cache
        held = cache.resources.amount(self.sharing.report(queue).allocated)
        column = cache.dominant.dominant(held)
        return round(cache.dominant.share(held), 4), "" if column is None else cache.resources.names[column]

    def shown(self, amounts: Mapping[str, int]) -> dict[str, float]:
        """Amounts of what queues name or jobs ask for: of the cluster's other resources there is nothing to say."""
        return self.in_units({name: amount for name, amount in amounts.items() if amount and name in self.in_play})

    def in_units(self, amounts: Mapping[str, int]) -> dict[str, float]:
        """Amounts in the units that people think in."""
        parts = self.sharing.cache.resources.parts
        return {name: in_units(name, amount, parts.get(name, 1)) for name, amount in amounts.items()}


def standing_of(scheduler: Scheduler, share: SharesSection) -> Standing | None:
    """How the queues of one family stand now; None if there are none."""
    cluster, queue, family = scheduler.cluster, scheduler.queue, share.family
    if not family.has_queues(cluster):
        return None
    parked = [turn for found in queue.parked() for turn in found.turns()]
    waiting_turns = [turn for turn in (*parked, *queue.shared.values()) if _queue_name(scheduler, turn, family)]
    jobs = shared_jobs(cluster, waiting_turns, family, scheduler.shared)
    known, queues = share.sharing, family.queues(cluster)
    sharing = (
        Sharing(queues, total_of(cluster, family.parts), share.settings, log=cluster.log, parts=family.parts)
        if known is None
        else known.with_queues(queues)
    )
    sharing.set_total(total_of(cluster, family.parts))
    running, waiting = Counter[str](), Counter[str]()
    for job in jobs.values():
        sharing.add(job.demand(cluster))
        records = [record for group in job.members.values() for record in group]
        for name in _with_those_above(sharing, job.queue):
            running[name] += sum(record.row != UNBOUND for record in records)
            waiting[name] += sum(record.row == UNBOUND for record in records)
    why: dict[str, Counter[str]] = {}
    for entry, message, _ in reasons(scheduler):
        name = _queue_name(scheduler, entry, family)
        if name:
            why.setdefault(name, Counter())[message] += 1
    return Standing(sharing, jobs, running, waiting, why, _resources_in_play(sharing))


def shared_statuses(scheduler: Scheduler) -> list[SharedQueueStatus]:
    """All queues of KAI and YuniKorn and all ElasticQuotas, as they stand now."""
    found = []
    for share in scheduler.sections(SharesSection):
        standing = None if isinstance(share.family, VolcanoFamily) else standing_of(scheduler, share)
        if standing is not None:
            found += [_status(standing, spec, share.family.kind) for spec in standing.specs]
    return found


def _status(standing: Standing, spec: QueueSpec, kind: str) -> SharedQueueStatus:
    report = standing.sharing.report(spec.name)
    part, resource = standing.dominant(spec.name)
    return SharedQueueStatus(
        kind=kind,
        name=spec.name,
        parent="" if spec.parent == ROOT else spec.parent,
        share=round(report.share, 4),
        allocated=standing.shown(report.allocated),
        deserved=standing.shown(report.deserved),
        demand=standing.shown(report.demand),
        capability=standing.in_units(spec.capability),
        dominant_share=part,
        dominant_resource=resource,
        running_pods=standing.running[spec.name],
        waiting_pods=standing.waiting[spec.name],
        waiting_reasons=standing.waiting_reasons(spec.name),
    )


def _queue_name(scheduler: Scheduler, turn: Turn, family: Family) -> str:
    """The name of a turn's queue, if it is one of the family's."""
    queue = scheduler.shared.of_turn(scheduler.cluster, turn)
    return queue.name if queue is not None and queue.family is family else ""


def _resources_in_play(sharing: Sharing) -> set[str]:
    named = {
        name
        for spec in sharing.cache.tree.specs
        for amounts in (spec.capability, spec.deserved, spec.guarantee)
        for name in amounts
    }
    asked = {name for job in sharing.demands() for role in job.roles for name in role.request}
    return named | (asked - {PODS})


def _with_those_above(sharing: Sharing, queue: str) -> list[str]:
    """A queue and all above it; only itself if there is no queue of that name."""
    tree = sharing.cache.tree
    row = tree.row_of.get(queue)
    return [queue] if row is None else [tree.name(above) for above in tree.paths[row]]
