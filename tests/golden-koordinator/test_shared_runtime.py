"""The shares of Koordinator's quotas are the recorded runtimes: what the engine divides by is what was recorded."""

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mooring.actions.shares.elastic_quota.queues import compile_quotas
from mooring.actions.shares.elastic_quota.quota_tree import QuotaSettings, QuotaTree
from mooring.actions.shares.elastic_quota.runtime import runtime_quotas
from mooring.actions.shares.resources import ResourceTable
from mooring.actions.shares.tree import QueueTree
from mooring.model.api.elastic_quota import ROOT_QUOTA, ElasticQuota
from mooring.model.api.pods import Pod

FOLDER = Path(__file__).parent
Json = dict[str, Any]


def recorded() -> list[Json]:
    """The scenarios with the settings that the engine has."""
    with gzip.open(FOLDER / "quota.jsonl.gz", "rt") as lines:
        found = [json.loads(line) for line in lines]
    return [
        one
        for one in found
        if one["args"].get("enableMinQuotaScale", True) and not one["features"].get("ElasticQuotaGuaranteeUsage")
    ]


def runtimes(scenario: Json, total: dict[str, int]) -> dict[str, dict[str, int]]:
    """What the engine makes of the same quotas and pods."""
    quotas = msgspec.convert(scenario["quotas"], list[ElasticQuota])
    settings = QuotaSettings(
        ignores_overhead=scenario["features"].get("ElasticQuotaIgnorePodOverhead", False),
        has_default=not scenario["features"].get("DisableDefaultQuota", False),
    )
    finder = QuotaTree(quotas, settings)
    specs = compile_quotas(quotas, is_tree=True)
    names = {name for spec in specs for name in (*spec.capability, *spec.deserved, *spec.weights)}
    tree = QueueTree(specs, ResourceTable(sorted(names | set(total))), total)
    demand = np.zeros((len(tree), tree.resources.width), np.int64)
    key_of = {quota.metadata.name: quota.key for quota in quotas}
    for pod in msgspec.convert(scenario["pods"], list[Pod]):
        name = finder.quota_of(pod)
        if name in key_of:
            asked = tree.resources.row(finder.asked_by(pod))
            for row in tree.paths[tree.row_of[key_of[name]]]:
                demand[row] += asked
    found = runtime_quotas(tree, demand)
    column_of = tree.resources.column_of
    return {
        name: {resource: int(found[tree.row_of[key], column_of[resource]]) for resource in column_of}
        for name, key in key_of.items()
    }


def named(scenario: Json, quota: str) -> set[str]:
    """The resources that a quota and all above it name: of the others the engine gives what the cluster has."""
    by_name = {one["metadata"]["name"]: one for one in scenario["quotas"]}
    found = set(by_name[quota]["spec"]["max"])
    while quota in by_name:
        found &= set(by_name[quota]["spec"]["max"])
        quota = (by_name[quota]["metadata"].get("labels") or {}).get("quota.scheduling.koordinator.sh/parent", "")
    return found


def test_the_engine_divides_as_recorded() -> None:
    wrong: dict[tuple[str, str], tuple[Json, Json]] = {}
    compared = 0
    for scenario in recorded():
        expected = (scenario.get("also") or scenario["expect"])["runtime"]
        found = runtimes(scenario, expected[ROOT_QUOTA])
        for quota, amounts in found.items():
            want = {name: amount for name, amount in expected[quota].items() if name in named(scenario, quota)}
            have = {name: amounts[name] for name in want}
            compared += 1
            if want != have:
                wrong[scenario["id"], quota] = want, have

    assert (compared > 500, wrong) == (True, {})
