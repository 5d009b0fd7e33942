"""Grove: PodCliqueSet and ClusterTopologyBinding (`grove.io`) as users write them, PodGang as its operator does."""

import msgspec

from mooring.model.api.meta import KubeObject, Labels, ObjectMeta
from mooring.model.api.pods import PodSpec

GROUP, SCHEDULER_GROUP = "grove.io", "scheduler.grove.io"


class TopologyPack(KubeObject):
    """Levels: names of domains in a PodCliqueSet, keys of node labels in a PodGang."""

    required: str = ""
    preferred: str = ""


class GroveTopologyConstraint(KubeObject):
    topology_name: str = ""
    pack: TopologyPack | None = None
    pack_domain: str = ""
    """What came before pack.required."""

    @property
    def required(self) -> str:
        return (self.pack.required if self.pack else "") or self.pack_domain

    @property
    def preferred(self) -> str:
        return self.pack.preferred if self.pack else ""


class CliqueSpec(KubeObject):
    pod_spec: PodSpec
    role_name: str = ""
    replicas: int = 1
    min_available: int | None = None
    starts_after: list[str] | None = None

    @property
    def minimum(self) -> int:
        return self.replicas if self.min_available is None else min(self.min_available, self.replicas)


class CliqueTemplate(KubeObject):
    spec: CliqueSpec
    name: str = ""
    labels: Labels | None = None
    annotations: dict[str, str] | None = None
    topology_constraint: GroveTopologyConstraint | None = None


class ScalingGroup(KubeObject):
    """Cliques that are scaled together: each replica has all of them."""

    name: str = ""
    clique_names: list[str] = []
    replicas: int = 1
    min_available: int = 1
    topology_constraint: GroveTopologyConstraint | None = None


class PodCliqueSetTemplate(KubeObject):
    cliques: list[CliqueTemplate] = []
    pod_clique_scaling_groups: list[ScalingGroup] | None = None
    priority_class_name: str = ""
    topology_constraint: GroveTopologyConstraint | None = None
    termination_delay: str | None = None
    clique_startup_type: str = ""


class PodCliqueSetSpec(KubeObject):
    template: PodCliqueSetTemplate
    replicas: int = 0


class PodCliqueSet(KubeObject):
    spec: PodCliqueSetSpec
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = "PodCliqueSet"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class GangTopologyConstraint(KubeObject):
    pack_constraint: TopologyPack | None = None


class GangPodGroup(KubeObject):
    name: str = ""
    min_replicas: int | None = None
    topology_constraint: GangTopologyConstraint | None = None


class ConstraintGroup(KubeObject):
    name: str = ""
    pod_group_names: list[str] = []
    topology_constraint: GangTopologyConstraint | None = None


class PodGangSpec(KubeObject):
    podgroups: list[GangPodGroup] = []
    topology_constraint: GangTopologyConstraint | None = None
    topology_constraint_group_configs: list[ConstraintGroup] | None = None
    priority_class_name: str = ""


class PodGang(KubeObject):
    api_version: str = f"{SCHEDULER_GROUP}/v1alpha1"
    kind: str = "PodGang"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodGangSpec = msgspec.field(default_factory=PodGangSpec)


class BoundLevel(KubeObject):
    domain: str = ""
    key: str = ""


class ClusterTopologyBindingSpec(KubeObject):
    levels: list[BoundLevel] = []


class ClusterTopologyBinding(KubeObject):
    """What the domains are called that PodCliqueSets name, broad to narrow. Once called ClusterTopology."""

    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = "ClusterTopologyBinding"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ClusterTopologyBindingSpec = msgspec.field(default_factory=ClusterTopologyBindingSpec)
