"""Answer recorded scenarios of Koordinator's ElasticQuotas."""

from typing import Any

import msgspec

from mooring.actions.shares.elastic_quota.quota_tree import Books, QuotaSettings, QuotaTree, is_fixed, quota_amounts
from mooring.model.api.elastic_quota import ElasticQuota
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod

Json = dict[str, Any]


def answer_quotas(scenario: Json) -> Json:
    """What each quota may use, and which pods are admitted, one after another."""
    tree = QuotaTree(msgspec.convert(scenario["quotas"], list[ElasticQuota]), _settings(scenario))
    pods = {pod.key: pod for pod in msgspec.convert(scenario["pods"], list[Pod])}
    total: dict[str, int] = {}
    for node in msgspec.convert(scenario["nodes"], list[Node]):
        for name, amount in quota_amounts(node.status.allocatable).items():
            total[name] = total.get(name, 0) + amount
    books = tree.books(pods.values())
    answer: Json = {
        "quota": {key: tree.quota_of(pod) for key, pod in pods.items()},
        "request": _without_zeros(books.request),
        "runtime": tree.runtime(total, books),
        "admitted": [],
        "refused": {},
    }
    for key in scenario["try"]:
        books, refused = _try(tree, pods[key], books, total)
        answer["admitted"].append(not refused)
        if refused:
            answer["refused"][key] = refused
    return {**answer, "used": _without_zeros(books.used), "runtimeAfter": tree.runtime(total, books)}


def _try(tree: QuotaTree, pod: Pod, books: Books, total: dict[str, int]) -> tuple[Books, str]:
    refusal = tree.refusal(pod, books, tree.runtime(total, books))
    if refusal is not None:
        return books, refusal.value
    name = tree.quota_of(pod)
    if not name:
        return books, ""
    return books.reserve(tree.path(name), tree.asked_by(pod), is_fixed=is_fixed(pod)), ""


def _settings(scenario: Json) -> QuotaSettings:
    args, features = scenario["args"], scenario["features"]
    maxima = {
        field: quota_amounts(args[name])
        for field, name in (("default_max", "defaultQuotaGroupMax"), ("system_max", "systemQuotaGroupMax"))
        if name in args
    }
    return QuotaSettings(
        scales_minimums=args.get("enableMinQuotaScale", True),
        limits_to_runtime=args.get("enableRuntimeQuota", True),
        checks_parents=args.get("enableCheckParentQuota", False),
        guarantees_usage=features.get("ElasticQuotaGuaranteeUsage", False),
        ignores_overhead=features.get("ElasticQuotaIgnorePodOverhead", False),
        has_default=not features.get("DisableDefaultQuota", False),
        **maxima,
    )


def _without_zeros(amounts: Any) -> Json:
    return {quota: {name: one for name, one in held.items() if one} for quota, held in amounts.items()}
