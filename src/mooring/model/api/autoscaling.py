"""VerticalPodAutoscaler (autoscaling.k8s.io): what a user asks for, and what is recommended. HorizontalPodAutoscaler
(autoscaling): by which resources it scales."""

import msgspec

from mooring.model.api.meta import Condition, KubeObject, ObjectMeta, QuantityText, Resources

GROUP = "autoscaling.k8s.io"


class TargetReference(KubeObject):
    """The controller whose pods are right-sized."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class EvictionRequirement(KubeObject):
    resources: list[str] = []
    change_requirement: str = ""
    """TargetHigherThanRequests or TargetLowerThanRequests."""


class UpdatePolicy(KubeObject):
    update_mode: str | None = None
    min_replicas: int | None = None
    eviction_requirements: list[EvictionRequirement] | None = None
    evict_after_oom_seconds: int | None = msgspec.field(default=None, name="evictAfterOOMSeconds")


class CpuBoost(KubeObject):
    type: str = ""
    """Factor or Quantity."""
    factor: int | None = None
    quantity: QuantityText | None = None
    duration_seconds: int | None = None


class StartupBoost(KubeObject):
    cpu: CpuBoost | None = None


class ContainerPolicy(KubeObject):
    container_name: str = ""
    """`*` for every container without a policy of its own."""
    mode: str | None = None
    min_allowed: Resources | None = None
    max_allowed: Resources | None = None
    controlled_resources: list[str] | None = None
    controlled_values: str | None = None
    oom_bump_up_ratio: QuantityText | None = None
    oom_min_bump_up: QuantityText | None = None
    memory_aggregation_interval_seconds: int | None = None
    memory_aggregation_interval_count: int | None = None
    startup_boost: StartupBoost | None = None


class ResourcePolicy(KubeObject):
    container_policies: list[ContainerPolicy] | None = None


class RecommenderSelector(KubeObject):
    name: str = ""


class VerticalPodAutoscalerSpec(KubeObject):
    target_ref: TargetReference | None = None
    update_policy: UpdatePolicy | None = None
    resource_policy: ResourcePolicy | None = None
    recommenders: list[RecommenderSelector] | None = None
    startup_boost: StartupBoost | None = None


class ContainerRecommendation(KubeObject):
    container_name: str = ""
    target: Resources | None = None
    lower_bound: Resources | None = None
    upper_bound: Resources | None = None
    uncapped_target: Resources | None = None


class PodRecommendation(KubeObject):
    container_recommendations: list[ContainerRecommendation] | None = None


class VerticalPodAutoscalerStatus(KubeObject):
    recommendation: PodRecommendation | None = None
    conditions: list[Condition] | None = None


class VerticalPodAutoscaler(KubeObject):
    api_version: str = f"{GROUP}/v1"
    kind: str = "VerticalPodAutoscaler"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VerticalPodAutoscalerSpec = msgspec.field(default_factory=VerticalPodAutoscalerSpec)
    status: VerticalPodAutoscalerStatus = msgspec.field(default_factory=VerticalPodAutoscalerStatus)


class ResourceMetric(KubeObject):
    name: str = ""
    container: str = ""
    """Of one container's metric only."""


class HorizontalMetric(KubeObject):
    type: str = ""
    resource: ResourceMetric | None = None
    container_resource: ResourceMetric | None = None


class HorizontalPodAutoscalerSpec(KubeObject):
    scale_target_ref: TargetReference | None = None
    metrics: list[HorizontalMetric] | None = None
    target_cpu_utilization_percentage: int | None = msgspec.field(default=None, name="targetCPUUtilizationPercentage")
    """Of version v1, which knows nothing else."""


class HorizontalPodAutoscaler(KubeObject):
    api_version: str = "autoscaling/v2"
    kind: str = "HorizontalPodAutoscaler"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: HorizontalPodAutoscalerSpec = msgspec.field(default_factory=HorizontalPodAutoscalerSpec)
