"""What `mooring rebalance` shows, as values: what json and yaml print, and what the tables are drawn from."""

from collections.abc import Iterable

from msgspec import Struct

from mooring.actions.rebalance.planned.steps import RebalancePlan, Step
from mooring.model.api.pods import Pod
from mooring.model.loading.manifests import Manifests
from mooring.report.names import Workloads


class MovedPod(Struct, rename="camel", omit_defaults=True):
    """A pod that leaves its node."""

    pod: str
    namespace: str
    node: str
    strategy: str
    profile: str
    reason: str
    gain: float
    """In points; pods that leave together share what they gain together."""
    cost: float
    move: int
    """The number of the move, from 1: pods of a gang, or of a node that is emptied, leave together or not at all."""
    target: str = ""
    """The node that is held for its successor; empty if none is."""
    owner: str = ""


class StayingPod(Struct, rename="camel", omit_defaults=True):
    """A pod that a strategy chose, and that stays where it is."""

    pod: str
    namespace: str
    node: str
    strategy: str
    reason: str
    owner: str = ""


class StrategySummary(Struct, rename="camel"):
    """What one strategy comes to."""

    strategy: str
    moves: int
    pods: int
    stays: int
    gain: float
    cost: float
    nodes: dict[str, list[str]]
    """The names of nodes, by what the strategy found them to be; of strategies that look at nodes."""


class RebalanceSummary(Struct, rename="camel"):
    moves: int
    pods: int
    stays: int
    gain: float
    cost: float
    emptied: list[str]
    """The nodes that nothing is left on but what is there for its node."""
    placed_first: int
    """How many pods that waited were placed before anything was moved."""
    compatible: bool


class RebalanceResult(Struct, rename="camel"):
    summary: RebalanceSummary
    strategies: list[StrategySummary]
    """Those that chose pods or looked at nodes, in the order in which they ran."""
    steps: list[MovedPod]
    """In the order in which they are carried out."""
    stays: list[StayingPod]


def make_rebalance_result(
    plan: RebalancePlan,
    manifests: Manifests,
    running: Iterable[Pod],
    *,
    strategies: Iterable[str],
    placed_first: int,
    compatible: bool,
) -> RebalanceResult:
    """Put a plan into the form that is printed; `running` are the pods that it was made for, each with its node."""
    workloads = Workloads(manifests)
    owners = {pod.key: workloads.name_of(pod) for pod in running}
    steps = [
        MovedPod(
            step.pod.partition("/")[2],
            step.pod.partition("/")[0],
            step.node,
            step.strategy,
            step.profile,
            step.reason,
            round(step.gain, 3),
            round(step.cost, 3),
            step.together,
            step.target,
            owners.get(step.pod, ""),
        )
        for step in plan.steps
    ]
    stays = [
        StayingPod(
            stay.pod.partition("/")[2],
            stay.pod.partition("/")[0],
            stay.node,
            stay.strategy,
            stay.reason,
            owners.get(stay.pod, ""),
        )
        for stay in plan.stays
    ]
    summary = RebalanceSummary(
        len({step.together for step in plan.steps}),
        len(steps),
        len(stays),
        round(sum(step.gain for step in plan.steps), 3),
        round(sum(step.cost for step in plan.steps), 3),
        _emptied(plan.steps, running),
        placed_first,
        compatible,
    )
    return RebalanceResult(summary, [_of_strategy(plan, name) for name in dict.fromkeys(strategies)], steps, stays)


def _of_strategy(plan: RebalancePlan, name: str) -> StrategySummary:
    steps = [step for step in plan.steps if step.strategy == name]
    return StrategySummary(
        name,
        len({step.together for step in steps}),
        len(steps),
        sum(stay.strategy == name for stay in plan.stays),
        round(sum(step.gain for step in steps), 3),
        round(sum(step.cost for step in steps), 3),
        plan.nodes.get(name, {}),
    )


def _emptied(steps: Iterable[Step], running: Iterable[Pod]) -> list[str]:
    """The nodes that some pod leaves, and no pod is left on or comes to."""
    steps = list(steps)
    left, gone = {step.node for step in steps}, {step.pod for step in steps}
    kept = {pod.spec.node_name for pod in running if pod.key not in gone and not _is_for_its_node(pod)}
    return sorted(left - kept - {step.target for step in steps})


def _is_for_its_node(pod: Pod) -> bool:
    return any(owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references or ())
