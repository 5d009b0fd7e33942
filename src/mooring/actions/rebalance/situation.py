"""The cluster as the strategies of rebalancing look at it."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mooring.actions.rebalance.descheduler.situation import Situation
from mooring.model.api.pods import Pod
from mooring.model.api.policies import PodDisruptionBudget, PodDisruptionBudgetStatus
from mooring.state.cluster import Cluster
from mooring.state.pods import UNBOUND


def situation_of(cluster: Cluster, now: float, ended: Iterable[Pod] = ()) -> Situation:
    """Everything that strategies look at. The state has no pods that have ended: whoever knows of some adds them."""
    related = cluster.related
    nodes = [cluster.nodes.node(row) for row in cluster.nodes.live_rows().tolist()]
    return Situation(
        now,
        sorted(nodes, key=lambda node: node.metadata.name),
        [*_bound(cluster), *ended],
        list(related.namespaces.values()),
        list(related.priority_classes.values()),
        list(related.persistent_volume_claims.values()),
        _budgets(cluster),
        cluster.nodes.load.of_node,
        {key: record.shape.id for key, record in cluster.pods.records.items()},
    )


def _budgets(cluster: Cluster) -> list[PodDisruptionBudget]:
    """The disruption budgets, each with what it still has to give: what was spent of it since its status counts."""
    allowed = cluster.budgets.allowed().tolist()
    return [
        replace(budget, status=PodDisruptionBudgetStatus(disruptions_allowed=left))
        for budget, left in zip(cluster.budgets.all, allowed, strict=True)
    ]


def _bound(cluster: Cluster) -> Iterator[Pod]:
    """The pods that run, by name, each with its node; those that leave already are as good as gone."""
    for key in sorted(cluster.pods.records):
        record = cluster.pods.records[key]
        if record.row == UNBOUND or record.nominated or record.leaving is not None:
            continue
        pod = record.pod
        yield pod if pod.spec.node_name else replace(pod, spec=replace(pod.spec, node_name=record.node_name))
