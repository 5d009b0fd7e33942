"""ElasticQuotas as queues: min is what a quota deserves, max its capability.

Those of scheduler-plugins together hold at most the sum of all minimums: who holds more than its min borrows what
others do not use, and gives it back. Those of Koordinator divide the cluster: beyond the minimums by shared weight.
"""

from collections.abc import Iterable, Sequence

from mooring.actions.shares.demands import QueueSpec
from mooring.actions.shares.elastic_quota.weights import shared_weight
from mooring.actions.shares.resources import column_amounts
from mooring.model.api.elastic_quota import ElasticQuota
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.volcano_queue import ROOT


def compile_quotas(quotas: Iterable[ElasticQuota], *, is_tree: bool) -> list[QueueSpec]:
    """Quotas that passed validation, in column units: a tree, as Koordinator's, or all beside each other."""
    found = list(quotas)
    key_of = {quota.metadata.name: quota.key for quota in found}
    root_of = {quota.tree_id: quota.key for quota in found if quota.tree_total is not None}
    parents = [key_of.get(quota.parent, "") or root_of.get(quota.tree_id, "") for quota in found]
    specs = [
        _compile(quota, "" if quota.tree_total is not None else parent)
        for quota, parent in zip(found, parents, strict=True)
    ]
    return specs if is_tree or not specs else [_root(specs), *specs]


def _root(specs: Sequence[QueueSpec]) -> QueueSpec:
    """Of every resource that all quotas name, no more than their minimums is held."""
    names = [name for name in specs[0].deserved if all(name in spec.deserved for spec in specs)]
    return QueueSpec(ROOT, capability={name: sum(spec.deserved[name] for spec in specs) for name in names})


def _compile(quota: ElasticQuota, parent: str) -> QueueSpec:
    least = column_amounts(quota.spec.min)
    weights = column_amounts(shared_weight(quota))
    return QueueSpec(
        name=quota.key,
        parent=parent,
        created=timestamp_seconds(quota.metadata.creation_timestamp) or 0.0,
        capability=column_amounts(quota.spec.max),
        deserved=least,
        weights={name: float(value) for name, value in weights.items()},
        lends=quota.lends,
        own_total=None if quota.tree_total is None else column_amounts(quota.tree_total),
    )
