"""Load-aware plugins, in several configurations, against every check."""

from typing import Any

import msgspec

from mooring.engine.plugin import Plugin
from mooring.plugins.gpu_load import GpuLoad
from mooring.plugins.load_aware_scheduling import LoadAwareScheduling
from mooring.plugins.load_variation_risk_balancing import LoadVariationRiskBalancing
from mooring.plugins.low_risk_over_commitment import LowRiskOverCommitment
from mooring.plugins.node_resources_allocatable import NodeResourcesAllocatable
from mooring.plugins.peaks import Peaks
from mooring.plugins.pod_state import PodState
from mooring.plugins.target_load_packing import TargetLoadPacking
from mooring.testing.plugin_checks import PluginCheck, parametrize_with_checks

MODELS = {f"node-{index}": {"k0": 90, "k1": 10 + index, "k2": 0.01 * index} for index in range(12)}
CONFIGURATIONS: tuple[tuple[type[Plugin], dict[str, Any]], ...] = (
    (TargetLoadPacking, {}),
    (TargetLoadPacking, {"targetUtilization": 100, "metricsExpirationSeconds": 60}),
    (LoadVariationRiskBalancing, {"safeVarianceSensitivity": 0.5}),
    (LowRiskOverCommitment, {"riskLimitWeights": {"cpu": 0.2}}),
    (Peaks, {"nodePowerModel": MODELS}),
    (GpuLoad, {}),
    (GpuLoad, {"whenExpired": "Refuse", "weights": {"temperature": 2}, "thresholds": {"temperature": 60}}),
    (GpuLoad, {"whenExpired": "Keep"}),
    (NodeResourcesAllocatable, {}),
    (NodeResourcesAllocatable, {"mode": "Most", "resources": [{"name": "nvidia.com/gpu"}]}),
    (PodState, {}),
    (LoadAwareScheduling, {}),
    (LoadAwareScheduling, {"filterExpiredNodeMetrics": False, "dominantResourceWeight": 2}),
    (
        LoadAwareScheduling,
        {
            "prodUsageThresholds": {"cpu": 40},
            "scoreAccordingProdUsage": True,
            "aggregated": {"usageThresholds": {"cpu": 60}, "usageAggregationType": "p95"},
        },
    ),
)


def configured() -> list[Plugin]:
    return [plugin(msgspec.convert(args, plugin.args_type)) for plugin, args in CONFIGURATIONS]


@parametrize_with_checks(configured())
def test_a_load_aware_plugin_passes_every_check(plugin: Plugin, check: PluginCheck) -> None:
    check(plugin)
