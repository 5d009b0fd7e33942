"""Node pools of every policy against every check."""

from typing import Any

import msgspec

from mooring.engine.plugin import Plugin
from mooring.plugins.node_pools import NodePools
from mooring.testing.plugin_checks import PluginCheck, parametrize_with_checks

DEDICATED = {"name": "a", "nodeLabels": {"disk": "hdd"}, "namespaces": ["team-a"], "policy": "Dedicated"}
SHARED = {"name": "b", "nodeLabels": {"tier": "5"}, "podLabels": {"app": "web"}, "movesBack": True}
RESERVED = {
    "name": "c",
    "nodeLabels": {"disk": "ssd"},
    "podLabels": {"tier": "front"},
    "policy": "Reserved",
    "reservedPercent": 60,
}
BY_CLASS = {**RESERVED, "name": "d", "podLabels": {}, "priorityClasses": ["urgent"], "reservedPercent": 30}


def pools(*given: dict[str, Any]) -> NodePools:
    return NodePools(msgspec.convert({"pools": list(given)}, NodePools.args_type))


CONFIGURED = [NodePools(), pools(DEDICATED, SHARED), pools(RESERVED), pools(DEDICATED, SHARED, RESERVED, BY_CLASS)]


@parametrize_with_checks(CONFIGURED)
def test_node_pools_pass_every_check(plugin: Plugin, check: PluginCheck) -> None:
    check(plugin)
