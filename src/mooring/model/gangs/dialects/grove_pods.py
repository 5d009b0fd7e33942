"""The cliques that Grove's operator makes of a PodCliqueSet, which gang each is in, and their pods.

A replica's base gang has the cliques on their own and the first replicas of each scaling group, as many as the group's
minimum. Each further replica of a scaling group is a gang by itself, which starts after the base.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mooring.model.api.meta import Labels, ObjectMeta
from mooring.model.api.pods import Pod, PodTemplateSpec
from mooring.model.gangs.dialects.grove import CliqueTemplate, PodCliqueSet, ScalingGroup
from mooring.model.gangs.membership import GROVE_GANG, GROVE_INDEX, GROVE_ROLE
from mooring.model.jobs.expansion import Owned, Stamp, owner_key

BASE_GANG = "grove.io/base-podgang"
SET_REPLICA = "grove.io/podcliqueset-replica-index"
SCALING_GROUP, SCALING_REPLICA = "grove.io/podcliquescalinggroup", "grove.io/podcliquescalinggroup-replica-index"
MANAGED_BY, PART_OF = "app.kubernetes.io/managed-by", "app.kubernetes.io/part-of"


@dataclass(frozen=True, slots=True)
class Clique:
    """One PodClique that the operator would make."""

    name: str
    template: CliqueTemplate
    gang: str
    labels: Labels
    base: str = ""
    """The gang that has to run first; empty for a clique of the base itself."""
    group: ScalingGroup | None = None
    """The scaling group that it is in, and which replica of it."""
    scaled_with: str = ""


def cliques_of(found: PodCliqueSet, replica: int) -> list[Clique]:
    """The cliques of one replica of the set."""
    template, base = found.spec.template, f"{found.metadata.name}-{replica}"
    groups = template.pod_clique_scaling_groups or []
    grouped = {name for group in groups for name in group.clique_names}
    shared = {MANAGED_BY: "grove-operator", PART_OF: found.metadata.name, SET_REPLICA: str(replica)}
    cliques = [
        Clique(f"{base}-{clique.name}", clique, base, shared)
        for clique in template.cliques
        if clique.name not in grouped
    ]
    by_name = {clique.name: clique for clique in template.cliques}
    for group in groups:
        for index in range(group.replicas):
            cliques += [_scaled(base, group, index, by_name[name], shared) for name in group.clique_names]
    return cliques


def _scaled(base: str, group: ScalingGroup, index: int, template: CliqueTemplate, shared: Labels) -> Clique:
    whole = f"{base}-{group.name}"
    name, scaled_with = f"{whole}-{index}-{template.name}", f"{whole}-{index}"
    labels = {**shared, SCALING_GROUP: whole, SCALING_REPLICA: str(index)}
    if index < group.min_available:
        return Clique(name, template, base, labels, group=group, scaled_with=scaled_with)
    gang = f"{whole}-{index - group.min_available}"
    return Clique(name, template, gang, {**labels, BASE_GANG: base}, base, group, scaled_with)


def default_clique_set(found: PodCliqueSet) -> None:
    """Pods that name no priority class of their own have the set's."""
    template = found.spec.template
    for clique in template.cliques:
        spec = clique.spec.pod_spec
        spec.priority_class_name = spec.priority_class_name or template.priority_class_name


def templates_of(found: PodCliqueSet) -> Iterator[tuple[str, PodTemplateSpec]]:
    for index, clique in enumerate(found.spec.template.cliques):
        yield f"spec.template.cliques[{index}].spec.podSpec", _template(clique)


def _template(clique: CliqueTemplate) -> PodTemplateSpec:
    metadata = ObjectMeta(labels=clique.labels, annotations=clique.annotations)
    return PodTemplateSpec(metadata=metadata, spec=clique.spec.pod_spec)


def expand_clique_set(found: PodCliqueSet, owned: Owned) -> list[Pod]:
    """Create the pods that each clique lacks, called after the clique: `set-0-prefill-0`."""
    made_here: dict[str, list[Pod]] = {}
    for pod in owned.get(owner_key(found), ()):
        made_here.setdefault((pod.metadata.labels or {}).get(GROVE_ROLE, ""), []).append(pod)
    pods: list[Pod] = []
    for replica in range(found.spec.replicas):
        for clique in cliques_of(found, replica):
            made_by_operator = owned.get(("PodClique", found.metadata.namespace, clique.name), ())
            pods.extend(_missing(found, clique, [*made_here.get(clique.name, ()), *made_by_operator]))
    return pods


def _missing(found: PodCliqueSet, clique: Clique, present: list[Pod]) -> Iterator[Pod]:
    live = [pod for pod in present if not pod.is_terminal]
    missing = clique.template.spec.replicas - len(live)
    if missing <= 0:
        return
    # Newer operators name gangs after the moment at which they were made: what the pods at hand say goes.
    gang = next((name for pod in live if (name := (pod.metadata.labels or {}).get(GROVE_GANG))), clique.gang)
    stamp = Stamp(found, _template(clique.template), {**clique.labels, GROVE_ROLE: clique.name, GROVE_GANG: gang})
    taken = {(pod.metadata.labels or {}).get(GROVE_INDEX) for pod in live}
    names = {pod.metadata.name for pod in present}
    index = 0
    while missing:
        name = f"{clique.name}-{index}"
        if str(index) not in taken and name not in names:
            yield stamp.pod(name, {GROVE_INDEX: str(index)})
            missing -= 1
        index += 1
