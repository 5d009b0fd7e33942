"""Preemption as kube-scheduler's source reads: node by node, pod by pod, every filter asked from nothing each time."""

from dataclasses import dataclass

from mooring.actions.preempt.pods.search import refusals
from mooring.engine.profile import Profile
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget
from mooring.model.values.selectors import compile_label_selector
from mooring.state.cluster import Cluster
from mooring.state.pods import PodRecord
from mooring.state.shapes import Shape

NOT_STARTED = "9999-12-31T23:59:59Z"


@dataclass(frozen=True)
class PlainChoice:
    node: str
    victims: tuple[str, ...]
    violations: int


def importance(record: PodRecord) -> tuple[int, str, str]:
    return -record.priority, record.pod.status.start_time or NOT_STARTED, record.key


def fits(profile: Profile, cluster: Cluster, shape: Shape, row: int) -> bool:
    return row in refusals(profile, cluster, shape).feasible.tolist()


def plain_choice(profile: Profile, cluster: Cluster, pod: Pod) -> PlainChoice | None:
    """The node that preemption chooses, with its victims; None if nothing helps."""
    shape = cluster.shape_for(pod)
    answer = refusals(profile, cluster, shape)
    if answer.refused is not None or pod.spec.preemption_policy == "Never":
        return None
    found = []
    for position, row in enumerate(answer.rows.tolist()):
        verdict = answer.verdict(position)
        if verdict is None or verdict.unresolvable:
            continue
        victims = plain_victims(profile, cluster, shape, row, pod.spec.priority or 0)
        if victims is not None and victims[0]:
            found.append((_cost(cluster, row, *victims), row, *victims))
    if not found:
        return None
    _, row, records, violations = min(found, key=lambda each: each[0])
    return PlainChoice(cluster.nodes.name(row), tuple(record.key for record in records), violations)


def _cost(cluster: Cluster, row: int, victims: list[PodRecord], violations: int) -> tuple[object, ...]:
    start = victims[0].pod.status.start_time or NOT_STARTED
    return (
        violations,
        victims[0].priority,
        sum(victim.priority + 2**31 for victim in victims),
        len(victims),
        [-ord(letter) for letter in start],  # the later the better; all are of one length
        -int(cluster.nodes.tie.values[row]),
    )


def plain_victims(
    profile: Profile, cluster: Cluster, shape: Shape, row: int, priority: int
) -> tuple[list[PodRecord], int] | None:
    """Those of a row that have to go, the most important first, and how many of them a budget protects."""
    candidates = sorted((record for record in cluster.pods.on(row) if record.priority < priority), key=importance)
    violating, others = split_by_budget(cluster, candidates)
    if not candidates:
        return None
    with cluster.what_if():
        for record in candidates:
            cluster.release(record.key)
        victims: list[PodRecord] | None = None
        if fits(profile, cluster, shape, row):
            victims = []
            for record in (*violating, *others):
                cluster.assume(record.key, row)
                if not fits(profile, cluster, shape, row):
                    cluster.release(record.key)
                    victims.append(record)
    if victims is None:
        return None
    return sorted(victims, key=importance), sum(record in violating for record in victims)


def split_by_budget(cluster: Cluster, candidates: list[PodRecord]) -> tuple[list[PodRecord], list[PodRecord]]:
    budgets = [budget for _, budget in sorted(cluster.related.disruption_budgets.items())]
    left = [allowed(cluster, budget) for budget in budgets]
    violating: list[PodRecord] = []
    others: list[PodRecord] = []
    for record in candidates:
        breaks = False
        for index, budget in enumerate(budgets):
            if protects(budget, record.pod):
                left[index] -= 1
                if left[index] < 0:
                    breaks = True
                    break
        (violating if breaks else others).append(record)
    return violating, others


def protects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    selector = compile_label_selector(budget.spec.selector)
    return (
        budget.metadata.namespace == pod.metadata.namespace
        and not selector.is_empty
        and selector.matches(pod.metadata.labels or {})
    )


def allowed(cluster: Cluster, budget: PodDisruptionBudget) -> int:
    if budget.status is not None:
        return budget.status.disruptions_allowed
    healthy = sum(
        record.row >= 0 and not record.shape.terminating and protects(budget, record.pod)
        for record in cluster.pods.records.values()
    )
    assert isinstance(budget.spec.min_available, int)
    return max(0, healthy - budget.spec.min_available)
