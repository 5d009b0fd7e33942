"""NodePools and older forms of them, read from manifests."""

from typing import Any

import pytest

from mooring.errors import ManifestError
from mooring.model.api.karpenter import NEVER, WHEN_EMPTY, NodePool, Provisioner, to_node_pool
from mooring.model.loading.manifests import build_manifests


def read_pool(spec: dict[str, Any], version: str = "v1") -> NodePool:
    document = {"apiVersion": f"karpenter.sh/{version}", "kind": "NodePool", "metadata": {"name": "p"}, "spec": spec}
    (pool,) = build_manifests([document]).of(NodePool)
    return pool


def test_defaults_are_those_of_karpenter() -> None:
    pool = read_pool({"template": {"spec": {"requirements": []}}})

    assert pool.spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert (pool.spec.disruption.consolidate_after, pool.spec.template.spec.expire_after) == ("0s", "720h")
    assert [budget.nodes for budget in pool.spec.disruption.budgets] == ["10%"]


def test_a_pool_of_v1beta1_is_converted() -> None:
    pool = read_pool(
        {
            "template": {
                "spec": {"nodeClassRef": {"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "C", "name": "c"}}
            },
            "disruption": {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "24h"},
        },
        "v1beta1",
    )

    assert pool.api_version == "karpenter.sh/v1"
    assert pool.spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert pool.spec.template.spec.expire_after == "24h"
    assert pool.spec.template.spec.node_class_ref is not None
    assert pool.spec.template.spec.node_class_ref.group == "karpenter.k8s.aws"


def test_a_provisioner_becomes_a_pool() -> None:
    document = {
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": {"name": "old"},
        "spec": {
            "labels": {"team": "ai"},
            "limits": {"resources": {"cpu": "100"}},
            "ttlSecondsAfterEmpty": 30,
            "ttlSecondsUntilExpired": 3600,
            "weight": 5,
        },
    }
    (provisioner,) = build_manifests([document]).of(Provisioner)

    pool = to_node_pool(provisioner)

    assert (pool.name, pool.spec.weight, pool.spec.limits) == ("old", 5, {"cpu": "100"})
    assert pool.spec.template.metadata.labels == {"team": "ai"}
    assert (pool.spec.disruption.consolidation_policy, pool.spec.disruption.consolidate_after) == (WHEN_EMPTY, "30s")
    assert pool.spec.template.spec.expire_after == "3600s"


def test_a_provisioner_that_says_nothing_of_it_consolidates_nothing() -> None:
    pool = to_node_pool(Provisioner())

    assert (pool.spec.disruption.consolidate_after, pool.spec.template.spec.expire_after) == (NEVER, NEVER)


def requirements(*given: dict[str, Any]) -> dict[str, Any]:
    return {"template": {"spec": {"requirements": list(given)}}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"limits": {"cpu": "-1"}},
            'spec.limits.cpu: expected a quantity of at least 0, found "-1"',
            id="a negative limit",
        ),
        pytest.param(
            requirements(
                {"key": "zone", "operator": "In", "values": ["a"]}, {"key": "zone", "operator": "In", "values": ["b"]}
            ),
            "spec.template.spec.requirements: expected requirements on zone that some value meets, found none does",
            id="requirements that contradict each other",
        ),
        pytest.param(
            requirements({"key": "zone", "operator": "Within", "values": ["a"]}),
            "spec.template.spec.requirements[0].operator: expected one of In, NotIn, Exists, DoesNotExist, Gt, Lt, "
            'Gte, Lte, found "Within"',
            id="an unknown operator",
        ),
        pytest.param(
            requirements({"key": "size", "operator": "Gt", "values": ["big"]}),
            'spec.template.spec.requirements[0].values: expected one number of at least 0, found "big"',
            id="a bound that is no number",
        ),
        pytest.param(
            requirements({"key": "size", "operator": "In", "values": ["a"], "minValues": 2}),
            "spec.template.spec.requirements[0].values: expected at least 2 values, as minValues says, found 1",
            id="fewer values than minValues",
        ),
        pytest.param(
            {"disruption": {"budgets": [{"nodes": "1", "schedule": "0 9 * * *"}]}},
            "spec.disruption.budgets[0]: expected schedule and duration together, found schedule alone",
            id="a schedule without a duration",
        ),
        pytest.param(
            {"disruption": {"budgets": [{"nodes": "1", "schedule": "9 o'clock", "duration": "1h"}]}},
            'spec.disruption.budgets[0].schedule: expected a cron schedule such as 0 9 * * *, found "9 o\'clock"',
            id="no schedule",
        ),
        pytest.param(
            {"disruption": {"consolidateAfter": "soon"}},
            'spec.disruption.consolidateAfter: expected a duration such as 90s, 10m or 1h30m, or Never, found "soon"',
            id="no duration",
        ),
        pytest.param({"weight": 101}, "spec.weight: expected a number from 1 to 100, found 101", id="too heavy"),
    ],
)
def test_what_is_wrong_with_a_pool_is_said_in_one_line(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestError) as error:
        read_pool(spec)

    assert str(error.value).endswith(message)
    assert "NodePool p" in str(error.value)
