"""Scale-up: which node groups grow for the pods that wait.

1. Leave aside who is expendable, who fits on the nodes that there are, and daemons.
2. See which groups may grow at all, and which pods each of them would take.
3. Estimate for each of these groups how many nodes its pods need.
4. Choose one by the expanders, and keep within the limits.
5. Share what it grows by with groups that are alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mooring.actions.capacity.autoscaler.balancing import Growth, are_similar, balance, within
from mooring.actions.capacity.autoscaler.equivalence import (
    MOST_GROUPS_OF_A_CONTROLLER,
    PodGroup,
    equivalence_groups,
)
from mooring.actions.capacity.autoscaler.estimate import Estimator
from mooring.actions.capacity.autoscaler.expanders import Market, Option, choose
from mooring.actions.capacity.autoscaler.fresh_nodes import FreshNodes
from mooring.actions.capacity.autoscaler.places import NOWHERE, Places
from mooring.actions.capacity.autoscaler.situation import (
    Likeness,
    NodeGroup,
    Situation,
    controller_of,
    is_daemon,
    is_expendable,
)
from mooring.actions.capacity.autoscaler.templates import Template, group_templates
from mooring.actions.capacity.autoscaler.totals import CLUSTER_WIDE, Totals
from mooring.config.autoscaler import AutoscalerSettings
from mooring.engine.profile import Profile
from mooring.model.api.pods import Pod
from mooring.model.keys import PodKey
from mooring.state.cluster import Cluster

SUCCESSFUL = "ScaleUpSuccessful"
NO_OPTIONS = "ScaleUpNoOptionsAvailable"
NOT_NEEDED = "ScaleUpNotNeeded"
ERROR = "ScaleUpError"

MAX_SIZE_REACHED = "max node group size reached"
NOT_READY = "not ready for scale-up"
ATOMIC_EXCEEDS = "atomic scale-up exceeds cluster node count limit"
ALL_OR_NOTHING = "not all pods would fit and scale-up is using all-or-nothing strategy"
FAILED = "scale-up execution failed"
NODE_COUNT_REACHED = "max node total count already reached"

Reasons = Mapping[str, tuple[str, ...]]
"""By name of a node group."""


@dataclass(frozen=True, eq=False, slots=True)
class Remaining:
    """Equal pods that no group can help, with what the groups have against it."""

    pods: tuple[Pod, ...]
    rejected: Reasons
    skipped: Reasons


@dataclass(frozen=True, eq=False, slots=True)
class ScaleUp:
    """What was decided, and why."""

    result: str
    expendable: tuple[Pod, ...] = ()
    fits: Mapping[PodKey, str] = field(default_factory=dict)
    """Pods that have a place on nodes that there are, and which."""
    daemons: tuple[Pod, ...] = ()
    options: tuple[Option, ...] = ()
    chosen: Option | None = None
    """The option that was chosen, also if something came in between."""
    growths: tuple[Growth, ...] = ()
    awaiting: tuple[Pod, ...] = ()
    """Pods that some group could help, but not the chosen one."""
    remain: tuple[Remaining, ...] = ()
    problem: str = ""
    market: Market | None = None
    """What the expanders looked at."""

    @property
    def triggered(self) -> tuple[Pod, ...]:
        """The pods of the chosen option."""
        if self.chosen is None:
            return ()
        return tuple(pod for pods, count in self.chosen.helped for pod in pods.pods[:count])


def scale_up(
    cluster: Cluster,
    profile: Profile,
    situation: Situation,
    settings: AutoscalerSettings,
    *,
    counts_amounts: bool = True,
) -> ScaleUp:
    """Decide which groups grow. The cluster is that of the situation (`populate`), and is left as it was."""
    templates = group_templates(situation, force_daemon_sets=settings.scale_up.force_daemon_sets)
    fresh = FreshNodes(cluster)
    fresh.announce(templates.values())
    with cluster.what_if():
        places = Places(cluster, profile)
        aside = _set_aside(places, situation, settings)
        if not aside.to_help:
            return ScaleUp(NOT_NEEDED, aside.expendable, aside.fits, aside.daemons)
        estimator = Estimator(places, fresh, settings.scale_up.fastpath_binpacking, counts_amounts)
        found = _Growing(situation, settings, templates, estimator, aside).decide()
    fresh.forget()
    return found


@dataclass(frozen=True, eq=False, slots=True)
class _Aside:
    """Pods by what becomes of them before any group is looked at."""

    expendable: tuple[Pod, ...]
    fits: Mapping[PodKey, str]
    daemons: tuple[Pod, ...]
    to_help: tuple[Pod, ...]


def _set_aside(places: Places, situation: Situation, settings: AutoscalerSettings) -> _Aside:
    """Tell pods that need help from others; those that fit on nodes that there are stay there in what follows."""
    cutoff = settings.scale_up.expendable_pods_priority_cutoff
    expendable, urgent = list[Pod](), list[Pod]()
    for pod in situation.pending:
        (expendable if is_expendable(pod, cutoff) else urgent).append(pod)
    urgent.sort(key=lambda pod: -(pod.spec.priority or 0))
    cluster = places.cluster
    anywhere = places.uncordoned()
    failed = _Failed(places)
    fits, left = dict[PodKey, str](), list[Pod]()
    for pod in urgent:
        shape = cluster.pods.records[pod.key].shape
        row = NOWHERE if failed.has_like(pod) else places.find(shape, anywhere)
        if row == NOWHERE:
            failed.note(pod)
            left.append(pod)
        else:
            cluster.assume(pod.key, row)
            fits[pod.key] = cluster.nodes.name(row)
    daemons = tuple(pod for pod in left if is_daemon(pod))
    return _Aside(tuple(expendable), fits, daemons, tuple(pod for pod in left if not is_daemon(pod)))


class _Failed:
    """Pods that found no place: who is like them is not tried."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._likeness = Likeness()
        self._of_controller: dict[str, set[object]] = {}
        self._by_amounts: dict[int, bool] = {}
        """By shape that found no place: whether it lacked amounts, which nobody gives back."""

    def has_like(self, pod: Pod) -> bool:
        if self._by_amounts.get(self._shape_id(pod)):
            return True
        controller = controller_of(pod)
        if controller is None:
            return False
        return self._likeness.of(pod) in self._of_controller.get(controller.uid, ())

    def note(self, pod: Pod) -> None:
        shape_id = self._shape_id(pod)
        if shape_id not in self._by_amounts:
            places = self._places
            shape = places.cluster.pods.records[pod.key].shape
            self._by_amounts[shape_id] = places.plain(shape) is not None
        controller = controller_of(pod)
        if controller is not None and not is_daemon(pod):
            known = self._of_controller.setdefault(controller.uid, set())
            if len(known) < MOST_GROUPS_OF_A_CONTROLLER:
                known.add(self._likeness.of(pod))

    def _shape_id(self, pod: Pod) -> int:
        return self._places.cluster.pods.records[pod.key].shape.id


@dataclass(frozen=True, eq=False, slots=True)
class _Acceptance:
    """Which groups of pods a node group would take, and why not the others."""

    accepted: tuple[PodGroup, ...]
    rejected: Mapping[PodGroup, tuple[str, ...]]


class _Growing:
    """One decision, once it is known who is to be helped."""

    def __init__(
        self,
        situation: Situation,
        settings: AutoscalerSettings,
        templates: Mapping[str, Template],
        estimator: Estimator,
        aside: _Aside,
    ) -> None:
        self.situation, self.settings, self.templates = situation, settings, templates
        self.estimator, self.aside = estimator, aside
        nodes = {name: template.node for name, template in templates.items()}
        self.totals = Totals.of(situation, settings.gpu_label, nodes.get)
        self.headroom = self.totals.below(settings.scale_up.max_totals)
        self.pod_groups = equivalence_groups(estimator.places.cluster, aside.to_help)
        self.market = Market(nodes, len(situation.nodes), situation.prices, settings)

    def decide(self) -> ScaleUp:
        skipped = {group.name: (why,) for group in self.situation.groups if (why := self._why_skipped(group))}
        valid = [group for group in self.situation.groups if group.name not in skipped]
        accepting = {group.name: self._accepting(group) for group in valid}
        options = tuple(option for group in valid if (option := self._option(group, accepting)) is not None)
        outcome = ScaleUp(
            NO_OPTIONS, self.aside.expendable, self.aside.fits, self.aside.daemons, options, market=self.market
        )
        if not options:
            return self._told(outcome, accepting, skipped)
        chosen = choose(options, self.market)
        nodes = self._within_node_count(chosen.nodes)
        if nodes < 1:
            outcome = replace(outcome, result=ERROR, chosen=chosen, problem=NODE_COUNT_REACHED)
            return self._told(outcome, accepting, skipped, spoiled=FAILED)
        nodes = self.headroom.allowed(self.totals.by_group[chosen.group.name], nodes)
        growths = self._balanced(chosen.group, nodes, accepting)
        is_cut = nodes < chosen.nodes or sum(growth.nodes for growth in growths) < nodes
        if is_cut and self.settings.scale_up.all_or_nothing:
            return self._told(outcome, accepting, skipped, spoiled=ALL_OR_NOTHING)
        outcome = replace(outcome, result=SUCCESSFUL, chosen=chosen, growths=tuple(growths))
        return self._told(outcome, accepting, skipped)

    def _why_skipped(self, group: NodeGroup) -> str:
        if group.target >= group.max_size:
            return MAX_SIZE_REACHED
        scale_up = self.settings.scale_up
        nodes = 1
        if group.options.zero_or_max:
            nodes = group.room
            if scale_up.max_nodes_total and len(self.situation.nodes) + nodes > scale_up.max_nodes_total:
                return ATOMIC_EXCEEDS
        if group.name not in self.templates:
            return NOT_READY
        exceeded = self.headroom.exceeded(self.totals.by_group[group.name], nodes)
        return f'exceeded quota: "{CLUSTER_WIDE}", resources: {", ".join(exceeded)}' if exceeded else ""

    def _accepting(self, group: NodeGroup) -> _Acceptance:
        """Ask one fresh node of a group about the first pod of each group of pods."""
        places = self.estimator.places
        accepted, rejected = list[PodGroup](), dict[PodGroup, tuple[str, ...]]()
        answers: dict[int, tuple[str, ...] | None] = {}
        with places.cluster.what_if():
            row = self.estimator.fresh.open(self.templates[group.name], 0)
            for pods in self.pod_groups:
                if pods.shape.id not in answers:
                    verdict = places.verdict(pods.shape, row)
                    answers[pods.shape.id] = None if verdict is None else _reasons(verdict.plugin, verdict.reasons)
                reasons = answers[pods.shape.id]
                if reasons is None:
                    accepted.append(pods)
                else:
                    rejected[pods] = reasons
        return _Acceptance(tuple(accepted), rejected)

    def _option(self, group: NodeGroup, accepting: Mapping[str, _Acceptance]) -> Option | None:
        pods = accepting[group.name].accepted
        if not pods:
            return None
        scale_up = self.settings.scale_up
        similar = self._similar(group, accepting)
        estimate = self.estimator.estimate(pods, self.templates[group.name], self._most_nodes(group, similar))
        nodes = estimate.nodes
        if group.options.zero_or_max and nodes:
            if scale_up.all_or_nothing and nodes > group.max_size:
                return None
            nodes = group.max_size
        option = Option(group, nodes, estimate.helped, tuple(similar))
        helps_too_few = scale_up.all_or_nothing and option.pod_count < len(self.aside.to_help)
        return option if nodes and option.pod_count and not helps_too_few else None

    def _most_nodes(self, group: NodeGroup, similar: Sequence[NodeGroup]) -> int:
        """How many nodes an estimate may add."""
        scale_up = self.settings.scale_up
        limits = [sum(each.room for each in (group, *similar))]
        if scale_up.max_nodes_per_scale_up > 0:
            limits.append(scale_up.max_nodes_per_scale_up)
        if scale_up.max_nodes_total:
            limits.append(max(scale_up.max_nodes_total - len(self.situation.nodes), 0))
        return min(limits)

    def _similar(self, group: NodeGroup, accepting: Mapping[str, _Acceptance]) -> list[NodeGroup]:
        """The groups that can grow in a group's place: alike, and ready to take whatever it takes."""
        scale_up = self.settings.scale_up
        if not scale_up.balance_similar_node_groups or group.options.zero_or_max:
            return []
        own, wanted = self.templates[group.name], set(accepting[group.name].accepted)
        return [
            other
            for other in self.situation.groups
            if other.name != group.name
            and other.name in accepting
            and are_similar(own, self.templates[other.name], scale_up)
            and wanted <= set(accepting[other.name].accepted)
        ]

    def _within_node_count(self, nodes: int) -> int:
        most = self.settings.scale_up.max_nodes_total
        return min(nodes, most - len(self.situation.nodes)) if most > 0 else nodes

    def _balanced(self, group: NodeGroup, nodes: int, accepting: Mapping[str, _Acceptance]) -> list[Growth]:
        by_group = self.totals.by_group
        similar = [
            other for other in self._similar(group, accepting) if not self.headroom.exceeded(by_group[other.name], 1)
        ]
        return within(balance([group, *similar], nodes), self.headroom, by_group)

    def _told(
        self, outcome: ScaleUp, accepting: Mapping[str, _Acceptance], skipped: Reasons, spoiled: str = ""
    ) -> ScaleUp:
        """Add what becomes of each pod. With `spoiled`, that is what groups have against pods that they would take."""
        awaiting, remain = list[Pod](), list[Remaining]()
        for pods in self.pod_groups:
            takers = [name for name, found in accepting.items() if pods not in found.rejected]
            rejected = {name: found.rejected[pods] for name, found in accepting.items() if pods in found.rejected}
            if not takers or spoiled:
                remain.append(Remaining(pods.pods, rejected | dict.fromkeys(takers, (spoiled,)), skipped))
            elif outcome.chosen is not None and outcome.chosen.group.name in rejected:
                awaiting.extend(pods.pods)
        return replace(outcome, awaiting=tuple(awaiting), remain=tuple(remain))


def _reasons(plugin: str, reasons: Sequence[str]) -> tuple[str, ...]:
    """Why a fresh node will not do; a pod that names other nodes gives no reason."""
    return () if plugin == "PreFilterResult" else tuple(reasons)
