"""Checks of what users and Grove's operator write, as its webhooks make them."""

from mooring.model.gangs.checks import (
    check_at_most,
    check_count,
    check_duration,
    check_level,
    check_names,
    check_order,
    check_pods,
)
from mooring.model.gangs.dialects.grove import (
    ClusterTopologyBinding,
    GangTopologyConstraint,
    GroveTopologyConstraint,
    PodCliqueSet,
    PodCliqueSetTemplate,
    PodGang,
    ScalingGroup,
)
from mooring.model.places import show
from mooring.model.validation.pods import check_pod_spec
from mooring.model.validation.terms import Subject, check_choice

EXPLICIT = "Explicit"
SHORT_STARTUP_TYPES = ("AnyOrder", "InOrder", EXPLICIT)
"""As people call them; understood, though Grove writes them out."""
STARTUP_TYPES = tuple(f"CliqueStartupType{name}" for name in SHORT_STARTUP_TYPES)
WELL_KNOWN = ("region", "zone", "host")
"""Domains that mean the same everywhere, broad to narrow."""


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
    check_pods(subject, "spec.replicas", found.spec.replicas * _pods_of_replica(template))
    _check_startup(subject, path, template)
    _check_nesting(subject, path, template)


def _pods_of_replica(template: PodCliqueSetTemplate) -> int:
    times = {name: group.replicas for group in template.pod_clique_scaling_groups or () for name in group.clique_names}
    return sum(clique.spec.replicas * times.get(clique.name, 1) for clique in template.cliques)


def _check_startup(subject: Subject, path: str, template: PodCliqueSetTemplate) -> None:
    startup = template.clique_startup_type
    if startup and startup not in SHORT_STARTUP_TYPES:
        check_choice(subject, f"{path}.cliqueStartupType", startup, STARTUP_TYPES)
    if not startup.endswith(EXPLICIT):  # nobody looks at startsAfter
        return
    paths = {clique.name: f"{path}.cliques[{index}].spec.startsAfter" for index, clique in enumerate(template.cliques)}
    earlier = {clique.name: clique.spec.starts_after or [] for clique in template.cliques}
    check_order(subject, paths.__getitem__, earlier, "clique")


def _check_nesting(subject: Subject, path: str, template: PodCliqueSetTemplate) -> None:
    """A part is packed into the same domain as the whole or a narrower one, where all clusters agree which is.

    Domains that a ClusterTopologyBinding names are compared when it is at hand.
    """
    groups = template.pod_clique_scaling_groups or []
    group_of = {name: group for group in groups for name in group.clique_names}
    parts: list[tuple[str, GroveTopologyConstraint | None, ScalingGroup | None]] = [
        *((f"podCliqueScalingGroups[{index}]", group.topology_constraint, None) for index, group in enumerate(groups)),
        *(
            (f"cliques[{index}]", clique.topology_constraint, group_of.get(clique.name))
            for index, clique in enumerate(template.cliques)
        ),
    ]
    for name, own, group in parts:
        for outer in (group.topology_constraint if group is not None else None, template.topology_constraint):
            if own is None or outer is None or not {own.required, outer.required} <= {*WELL_KNOWN}:
                continue
            if WELL_KNOWN.index(own.required) < WELL_KNOWN.index(outer.required):
                field = "packDomain" if own.pack_domain else "pack.required"
                expected = f"{outer.required} or a narrower domain"
                subject.refuse(f"{path}.{name}.topologyConstraint.{field}", expected=expected, found=show(own.required))


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
