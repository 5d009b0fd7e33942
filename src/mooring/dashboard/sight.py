"""How much of a cluster somebody may see, and a picture with no more than that."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from msgspec import structs

from mooring.dashboard.picture import Picture
from mooring.report.explain.data import PodExplanation
from mooring.report.nodes import NodeMap
from mooring.report.plans import PlanRow
from mooring.report.queues.data import QueuesResult, QueueStatus, WaitingWorkload
from mooring.report.schedule import Result


class _Namespaced(Protocol):
    @property
    def namespace(self) -> str: ...


NamespacedT = TypeVar("NamespacedT", bound=_Namespaced)
NO_NODES = NodeMap([], [], [], [], [], [], {})


@dataclass(frozen=True)
class Sight:
    """The namespaces whose pods somebody may list (None: all of them), and whether also nodes and cluster queues."""

    namespaces: frozenset[str] | None = None
    nodes: bool = True
    queues: bool = True

    @property
    def is_whole(self) -> bool:
        return self.namespaces is None and self.nodes and self.queues

    @property
    def is_blind(self) -> bool:
        return self.namespaces is not None and not self.namespaces and not self.nodes and not self.queues

    def has(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def has_pod(self, key: str) -> bool:
        """Whether a pod, by its namespace/name, may be seen."""
        return self.has(key.partition("/")[0])

    def of(self, found: Iterable[NamespacedT]) -> list[NamespacedT]:
        return [each for each in found if self.has(each.namespace)]


EVERYTHING = Sight()
NOTHING = Sight(frozenset(), nodes=False, queues=False)


def narrowed(picture: Picture, sight: Sight) -> Picture:
    """A picture as somebody may see it: of other namespaces neither names nor counts are left."""
    if sight.is_whole:
        return picture
    return replace(
        picture,
        result=_result(picture, sight),
        queues=_queues(picture.queues, sight),
        nodes=picture.nodes if sight.nodes else NO_NODES,
        plans=visible_plans(picture.plans, sight),
    )


def _result(picture: Picture, sight: Sight) -> Result:
    result = picture.result
    records = picture.moment.offline.scheduler.cluster.pods.records.values()
    bound = sum(1 for each in records if each.node_name and not each.nominated and sight.has_pod(each.key))
    placed, waiting, gated = sight.of(result.placements), sight.of(result.waiting), sight.of(result.gated)
    evicted = [
        each if sight.has_pod(each.preemptor or "/") else structs.replace(each, preemptor="", preemptor_owner="")
        for each in sight.of(result.evicted)
    ]
    summary = structs.replace(
        result.summary,
        nodes=result.summary.nodes if sight.nodes else 0,
        placed=len(placed),
        waiting=len(waiting),
        gated=len(gated),
        evicted=len(evicted),
        already_bound=bound - len(placed),
    )
    return structs.replace(
        result,
        summary=summary,
        placements=placed,
        waiting=waiting,
        gated=gated,
        evicted=evicted,
        pools=result.pools if sight.nodes else [],
        devices=result.devices if sight.nodes and sight.namespaces is None else [],
        gpus=result.gpus if sight.nodes and sight.namespaces is None else [],
    )


def _queues(queues: QueuesResult, sight: Sight) -> QueuesResult:
    found = [_queue(each, sight) for each in queues.queues]
    own = {each.cluster_queue for each in queues.local_queues if sight.has(each.namespace)}
    return QueuesResult(
        admitted=sight.of(queues.admitted),
        suspended=sight.of(queues.suspended),
        notices=sight.of(queues.notices),
        cohorts=queues.cohorts if sight.queues else [],
        queues=[each for each in found if sight.queues or each.name in own],
        local_queues=sight.of(queues.local_queues),
        without_queue=[_waiting(each, sight) for each in sight.of(queues.without_queue)],
        volcano_queues=queues.volcano_queues if sight.queues else [],
        shared_queues=queues.shared_queues if sight.queues else [],
    )


def _queue(queue: QueueStatus, sight: Sight) -> QueueStatus:
    holding = sight.of(queue.holding_workloads)
    waiting = [_waiting(each, sight) for each in sight.of(queue.waiting_workloads)]
    if sight.queues:
        return structs.replace(queue, holding_workloads=holding, waiting_workloads=waiting)
    return structs.replace(
        queue,
        cohort="",
        quotas=[],
        weighted_share=0.0,
        admitted=sum(each.stage == "admitted" for each in holding),
        reserved=sum(each.stage == "reserved" for each in holding),
        waiting=len(waiting),
        holding_workloads=holding,
        waiting_workloads=waiting,
    )


def _waiting(workload: WaitingWorkload, sight: Sight) -> WaitingWorkload:
    return structs.replace(workload, gives_back=sight.of(workload.gives_back))


def narrowed_explanation(explanation: PodExplanation, sight: Sight) -> PodExplanation:
    """Why a pod waits, without the names of nodes and of pods elsewhere that somebody may not see."""
    gang, preemption = explanation.gang, explanation.preemption
    if sight.namespaces is not None:
        preemption = ""  # it names the pods that would have to go
        if gang is not None:
            gang = structs.replace(
                gang, starts_without=[each for each in gang.starts_without if sight.has_pod(each.pod)]
            )
    explanation = structs.replace(explanation, gang=gang, preemption=preemption)
    if sight.nodes:
        return explanation
    remedies = [structs.replace(each, nodes=[]) for each in explanation.remedies]
    return structs.replace(explanation, nodes=[], remedies=remedies)


def visible_plans(plans: Iterable[PlanRow], sight: Sight) -> list[PlanRow]:
    """The plans of which every pod may be seen, and every node."""
    if sight.is_whole:
        return list(plans)
    return [
        plan
        for plan in plans
        if sight.nodes
        and all(map(sight.has_pod, [*(each.pod for each in (*plan.leaves, *plan.goes_to)), *plan.changes]))
    ]
