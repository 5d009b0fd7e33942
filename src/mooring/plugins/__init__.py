"""The plugins that ship with Mooring, in the order in which the default profile runs them."""

from mooring.config.gangs import CoschedulingArgs, GangSchedulingArgs
from mooring.engine.plugin import Plugin
from mooring.model.api.meta import KubeObject
from mooring.plugins.compute_domains import ComputeDomains
from mooring.plugins.default_binder import DefaultBinder
from mooring.plugins.default_preemption import DefaultPreemption
from mooring.plugins.dynamic_resources import DynamicResources
from mooring.plugins.gpu_fragmentation import GpuFragmentation
from mooring.plugins.gpu_load import GpuLoad
from mooring.plugins.gpu_lookahead import GpuLookahead
from mooring.plugins.gpu_policies import BestFit, DotProduct, FirstFit, GpuClustering, GpuPacking, RandomFit, WorstFit
from mooring.plugins.gpu_sharing import GpuSharing
from mooring.plugins.image_locality import ImageLocality
from mooring.plugins.inter_pod_affinity import InterPodAffinity
from mooring.plugins.load_aware_scheduling import LoadAwareScheduling
from mooring.plugins.load_variation_risk_balancing import LoadVariationRiskBalancing
from mooring.plugins.low_risk_over_commitment import LowRiskOverCommitment
from mooring.plugins.node_affinity import NodeAffinity
from mooring.plugins.node_declared_features import NodeDeclaredFeatures
from mooring.plugins.node_name import NodeName
from mooring.plugins.node_pools import NodePools
from mooring.plugins.node_ports import NodePorts
from mooring.plugins.node_resource_topology_match import NodeResourceTopologyMatch
from mooring.plugins.node_resources_allocatable import NodeResourcesAllocatable
from mooring.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.node_resources_fit import NodeResourcesFit
from mooring.plugins.node_unschedulable import NodeUnschedulable
from mooring.plugins.node_volume_limits import NodeVolumeLimits
from mooring.plugins.peaks import Peaks
from mooring.plugins.pod_state import PodState
from mooring.plugins.pod_topology_spread import PodTopologySpread
from mooring.plugins.preemption_toleration import PreemptionToleration
from mooring.plugins.priority_sort import PrioritySort
from mooring.plugins.scheduling_gates import SchedulingGates
from mooring.plugins.taint_toleration import TaintToleration
from mooring.plugins.target_load_packing import TargetLoadPacking
from mooring.plugins.topology_manager import TopologyManager
from mooring.plugins.volume_binding import VolumeBinding
from mooring.plugins.volume_restrictions import VolumeRestrictions
from mooring.plugins.volume_zone import VolumeZone

DEFAULT_PLUGINS: tuple[tuple[type[Plugin], int], ...] = (
    (SchedulingGates, 0),  # who may enter the queue
    (PrioritySort, 0),  # the queue's order
    (NodeName, 0),  # cheap and final first
    (NodeUnschedulable, 0),
    (TaintToleration, 3),
    (NodeAffinity, 2),
    (NodePorts, 0),
    (NodeResourcesFit, 1),
    (VolumeRestrictions, 0),
    (NodeVolumeLimits, 0),
    (VolumeBinding, 0),
    (VolumeZone, 0),
    (PodTopologySpread, 2),
    (InterPodAffinity, 2),
    (DynamicResources, 2),
    (ComputeDomains, 0),  # of NVIDIA's driver, not kube-scheduler's
    (DefaultPreemption, 0),  # when no node will do
    (NodeResourcesBalancedAllocation, 1),
    (ImageLocality, 1),
    (DefaultBinder, 0),
    (NodeDeclaredFeatures, 0),  # its filter runs last
    (TopologyManager, 0),  # what a kubelet would refuse, kube-scheduler does not know
    (GpuSharing, 10),  # of HAMi, Koordinator, KAI and the device plugin, not kube-scheduler's
)
"""Every plugin of kube-scheduler's default profile with its weight there; 0 means the default weight, 1."""

OPTIONAL_PLUGINS: tuple[type[Plugin], ...] = (
    NodePools,
    NodeResourceTopologyMatch,
    GpuFragmentation,
    GpuLookahead,
    BestFit,
    WorstFit,
    DotProduct,
    GpuPacking,
    GpuClustering,
    FirstFit,
    RandomFit,
    TargetLoadPacking,
    LoadVariationRiskBalancing,
    LowRiskOverCommitment,
    Peaks,
    LoadAwareScheduling,
    GpuLoad,
    NodeResourcesAllocatable,
    PodState,
    PreemptionToleration,
)
"""Plugins that run where a profile enables them."""


class AnyArgs(KubeObject):
    """Arguments that are read and left alone."""


PLANNED_PLUGINS: dict[str, type[KubeObject]] = {
    "GangScheduling": GangSchedulingArgs,
    "Coscheduling": CoschedulingArgs,
    "TopologyPlacementGenerator": AnyArgs,
    "PodGroupPodsCount": AnyArgs,
    "DeferredPodScheduling": AnyArgs,
}
"""Names that configurations of kube-scheduler and scheduler-plugins use and that run nothing here: files that mention
them stay valid, and what their arguments say of gangs counts."""
