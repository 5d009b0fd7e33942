"""Every plugin that ships, in several configurations, against every check."""

from typing import Any

import msgspec

from mooring.engine.plugin import Plugin
from mooring.plugins import DEFAULT_PLUGINS
from mooring.testing.builders import HOSTNAME, ZONE
from mooring.testing.plugin_checks import PluginCheck, parametrize_with_checks

SHAPE = [{"utilization": 0, "score": 10}, {"utilization": 40, "score": 3}, {"utilization": 100, "score": 8}]
NODE_TERM = {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]}
CONFIGURATIONS: dict[str, list[dict[str, Any]]] = {
    "NodeResourcesFit": [
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "nvidia.com/gpu", "weight": 3}]}},
        {
            "ignoredResources": ["nvidia.com/gpu"],
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "cpu", "weight": 2}, {"name": "nvidia.com/gpu", "weight": 5}],
                "requestedToCapacityRatio": {"shape": SHAPE},
            },
        },
        {"ignoredResourceGroups": ["nvidia.com"]},
    ],
    "NodeResourcesBalancedAllocation": [
        {"resources": [{"name": "cpu"}, {"name": "memory"}, {"name": "nvidia.com/gpu"}]},
        {"resources": [{"name": "nvidia.com/gpu"}]},
    ],
    "NodeAffinity": [
        {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODE_TERM]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": NODE_TERM}],
            }
        }
    ],
    "PodTopologySpread": [
        {
            "defaultingType": "List",
            "defaultConstraints": [
                {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
                {"maxSkew": 2, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"},
            ],
        },
        {"defaultingType": "List"},
    ],
    "InterPodAffinity": [
        {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
        {"hardPodAffinityWeight": 100},
    ],
}


def shipped() -> list[Plugin]:
    """Each plugin as it is by default, then as configured above."""
    plugins = []
    for plugin, _ in DEFAULT_PLUGINS:
        plugins.append(plugin())
        for args in CONFIGURATIONS.get(plugin.__name__, ()):
            plugins.append(plugin(msgspec.convert(args, plugin.args_type)))
    return plugins


@parametrize_with_checks(shipped())
def test_a_plugin_that_ships_passes_every_check(plugin: Plugin, check: PluginCheck) -> None:
    check(plugin)
