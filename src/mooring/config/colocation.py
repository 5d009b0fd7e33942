"""Koordinator's ConfigMap slo-controller-config: how much of nodes is lent to batch and mid pods."""

from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.errors import ConfigError
from mooring.model.colocation.strategy import (
    AMPLIFICATION_KEY,
    CONFIG_KEYS,
    STRATEGY_KEY,
    ColocationStrategy,
    cluster_strategy,
)

ColocationConfig = Mapping[str, Mapping[str, Any]]
"""By key, what the texts say."""


def holds_colocation(data: Any) -> bool:
    """Whether the data of a ConfigMap is this configuration."""
    return isinstance(data, dict) and any(isinstance(data.get(key), str) for key in CONFIG_KEYS)


def parse_colocation(document: Any, where: str) -> ColocationConfig:
    """Read the data of the ConfigMap."""
    data = document["data"]
    found = {key: _decoded(data[key], f"{where}: data[{key}]") for key in CONFIG_KEYS if key in data}
    _check(found.get(STRATEGY_KEY, {}), f"{where}: data[{STRATEGY_KEY}]")
    return found


def remarks(config: ColocationConfig) -> list[str]:
    """What is configured and changes nothing, in one line each."""
    is_amplified = config.get(AMPLIFICATION_KEY, {}).get("enable") is True
    return [f"{AMPLIFICATION_KEY}: nodes are not amplified here; it changes nothing"] if is_amplified else []


def _decoded(text: Any, where: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, TypeError) as error:
        raise ConfigError(where, "", expected="JSON, an object", found=str(error)) from error
    return found


def _check(strategy: Mapping[str, Any], where: str) -> None:
    """Refuse what Koordinator's manager refuses, where it would leave all nodes as they are."""
    given = {name: value for name, value in strategy.items() if value is not None}
    try:
        msgspec.convert(given, ColocationStrategy)
    except msgspec.ValidationError as error:
        text, _, at = str(error).replace("`", "").partition(" - at ")
        expected, _, got = text.removeprefix("Expected ").partition(", got ")
        field = at.removeprefix("$").removeprefix(".")
        raise ConfigError(where, field, expected=expected, found=got or "otherwise") from error
    if cluster_strategy(strategy) is None:
        expected = "percentages of at least 0, those for mid at most 100, and times and differences above 0"
        raise ConfigError(where, "", expected=expected, found="others")
