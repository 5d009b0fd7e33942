"""Claims that are not what their pool would launch now, and claims that have lived long enough."""

from typing import Any

import msgspec
import pytest

from mooring.actions.capacity.karpenter.drift import drift_reason, is_expired
from mooring.model.api.karpenter import NodeClaim, NodePool
from mooring.model.api.meta import timestamp_text
from mooring.model.capacity.instance_types import InstanceType, Offering
from mooring.model.capacity.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from mooring.model.capacity.requirements import Requirements

NOW = 1_800_000_000.0
TYPES = {"m-4": InstanceType("m-4", Requirements(), {}, offerings=(Offering("a", "on-demand", 1.0),))}
HASH, VERSION = "karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version"


def make_pool(annotations: dict[str, str] | None = None, *requirements: dict[str, Any]) -> NodePool:
    document = {
        "metadata": {"name": "p", "annotations": annotations or {}},
        "spec": {"template": {"spec": {"requirements": list(requirements)}}},
    }
    return msgspec.convert(document, NodePool)


def make_claim(
    labels: dict[str, str] | None = None,
    *,
    annotations: dict[str, str] | None = None,
    age: float = 7200.0,
    expire_after: str = "720h",
) -> NodeClaim:
    found = {ZONE: "a", CAPACITY_TYPE: "on-demand", INSTANCE_TYPE: "m-4", **(labels or {})}
    document = {
        "metadata": {"labels": found, "annotations": annotations or {}, "creationTimestamp": timestamp_text(NOW - age)},
        "spec": {"expireAfter": expire_after},
        "status": {"conditions": [{"type": "Launched", "status": "True"}]},
    }
    return msgspec.convert(document, NodeClaim)


@pytest.mark.parametrize(
    ("pool", "claim", "reason"),
    [
        pytest.param(make_pool(), make_claim(), None, id="as launched"),
        pytest.param(
            make_pool({HASH: "2", VERSION: "v3"}),
            make_claim(annotations={HASH: "1", VERSION: "v3"}),
            "NodePoolDrifted",
            id="another template",
        ),
        pytest.param(
            make_pool({HASH: "2", VERSION: "v3"}),
            make_claim(annotations={HASH: "1", VERSION: "v2"}),
            None,
            id="hashes that cannot be compared",
        ),
        pytest.param(
            make_pool(None, {"key": ZONE, "operator": "In", "values": ["b"]}),
            make_claim(),
            "RequirementsDrifted",
            id="another zone",
        ),
        pytest.param(
            make_pool(), make_claim({INSTANCE_TYPE: "gone"}), "InstanceTypeNotFound", id="a type that is gone"
        ),
        pytest.param(
            make_pool(), make_claim({INSTANCE_TYPE: "gone"}, age=60.0), None, id="a type that is gone for a minute"
        ),
        pytest.param(
            make_pool(), make_claim({CAPACITY_TYPE: "reserved"}), None, id="a reservation that became on-demand"
        ),
        pytest.param(
            make_pool(), make_claim({CAPACITY_TYPE: "spot"}), "InstanceTypeNotFound", id="an offering that is gone"
        ),
    ],
)
def test_why_a_claim_has_drifted(pool: NodePool, claim: NodeClaim, reason: str | None) -> None:
    assert drift_reason(pool, claim, TYPES, NOW) == reason


def test_a_claim_that_was_not_launched_has_not_drifted() -> None:
    claim = make_claim({INSTANCE_TYPE: "gone"})
    claim.status.conditions = []

    assert drift_reason(make_pool(), claim, TYPES, NOW) is None


@pytest.mark.parametrize(
    ("age", "expire_after", "expired"), [(3600, "1h", True), (3599, "1h", False), (10**9, "Never", False)]
)
def test_a_claim_expires_when_it_is_old_enough(age: float, expire_after: str, expired: bool) -> None:
    assert is_expired(make_claim(age=age, expire_after=expire_after), NOW) is expired
