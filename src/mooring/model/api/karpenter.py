"""Karpenter's kinds: NodePool and NodeClaim of `karpenter.sh/v1`, NodeOverlay of `karpenter.sh/v1alpha1`.

Older forms are read, too, and converted: NodePools of v1beta1, and Provisioners of v1alpha5, which became NodePools.
"""

import msgspec

from mooring.model.api.meta import Condition, KubeObject, ObjectMeta, Resources
from mooring.model.api.nodes import Taint

NEVER = "Never"
API_VERSION = "karpenter.sh/v1"
WHEN_UNDERUTILIZED = "WhenUnderutilized"
"""What WhenEmptyOrUnderutilized was called in v1beta1."""
WHEN_EMPTY, WHEN_EMPTY_OR_UNDERUTILIZED, BALANCED = "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"
EMPTY, UNDERUTILIZED, DRIFTED = "Empty", "Underutilized", "Drifted"
"""Reasons for disrupting a node that budgets can name."""


class NodeRequirement(KubeObject):
    """A node selector requirement with two more operators, Gte and Lte, and with minValues."""

    key: str
    operator: str
    values: list[str] | None = None
    min_values: int | None = None


class NodeClassReference(KubeObject):
    group: str = ""
    api_version: str = ""
    """In place of the group, in v1beta1."""
    kind: str = ""
    name: str = ""


class NodeClaimTemplateSpec(KubeObject):
    requirements: list[NodeRequirement] = []
    taints: list[Taint] | None = None
    startup_taints: list[Taint] | None = None
    node_class_ref: NodeClassReference | None = None
    expire_after: str = "720h"
    termination_grace_period: str | None = None


class NodeClaimTemplate(KubeObject):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeClaimTemplateSpec = msgspec.field(default_factory=NodeClaimTemplateSpec)


class Budget(KubeObject):
    """How many nodes of a pool may be disrupted at a time."""

    nodes: str | int = "10%"
    reasons: list[str] | None = None
    schedule: str | None = None
    duration: str | None = None


class Disruption(KubeObject):
    consolidate_after: str = "0s"
    consolidation_policy: str = WHEN_EMPTY_OR_UNDERUTILIZED
    budgets: list[Budget] = msgspec.field(default_factory=lambda: [Budget()])
    expire_after: str | None = None
    """Where v1beta1 has it; it belongs to the template since."""


class NodePoolSpec(KubeObject):
    template: NodeClaimTemplate = msgspec.field(default_factory=NodeClaimTemplate)
    disruption: Disruption = msgspec.field(default_factory=Disruption)
    limits: Resources | None = None
    weight: int = 0
    replicas: int | None = None
    """How many nodes there always are; such a pool takes no part in provisioning or consolidation."""


class NodePoolStatus(KubeObject):
    conditions: list[Condition] | None = None


class NodePool(KubeObject):
    api_version: str = API_VERSION
    kind: str = "NodePool"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodePoolSpec = msgspec.field(default_factory=NodePoolSpec)
    status: NodePoolStatus = msgspec.field(default_factory=NodePoolStatus)

    @property
    def name(self) -> str:
        return self.metadata.name


def unify_pool(pool: NodePool) -> None:
    """Turn a NodePool of v1beta1 into one of v1; in place, and twice without harm."""
    disruption, spec = pool.spec.disruption, pool.spec.template.spec
    if disruption.consolidation_policy == WHEN_UNDERUTILIZED:
        disruption.consolidation_policy = WHEN_EMPTY_OR_UNDERUTILIZED
    if disruption.expire_after is not None:
        spec.expire_after, disruption.expire_after = disruption.expire_after, None
    reference = spec.node_class_ref
    if reference is not None and not reference.group:
        reference.group = reference.api_version.rpartition("/")[0]
    pool.api_version = API_VERSION


class ProvisionerConsolidation(KubeObject):
    enabled: bool = False


class ProvisionerLimits(KubeObject):
    resources: Resources | None = None


class ProvisionerSpec(KubeObject):
    requirements: list[NodeRequirement] = []
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    taints: list[Taint] | None = None
    startup_taints: list[Taint] | None = None
    limits: ProvisionerLimits | None = None
    weight: int = 0
    consolidation: ProvisionerConsolidation | None = None
    ttl_seconds_after_empty: int | None = None
    ttl_seconds_until_expired: int | None = None


class Provisioner(KubeObject):
    """What NodePools were called in v1alpha5."""

    api_version: str = "karpenter.sh/v1alpha5"
    kind: str = "Provisioner"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ProvisionerSpec = msgspec.field(default_factory=ProvisionerSpec)


def to_node_pool(provisioner: Provisioner) -> NodePool:
    """The NodePool that does what a Provisioner did."""
    spec = provisioner.spec
    if spec.consolidation is not None and spec.consolidation.enabled:
        disruption = Disruption()
    elif spec.ttl_seconds_after_empty is not None:
        disruption = Disruption(consolidation_policy=WHEN_EMPTY, consolidate_after=f"{spec.ttl_seconds_after_empty}s")
    else:
        disruption = Disruption(consolidate_after=NEVER)
    expires = spec.ttl_seconds_until_expired
    template = NodeClaimTemplateSpec(
        requirements=spec.requirements,
        taints=spec.taints,
        startup_taints=spec.startup_taints,
        expire_after=NEVER if expires is None else f"{expires}s",
    )
    metadata = ObjectMeta(labels=spec.labels, annotations=spec.annotations)
    return NodePool(
        metadata=provisioner.metadata,
        spec=NodePoolSpec(
            template=NodeClaimTemplate(metadata=metadata, spec=template),
            disruption=disruption,
            limits=spec.limits.resources if spec.limits is not None else None,
            weight=spec.weight,
        ),
    )


class ResourceRequests(KubeObject):
    requests: Resources | None = None


class NodeClaimSpec(KubeObject):
    requirements: list[NodeRequirement] = []
    resources: ResourceRequests = msgspec.field(default_factory=ResourceRequests)
    taints: list[Taint] | None = None
    startup_taints: list[Taint] | None = None
    node_class_ref: NodeClassReference | None = None
    expire_after: str = NEVER
    termination_grace_period: str | None = None


class NodeClaimStatus(KubeObject):
    node_name: str = ""
    provider_id: str = msgspec.field(default="", name="providerID")
    capacity: Resources | None = None
    allocatable: Resources | None = None
    conditions: list[Condition] | None = None
    last_pod_event_time: str | None = None


class NodeClaim(KubeObject):
    """One node that was asked for, launched or not."""

    api_version: str = "karpenter.sh/v1"
    kind: str = "NodeClaim"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeClaimSpec = msgspec.field(default_factory=NodeClaimSpec)
    status: NodeClaimStatus = msgspec.field(default_factory=NodeClaimStatus)

    @property
    def name(self) -> str:
        return self.metadata.name

    def condition(self, kind: str) -> Condition | None:
        return next((found for found in self.status.conditions or () if found.type == kind), None)

    def is_true(self, kind: str) -> bool:
        found = self.condition(kind)
        return found is not None and found.status == "True"


class NodeOverlaySpec(KubeObject):
    requirements: list[NodeRequirement] = []
    price: str | None = None
    price_adjustment: str | None = None
    capacity: Resources | None = None
    weight: int = 0


class NodeOverlay(KubeObject):
    """A change to prices or capacities of the instance types that its requirements select."""

    api_version: str = "karpenter.sh/v1alpha1"
    kind: str = "NodeOverlay"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeOverlaySpec = msgspec.field(default_factory=NodeOverlaySpec)
