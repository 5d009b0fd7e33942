"""What the Cluster Autoscaler would do about a cluster that manifests describe: which node groups grow, or shrink."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as with_fields

from mooring.actions.capacity.autoscaler.scale_down import Memory, ScaleDown, scale_down
from mooring.actions.capacity.autoscaler.scale_up import SUCCESSFUL, ScaleUp, scale_up
from mooring.actions.capacity.autoscaler.situation import (
    ControllerKey,
    NodeGroup,
    Prices,
    Situation,
    controller_of,
    is_expendable,
)
from mooring.assembly import Assembly
from mooring.config.autoscaler import AutoscalerSettings
from mooring.config.autoscaler_flags import AutoscalerFlags
from mooring.config.node_groups import GroupSpec, NodeGroupList, check_sizes
from mooring.errors import ConfigError
from mooring.model.api.nodes import Node
from mooring.model.api.pods import Pod
from mooring.model.loading.manifests import Manifests
from mooring.state.loading import populate


@dataclass(frozen=True, eq=False, slots=True)
class AutoscalerPlan:
    """What would be done now."""

    scale_up: ScaleUp
    scale_down: ScaleDown | None
    """None while groups grow, or where scale-down is switched off."""


def plan_node_groups(
    assembly: Assembly,
    manifests: Manifests,
    groups: NodeGroupList,
    flags: AutoscalerFlags,
    *,
    now: float,
    memory: Memory | None = None,
    source: str = "node groups",
) -> AutoscalerPlan:
    """Decide as the Cluster Autoscaler decides in one loop.

    `memory` is what the loop before left (`ScaleDown.memory`): without it, no node has been unneeded for any time.
    """
    settings = flags.settings
    if groups.gpu_label is not None:
        settings = replace(settings, gpu_label=groups.gpu_label)
    situation = _situation(manifests, groups, flags, now, source)
    grown = _grow(assembly, manifests, situation, settings)
    if grown.result == SUCCESSFUL or not settings.scale_down.enabled:
        return AutoscalerPlan(grown, None)
    # Pods that fit will be bound any moment, and are counted where they fit.
    bound = [_bound(pod, grown.fits[pod.key]) for pod in situation.pending if pod.key in grown.fits]
    settled = replace(situation, pods=[*situation.pods, *bound], pending=())
    cluster = assembly.new_cluster()
    populate(cluster, _with_pods(manifests, settled.pods))
    return AutoscalerPlan(grown, scale_down(cluster, assembly.default_profile, settled, settings, memory))


def _grow(assembly: Assembly, manifests: Manifests, situation: Situation, settings: AutoscalerSettings) -> ScaleUp:
    cluster = assembly.new_cluster()
    populate(cluster, _with_pods(manifests, [*situation.pods, *situation.pending]))
    return scale_up(cluster, assembly.default_profile, situation, settings)


def _with_pods(manifests: Manifests, pods: Sequence[Pod]) -> Manifests:
    return replace(manifests, pods=list(pods))


def _bound(pod: Pod, node: str) -> Pod:
    return with_fields(pod, spec=with_fields(pod.spec, node_name=node))


def _situation(
    manifests: Manifests, groups: NodeGroupList, flags: AutoscalerFlags, now: float, source: str
) -> Situation:
    nodes = {node.name for node in manifests.nodes}
    live = [pod for pod in manifests.pods if not pod.is_terminal]
    cutoff = flags.settings.scale_up.expendable_pods_priority_cutoff
    return Situation(
        now=now,
        groups=_groups(manifests.nodes, groups.groups, flags, source),
        nodes=manifests.nodes,
        pods=[pod for pod in live if pod.spec.node_name in nodes and not is_expendable(pod, cutoff)],
        pending=[pod for pod in live if not pod.spec.node_name and not pod.spec.scheduling_gates],
        daemon_sets=manifests.daemon_sets,
        controllers=_controllers(manifests, live),
        budgets=manifests.pod_disruption_budgets,
        prices=Prices(groups.cpu_price, groups.memory_price, groups.gpu_price),
    )


def _groups(nodes: Sequence[Node], specs: Sequence[GroupSpec], flags: AutoscalerFlags, source: str) -> list[NodeGroup]:
    unknown = sorted(flags.group_sizes.keys() - {spec.name for spec in specs})
    if unknown:
        names = ", ".join(spec.name for spec in specs)
        raise ConfigError(source, "--nodes", expected=f"a group that is described ({names})", found=f'"{unknown[0]}"')
    taken: dict[str, str] = {}
    found = []
    for spec in specs:
        own = tuple(node.name for node in nodes if spec.has(node))
        for name in own:
            if name in taken:
                both = f"{taken[name]} and {spec.name}"
                raise ConfigError(source, "nodeGroups", expected="each node in one group", found=f"{name} in {both}")
            taken[name] = spec.name
        least, most = flags.group_sizes.get(spec.name, (spec.min_size, spec.max_size))
        if least is None or most is None:
            where = f"group {spec.name}"
            raise ConfigError(source, where, expected="minSize and maxSize, or --nodes for it", found="neither")
        check_sizes(least, most, f"group {spec.name}", source)
        target = len(own) if spec.target_size is None else spec.target_size
        found.append(NodeGroup(spec.name, least, most, own, target, spec.template, spec.price, spec.options))
    return found


def _controllers(manifests: Manifests, pods: Sequence[Pod]) -> dict[ControllerKey, int | None]:
    """The workloads that exist. Of kinds that the manifests have none of, those that pods name are taken to exist."""
    found: dict[ControllerKey, int | None] = {}
    for kind, objects in (
        ("ReplicaSet", [(each.metadata, each.spec.replicas) for each in manifests.replica_sets]),
        ("ReplicationController", [(each.metadata, each.spec.replicas) for each in manifests.replication_controllers]),
        ("StatefulSet", [(each.metadata, each.spec.replicas) for each in manifests.stateful_sets]),
        ("DaemonSet", [(each.metadata, None) for each in manifests.daemon_sets]),
        ("Job", [(each.metadata, None) for each in manifests.jobs]),
    ):
        found.update((ControllerKey(kind, each.namespace, each.name), replicas) for each, replicas in objects)
    known = {key.kind for key in found}
    for pod in pods:
        owner = controller_of(pod)
        if owner is not None and owner.kind not in known:
            found[ControllerKey(owner.kind, pod.metadata.namespace, owner.name)] = None
    return found
