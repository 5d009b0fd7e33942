"""How each of Kueue's queues stands, in figures alone: what its status and the metrics say.

Cheap enough to be asked every few seconds: one pass over the workloads, and nothing about who would have to give back.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.section import AdmissionSection
from mooring.engine.cycle import Scheduler
from mooring.report.queues.report import WAITING, why_inactive
from mooring.state.quota_tree import NO_PARENT, FlavorResource
from mooring.state.workloads import HOLDING, Stage

Amounts = Counter[FlavorResource]


class Given(NamedTuple):
    """The quota of a queue for one resource of a flavor, in column units."""

    nominal: int
    borrowing_limit: int | None
    lending_limit: int | None


@dataclass
class Standing:
    """One ClusterQueue or LocalQueue."""

    inactive_reason: str = ""
    pending: int = 0
    reserving: int = 0
    """Workloads that have quota; those that wait for admission checks included."""
    admitted: int = 0
    reserved: Amounts = field(default_factory=Counter)
    used: Amounts = field(default_factory=Counter)
    """By workloads that are admitted."""
    quotas: dict[FlavorResource, Given] = field(default_factory=dict)
    """Of a ClusterQueue: in the order of its resource groups. A LocalQueue has those of its ClusterQueue."""
    is_in_cohort: bool = False

    def borrowed(self, amounts: Amounts, column: FlavorResource) -> int:
        """What is used beyond the queue's own quota."""
        return max(0, amounts[column] - self.quotas[column].nominal) if self.is_in_cohort else 0


class Standings(NamedTuple):
    cluster_queues: dict[str, Standing]
    local_queues: dict[str, Standing]
    """By namespace/name."""


def standings(scheduler: Scheduler, now: float) -> Standings:
    """How all queues stand."""
    section = next(iter(scheduler.sections(AdmissionSection, now)), None)
    if section is None:
        return Standings({}, {})
    admission, tenants = section.admission, scheduler.cluster.tenants
    queues = {name: _of_queue(admission, name) for name in tenants.cluster_queues if name in admission.structure.queues}
    local_queues = defaultdict[str, Standing](Standing)
    for key, local in tenants.local_queues.items():
        parent = queues.get(local.spec.cluster_queue, Standing())
        local_queues[key] = Standing(why_inactive(local, admission), quotas=parent.quotas)
    columns = admission.structure.tree.columns
    for record in section.workloads.values():
        local_queue = tenants.local_queues.get(record.local_queue)
        held = record.holds
        queue_name = held.pending.queue_name if held is not None else ""
        if not queue_name and local_queue is not None:
            queue_name = local_queue.spec.cluster_queue
        told = [found for found in (queues.get(queue_name), local_queues.get(record.local_queue)) if found is not None]
        for standing in told:
            standing.pending += record.stage in WAITING
            standing.reserving += record.stage in HOLDING
            standing.admitted += record.stage is Stage.ADMITTED
            if held is None:
                continue
            for column, amount in held.usage.items():
                standing.reserved[columns[column]] += amount
                if record.stage is Stage.ADMITTED:
                    standing.used[columns[column]] += amount
    return Standings(queues, dict(local_queues))


def _of_queue(admission: Admission, name: str) -> Standing:
    queue, tree = admission.structure.queues[name], admission.structure.tree
    given = tree.nodes[queue.node].quotas
    quotas = {
        tree.columns[column]: Given(quota.nominal, quota.borrowing_limit, quota.lending_limit)
        for column, quota in given.items()
    }
    return Standing(queue.inactive_reason, quotas=quotas, is_in_cohort=tree.parent[queue.node] != NO_PARENT)
