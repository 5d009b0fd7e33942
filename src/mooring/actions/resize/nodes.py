"""Which nodes a pod may use, and how much of a recommendation the largest of them could hold."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mooring.engine.asking import ask_filter
from mooring.engine.evaluate import Evaluation, prepare_filters
from mooring.engine.plugin import SKIP, Depends
from mooring.engine.profile import Profile
from mooring.model.api.autoscaling import ResourcePolicy
from mooring.model.api.pods import Pod
from mooring.model.rightsizing.amounts import CONTROLLED, Amounts, read_amounts
from mooring.model.rightsizing.recommendations import Recommendation, container_policy
from mooring.model.rightsizing.resizing import amount_quantity, targets_patch
from mooring.model.values.requests import pod_requests, to_pod_units
from mooring.state.cluster import Cluster
from mooring.state.rows import Rows
from mooring.state.shapes import Shape


@dataclass(frozen=True, slots=True)
class Fitted:
    """Recommendations for the containers of a pod, none larger than a node that the pod may use."""

    recommendations: list[Recommendation]
    limited_by: str = ""
    """The node whose size holds targets down; empty where none does."""
    infeasible: str = ""
    """Why no node could hold them; empty where one could."""


def usable_rows(profile: Profile, cluster: Cluster, shape: Shape) -> Rows:
    """The nodes that a pod may use by their own descriptions, and that have its devices; what runs there is ignored."""
    answer = Evaluation(shape, cluster, profile, cluster.nodes.live_rows())
    allowed = prepare_filters(answer)
    if answer.refused is not None:
        return answer.rows[:0]
    mask = np.ones(len(answer.rows), np.bool_) if allowed is None else allowed.copy()
    nodes = cluster.rows(answer.rows)
    for plugin in profile.filters:
        prepared = answer.prepared.get(plugin.name)
        if plugin.depends_on is Depends.NODE and prepared is not SKIP:
            mask &= ask_filter(plugin, shape, nodes, prepared) == 0
    for name, amount in shape.requests.items():
        if name not in CONTROLLED and amount:
            mask &= cluster.nodes.allocatable(name)[answer.rows] >= amount
    return answer.rows[mask]


def fit_to_nodes(
    cluster: Cluster, rows: Rows, pod: Pod, capped: list[Recommendation], policy: ResourcePolicy | None
) -> Fitted:
    """Cut recommendations down to the node that could hold most of them; say so where even that does not help."""
    if not capped:
        return Fitted(capped)
    if not len(rows):
        return Fitted(capped, infeasible="there is no node that it may use")
    total = _total(pod, capped)
    sizes = {name: cluster.nodes.allocatable(name)[rows] for name in CONTROLLED}
    parts = np.array([np.minimum(1.0, sizes[name] / max(total.get(name, 0), 1)) for name in CONTROLLED])
    order = np.lexsort((rows, -parts.sum(axis=0), -parts.min(axis=0)))
    best = int(order[0])
    room = {name: int(sizes[name][best]) for name in CONTROLLED}
    node = cluster.nodes.name(int(rows[best]))
    lacking = {name for name in CONTROLLED if total.get(name, 0) > room[name]}
    fitted = [one.copy() for one in capped]
    for name in sorted(lacking):
        recommended = sum(one.target.get(name, 0) for one in fitted)
        left = room[name] - (total[name] - recommended)
        if left <= 0 or not recommended:
            asked = f"{amount_quantity(name, total[name])} of {name}"
            return Fitted(capped, infeasible=f"it would ask for {asked}, and {node} has {_shown(name, room)}")
        for one in fitted:
            if name in one.target:
                one.target[name] = one.target[name] * left // recommended
    _keep_bounds_around(fitted, {name: int(sizes[name].max()) for name in CONTROLLED})
    short = _below_minimum(fitted, policy) if lacking else None
    if short is not None:
        container, name, least = short
        asked = f"minAllowed of container {container} is {amount_quantity(name, least)} of {name}"
        return Fitted(capped, infeasible=f"{asked}, and the pod would be larger than {node}")
    return Fitted(fitted, node if lacking else "")


def _total(pod: Pod, recommendations: list[Recommendation]) -> Amounts:
    """What a pod asks for with its targets, in the units of columns."""
    spec = targets_patch(recommendations).apply(pod)
    return {name: to_pod_units(name, amount) for name, amount in pod_requests(spec).items() if name in CONTROLLED}


def _keep_bounds_around(recommendations: list[Recommendation], largest: Mapping[str, int]) -> None:
    """Keep lower bounds at most at the target, and upper bounds at most at the largest node."""
    for one in recommendations:
        for name, target in one.target.items():
            if name in one.lower_bound:
                one.lower_bound[name] = min(one.lower_bound[name], target)
            if name in one.upper_bound:
                one.upper_bound[name] = max(target, min(one.upper_bound[name], largest[name]))


def _below_minimum(recommendations: list[Recommendation], policy: ResourcePolicy | None) -> tuple[str, str, int] | None:
    for one in recommendations:
        own = container_policy(policy, one.container)
        least = read_amounts(own.min_allowed) if own is not None else {}
        for name, target in one.target.items():
            if target < least.get(name, 0):
                return one.container, name, least[name]
    return None


def _shown(name: str, amounts: Mapping[str, int]) -> str:
    return amount_quantity(name, amounts[name])
