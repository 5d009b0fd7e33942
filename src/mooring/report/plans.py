"""Plans as people look at them: what is intended and not carried out yet, why, for what gain, and at what cost."""

from msgspec import Struct

from mooring.state.cluster import Cluster
from mooring.state.plans import Held, Plan, Reason

TEXTS = {
    Reason.PREEMPTION: "pods of lower priority make room",
    Reason.RECLAIM: "a queue takes back what it deserves",
    Reason.RESERVATION: "room is kept for a gang",
    Reason.MOVE: "a pod moves to a better node",
    Reason.SCALE_UP: "nodes are launched for pods that wait",
    Reason.CONSOLIDATION: "pods move together",
    Reason.RESIZE: "pods get other amounts",
    Reason.PERMIT: "pods wait for a permit",
}


class PlannedPod(Struct, rename="camel"):
    """A pod of a plan, and the node that it is to have or to leave; empty while that is not known."""

    pod: str
    """namespace/name"""
    node: str


class PlanRow(Struct, rename="camel"):
    number: int
    reason: str
    """preemption, reclaim, reservation, move, scale-up, consolidation, resize or permit."""
    text: str
    """The same in words, or what the action says itself."""
    subject: str
    """What the plan is for: a pod, a gang or a workload."""
    gain: float
    cost: float
    """In the unit of the action; 0 where it weighs nothing."""
    leaves: list[PlannedPod]
    """Pods that have to leave first."""
    goes_to: list[PlannedPod]
    """Pods that room is held for."""
    changes: list[str]
    """Pods that get other amounts: namespace/name."""
    opens: list[str]
    """Nodes that are launched."""
    closes: list[str]
    """Nodes that go."""
    until: float | None
    """When it is given up."""


def plan_rows(cluster: Cluster) -> list[PlanRow]:
    """All plans, in the order in which they were adopted."""
    return [_row(cluster, number, plan) for number, plan in cluster.plans()]


def _row(cluster: Cluster, number: int, plan: Plan) -> PlanRow:
    records = cluster.pods.records
    leaving = [(each.key, records.get(each.key)) for each in plan.leaves]
    return PlanRow(
        number=number,
        reason=plan.reason.value,
        text=plan.message or TEXTS[plan.reason],
        subject=plan.subject,
        gain=plan.gain,
        cost=plan.cost,
        leaves=[PlannedPod(key, record.node_name if record is not None else "") for key, record in leaving],
        goes_to=[PlannedPod(_holder(held), held.node) for held in plan.holds],
        changes=[amend.key for amend in plan.amends],
        opens=list(plan.opened),
        closes=list(plan.closes),
        until=plan.until,
    )


def _holder(held: Held) -> str:
    return held.holder if isinstance(held.holder, str) else held.holder.pod.key
