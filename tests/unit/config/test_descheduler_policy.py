"""A DeschedulerPolicy that is wrong is refused with the field, what is expected and what was found."""

from typing import Any

import pytest

from mooring.config.descheduler import parse_descheduler_policy
from mooring.errors import ConfigError


def make_policy(name: str, args: dict[str, Any], point: str = "deschedule", **policy: Any) -> dict[str, Any]:
    profile = {"name": "p", "pluginConfig": [{"name": name, "args": args}], "plugins": {point: {"enabled": [name]}}}
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile], **policy}


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        pytest.param(
            make_policy("PodLifeTime", {"maxPodLifeTimeSecond": 5}),
            "profiles[0].pluginConfig[0].args.maxPodLifeTimeSecond: expected a known key (did you mean "
            'maxPodLifeTimeSeconds?), found "maxPodLifeTimeSecond"',
            id="unknown argument",
        ),
        pytest.param(
            make_policy("PodLifetime", {}),
            "profiles[0].pluginConfig[0].name: expected a plugin of the descheduler (did you mean "
            'PodLifeTime?), found "PodLifetime"',
            id="unknown strategy",
        ),
        pytest.param(
            make_policy("LowNodeUtilization", {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 101}}, "balance"),
            "profiles[0].pluginConfig[0].args.targetThresholds.cpu: expected a percentage from 0 to 100, found 101",
            id="threshold above 100",
        ),
        pytest.param(
            make_policy("PodLifeTime", {"maxPodLifeTimeSeconds": 5}) | {"apiVersion": "descheduler/v1alpha9"},
            'apiVersion: expected descheduler/v1alpha2, found "descheduler/v1alpha9"',
            id="wrong version",
        ),
        pytest.param(
            make_policy("PodLifeTime", {"maxPodLifeTimeSeconds": 5}, nodeSelector="disk in ssd"),
            'nodeSelector: expected a label selector such as disk=ssd,zone in (a,b), found "disk in ssd"',
            id="node selector",
        ),
    ],
)
def test_a_wrong_policy_is_refused_in_one_line(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_descheduler_policy(policy, "policy.yaml")

    assert str(refused.value) == f"policy.yaml: {message}"
