"""Grove: PodCliqueSet and ClusterTopologyBinding (`grove.io`) as users write them, PodGang as its operator does."""

import msgspec

from mooring.model.gang_checks import check_at_most, check_count, check_duration, check_level, check_names
from mooring.model.meta import KubeObject, Labels, ObjectMeta
from mooring.model.places import show
from mooring.model.pods import PodSpec
from mooring.model.validation_pods import check_pod_spec
from mooring.model.validation_terms import Subject

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


def check_clique_set(subject: Subject, found: PodCliqueSet) -> None:
    template, path = found.spec.template, "spec.template"
    check_count(subject, "spec.replicas", found.spec.replicas)
    if not template.cliques:
        subject.refuse(f"{path}.cliques", expected="at least one clique", found="none")
    check_names(subject, f"{path}.cliques", (clique.name for clique in template.cliques))
    _check_constraint(subject, f"{path}.topologyConstraint", template.topology_constraint)
    check_duration(subject, f"{path}.terminationDelay", template.termination_delay)
    for index, clique in enumerate(template.cliques):
        here = f"{path}.cliques[{index}]"
        spec = clique.spec
        check_count(subject, f"{here}.spec.replicas", spec.replicas)
        check_count(subject, f"{here}.spec.minAvailable", spec.min_available, least=1)
        if spec.replicas:  # a clique may be idle
            least = spec.min_available or 1
            check_at_most(subject, f"{here}.spec.minAvailable", least, spec.replicas, "the replicas of the clique")
        check_pod_spec(subject, f"{here}.spec.podSpec", spec.pod_spec)
        _check_constraint(subject, f"{here}.topologyConstraint", clique.topology_constraint)
    _check_scaling_groups(subject, f"{path}.podCliqueScalingGroups", template)


def _check_scaling_groups(subject: Subject, path: str, template: PodCliqueSetTemplate) -> None:
    groups = template.pod_clique_scaling_groups or []
    known = {clique.name for clique in template.cliques}
    check_names(subject, path, (group.name for group in groups))
    taken: dict[str, str] = {}
    for index, group in enumerate(groups):
        here = f"{path}[{index}]"
        if not group.clique_names:
            subject.refuse(f"{here}.cliqueNames", expected="at least one clique", found="none")
        for position, name in enumerate(group.clique_names):
            field = f"{here}.cliqueNames[{position}]"
            if name not in known:
                expected = f"the name of a clique ({', '.join(sorted(known))})"
                subject.refuse(field, expected=expected, found=show(name))
            if name in taken:
                subject.refuse(field, expected=f"a clique that {taken[name]} has not taken", found=show(name))
            taken[name] = group.name
        check_count(subject, f"{here}.replicas", group.replicas, least=1)
        check_count(subject, f"{here}.minAvailable", group.min_available, least=1)
        most = group.replicas
        check_at_most(subject, f"{here}.minAvailable", group.min_available, most, "the replicas of the scaling group")
        _check_constraint(subject, f"{here}.topologyConstraint", group.topology_constraint)


def _check_constraint(subject: Subject, path: str, constraint: GroveTopologyConstraint | None) -> None:
    if constraint is None:
        return
    if constraint.pack is not None and constraint.pack.required and constraint.pack_domain:
        expected = "none beside pack.required"
        subject.refuse(f"{path}.packDomain", expected=expected, found=show(constraint.pack_domain))
    if not constraint.required and not constraint.preferred:
        subject.refuse(f"{path}.pack", expected="required or preferred", found="neither")


def check_pod_gang(subject: Subject, found: PodGang) -> None:
    spec = found.spec
    if not spec.podgroups:
        subject.refuse("spec.podgroups", expected="at least one group of pods", found="none")
    check_names(subject, "spec.podgroups", (group.name for group in spec.podgroups))
    _check_pack(subject, "spec.topologyConstraint", spec.topology_constraint)
    for index, group in enumerate(spec.podgroups):
        path = f"spec.podgroups[{index}]"
        if group.min_replicas is None:
            subject.refuse(f"{path}.minReplicas", expected="a number of at least 0", found="none")
        check_count(subject, f"{path}.minReplicas", group.min_replicas)
        _check_pack(subject, f"{path}.topologyConstraint", group.topology_constraint)
    known = {group.name for group in spec.podgroups}
    for index, config in enumerate(spec.topology_constraint_group_configs or ()):
        path = f"spec.topologyConstraintGroupConfigs[{index}]"
        for position, name in enumerate(config.pod_group_names):
            if name not in known:
                expected = f"the name of a group of pods ({', '.join(sorted(known))})"
                subject.refuse(f"{path}.podGroupNames[{position}]", expected=expected, found=show(name))
        _check_pack(subject, f"{path}.topologyConstraint", config.topology_constraint)


def _check_pack(subject: Subject, path: str, constraint: GangTopologyConstraint | None) -> None:
    if constraint is not None and constraint.pack_constraint is not None:
        pack = constraint.pack_constraint
        check_level(subject, f"{path}.packConstraint.required", pack.required or None)
        check_level(subject, f"{path}.packConstraint.preferred", pack.preferred or None)


def check_binding(subject: Subject, found: ClusterTopologyBinding) -> None:
    levels = found.spec.levels
    if not levels:
        subject.refuse("spec.levels", expected="at least one level", found="none")
    for field, values in (("domain", [level.domain for level in levels]), ("key", [level.key for level in levels])):
        for index, value in enumerate(values):
            path = f"spec.levels[{index}].{field}"
            if not value:
                subject.refuse(path, expected=f"a {field}", found="none")
            if value in values[:index]:
                subject.refuse(path, expected=f"a {field} that no level above has", found=show(value))
    for index, level in enumerate(levels):
        check_level(subject, f"spec.levels[{index}].key", level.key)
