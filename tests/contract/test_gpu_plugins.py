"""The plugins for GPUs against every check, on clusters in which nodes have cards and pods ask for them."""

from mooring.engine.plugin import Plugin
from mooring.plugins.gpu_fragmentation import GpuFragmentation
from mooring.plugins.gpu_lookahead import GpuLookahead
from mooring.plugins.gpu_policies import BestFit, DotProduct, FirstFit, GpuClustering, GpuPacking, RandomFit, WorstFit
from mooring.plugins.gpu_sharing import GpuSharing
from mooring.testing.card_worlds import random_card_objects
from mooring.testing.plugin_checks import PluginCheck, parametrize_with_checks

POLICIES = (
    GpuLookahead,
    GpuFragmentation,
    BestFit,
    WorstFit,
    DotProduct,
    GpuPacking,
    GpuClustering,
    FirstFit,
    RandomFit,
)


@parametrize_with_checks([GpuSharing()], seeds=range(8), objects=random_card_objects)
def test_gpu_sharing_passes_every_check(plugin: Plugin, check: PluginCheck) -> None:
    check(plugin)


@parametrize_with_checks([policy() for policy in POLICIES], seeds=range(3), objects=random_card_objects)
def test_a_policy_for_gpus_passes_every_check(plugin: Plugin, check: PluginCheck) -> None:
    check(plugin)
