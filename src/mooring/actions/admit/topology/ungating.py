"""Which pod goes to which of the domains that its pod set was assigned: by rank where pods have one, else in turn."""

from collections.abc import Mapping, Sequence

from mooring.model.api.kueue_workload import TopologyRequest
from mooring.model.api.pods import Pod
from mooring.model.decisions import TopologyAssignment

NodeLabels = Mapping[str, str]
Values = tuple[str, ...]


def assign_pods(
    assignment: TopologyAssignment,
    held: Sequence[Pod],
    started: Sequence[tuple[Pod, NodeLabels]],
    request: TopologyRequest | None,
    *,
    first_rank: int = 0,
) -> list[tuple[Pod, dict[str, str]]]:
    """For each pod that is held, the labels of the nodes that it may start on; pods for which none is left stay held.

    `started` are those that run or may: each with the labels of its node, or those that it selects. `first_rank` is
    the rank of the pod set's first pod: workers are counted on from their leader.
    """
    by_rank = [domain.values for domain in assignment.domains for _ in range(domain.count)]
    if (ranks := _ranks(held, started, request, first_rank, len(by_rank))) is not None and all(
        _values(assignment, labels) == by_rank[ranks[pod.key]] for pod, labels in started
    ):
        return [(pod, _labels(assignment, by_rank[ranks[pod.key]])) for pod in held]
    left = {domain.values: domain.count for domain in assignment.domains}
    for _, labels in started:
        values = _values(assignment, labels)
        if values in left:
            left[values] -= 1
    places = (values for values, count in left.items() for _ in range(count))
    return [(pod, _labels(assignment, values)) for pod, values in zip(held, places, strict=False)]


def _values(assignment: TopologyAssignment, labels: NodeLabels) -> Values:
    return tuple(labels.get(level, "") for level in assignment.levels)


def _labels(assignment: TopologyAssignment, values: Values) -> dict[str, str]:
    return dict(zip(assignment.levels, values, strict=True))


def _ranks(
    held: Sequence[Pod],
    started: Sequence[tuple[Pod, NodeLabels]],
    request: TopologyRequest | None,
    first_rank: int,
    count: int,
) -> dict[str, int] | None:
    """The ranks of all pods from 0 on; None unless each has one of its own, and there is a place for it."""
    if request is None or not request.pod_index_label:
        return None
    ranks: dict[str, int] = {}
    for pod in (*held, *(pod for pod, _ in started)):
        rank = _rank(pod.metadata.labels or {}, request, count)
        if rank is None or not first_rank <= rank < first_rank + count:
            return None
        ranks[pod.key] = rank - first_rank
    return ranks if len(set(ranks.values())) == len(ranks) else None


def _rank(labels: NodeLabels, request: TopologyRequest, count: int) -> int | None:
    """A pod's own index, or where the pod set is made of groups, the group's places and its index in the group."""
    index = _number(labels, request.pod_index_label)
    if not request.sub_group_index_label:
        return index
    group = _number(labels, request.sub_group_index_label)
    if index is None or group is None or not request.sub_group_count:
        return None
    size = count // request.sub_group_count
    return group * size + index if index < size else None


def _number(labels: NodeLabels, key: str | None) -> int | None:
    text = labels.get(key or "", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
