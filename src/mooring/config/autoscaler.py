"""The Cluster Autoscaler's settings, under the names and with the defaults of its flags."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

EXPANDERS = ("random", "most-pods", "least-waste", "price", "priority", "least-nodes")
"""What `--expander` may name; each keeps the best of the options."""


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """What one node group may have otherwise than the flags say; None where it has not."""

    scale_down_utilization_threshold: float | None = None
    scale_down_gpu_utilization_threshold: float | None = None
    scale_down_unneeded_seconds: float | None = None
    scale_down_unready_seconds: float | None = None
    ignore_daemon_sets_utilization: bool | None = None
    zero_or_max: bool = False
    """All of the group's nodes come and go together (zeroOrMaxNodeScaling)."""


@dataclass(frozen=True, slots=True)
class ScaleUpSettings:
    """How node groups grow."""

    expanders: tuple[str, ...] = ("least-waste",)
    """A chain: each keeps the best of what the one before it kept."""
    balance_similar_node_groups: bool = False
    balancing_ignore_labels: frozenset[str] = frozenset()
    max_nodes_total: int = 0
    """Of the cluster, nodes outside of any group included; 0: as many as there may be."""
    max_nodes_per_scale_up: int = 1000
    max_totals: Mapping[str, int] = field(default_factory=dict)
    """Of the cluster: cpu in cores, memory in bytes, GPUs by type."""
    all_or_nothing: bool = False
    """Grow only if every pod is helped, as an atomic ProvisioningRequest asks."""
    fastpath_binpacking: bool = False
    force_daemon_sets: bool = False
    """New nodes are taken to run every DaemonSet that should run there, even if a live node of the group lacks it."""
    expendable_pods_priority_cutoff: int = -10
    """Pods of a lower priority neither start a scale-up nor keep a node."""
    max_capacity_memory_difference_ratio: float = 0.015
    max_allocatable_difference_ratio: float = 0.05
    max_free_difference_ratio: float = 0.05
    """How far the templates of similar groups may be apart, as a share of the larger."""


@dataclass(frozen=True, slots=True)
class ScaleDownSettings:
    """How node groups shrink; times in seconds."""

    enabled: bool = True
    utilization_threshold: float = 0.5
    gpu_utilization_threshold: float = 0.5
    unneeded_seconds: float = 600.0
    unready_seconds: float = 1200.0
    unready_enabled: bool = True
    ignore_daemon_sets_utilization: bool = False
    ignore_mirror_pods_utilization: bool = False
    max_parallelism: int = 10
    max_drain_parallelism: int = 1
    unremovable_recheck_seconds: float = 300.0
    skip_nodes_with_system_pods: bool = True
    skip_nodes_with_local_storage: bool = True
    skip_nodes_with_custom_controller_pods: bool = True
    min_replica_count: int = 0
    blocking_system_pod_disruption_seconds: float = 3600.0
    min_totals: Mapping[str, int] = field(default_factory=dict)
    """Of the cluster: cpu in cores, memory in bytes, GPUs by type."""

    def for_group(self, options: GroupOptions) -> "ScaleDownSettings":
        """The settings that count for one group."""
        own = {
            "utilization_threshold": options.scale_down_utilization_threshold,
            "gpu_utilization_threshold": options.scale_down_gpu_utilization_threshold,
            "unneeded_seconds": options.scale_down_unneeded_seconds,
            "unready_seconds": options.scale_down_unready_seconds,
            "ignore_daemon_sets_utilization": options.ignore_daemon_sets_utilization,
        }
        found = {name: value for name, value in own.items() if value is not None}
        return replace(self, **found) if found else self  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class AutoscalerSettings:
    """All that the Cluster Autoscaler is told."""

    scale_up: ScaleUpSettings = field(default_factory=ScaleUpSettings)
    scale_down: ScaleDownSettings = field(default_factory=ScaleDownSettings)
    priorities: Mapping[int, tuple[re.Pattern[str], ...]] = field(default_factory=dict)
    """Of the priority expander: regular expressions for names of groups, by priority; the highest wins."""
    gpu_label: str = "cluster-api/accelerator"
    """The label by which the cloud provider marks nodes with GPUs; its value is their type."""
