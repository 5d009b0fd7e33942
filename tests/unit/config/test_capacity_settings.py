"""What can be wrong with a catalogue's provider and with a CapacityPolicy is said in one line."""

from typing import Any

import pytest

from mooring.config.settings import parse_settings
from mooring.errors import ConfigError

CATALOGUE: dict[str, Any] = {
    "apiVersion": "mooring.dev/v1alpha1",
    "kind": "InstanceTypeCatalogue",
    "instanceTypes": [{"name": "a", "capacity": {"cpu": 1, "memory": "1Gi"}, "offerings": [{"zone": "z", "price": 1}]}],
}
POLICY = {"apiVersion": "config.mooring.dev/v1alpha1", "kind": "CapacityPolicy"}


def test_a_catalogue_and_a_policy_make_the_capacity_of_a_scheduler() -> None:
    settings = parse_settings([CATALOGUE, {**POLICY, "quietSeconds": 7}], "file")
    assert settings.capacity is not None
    assert settings.capacity.policy.quiet_seconds == 7
    assert [each.name for each in settings.capacity.catalogue.instance_types] == ["a"]
    assert parse_settings([POLICY], "file").capacity is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {**CATALOGUE, "provider": {"faults": {"fail": 2}}},
            "provider.faults.fail: expected a share from 0 to 1, found 2",
        ),
        (
            {**CATALOGUE, "provider": {"launchSeconds": -1}},
            "provider.launchSeconds: expected a number of at least 0, found -1",
        ),
        ({**POLICY, "provisionIntervalSeconds": 0}, "provisionIntervalSeconds: expected a number above 0, found 0"),
        ({**POLICY, "retrySeconds": -1}, "retrySeconds: expected a number of at least 0, found -1"),
        ({**POLICY, "apiVersion": "v1"}, 'apiVersion: expected config.mooring.dev/v1alpha1, found "v1"'),
    ],
)
def test_mistakes(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_settings([document], "file")
    assert str(raised.value) == f"file: {message}"
