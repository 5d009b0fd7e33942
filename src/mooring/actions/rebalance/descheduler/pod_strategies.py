"""Strategies that look at pods one by one: too old, failed, restarted too often, or where they should not be."""

from collections.abc import Callable, Iterable, Sequence

from mooring.actions.rebalance.descheduler.evictor import Evictor, Outcome
from mooring.actions.rebalance.descheduler.node_fit import (
    anti_affinity_terms,
    fits_any,
    is_selected,
    matches_node,
    required_node_affinity,
)
from mooring.actions.rebalance.descheduler.situation import LabelledPods, eviction_order, owner_kinds
from mooring.config.descheduler import (
    ConditionFilter,
    InterPodAntiAffinityArgs,
    NodeAffinityArgs,
    NodeTaintsArgs,
    PodArgs,
    PodLifeTimeArgs,
    RemoveFailedPodsArgs,
    TooManyRestartsArgs,
)
from mooring.model.api.meta import timestamp_seconds
from mooring.model.api.nodes import Node, Taint
from mooring.model.api.pods import ContainerStatus, Pod, PreferredSchedulingTerm
from mooring.model.values.selectors import compile_label_selector, compile_node_term
from mooring.model.values.tolerations import is_tolerated

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def remove_old_pods(evictor: Evictor, nodes: Sequence[Node], args: PodLifeTimeArgs) -> None:
    """PodLifeTime: the oldest first."""
    is_candidate = _meant(evictor, args)
    situation = evictor.situation
    old = [
        pod
        for node in nodes
        for pod in situation.all_pods(node)
        if _has_lived(pod, args, situation.now) and is_candidate(pod)
    ]
    for pod in sorted(old, key=lambda pod: timestamp_seconds(pod.metadata.creation_timestamp) or 0.0):
        if evictor.evict(pod, "PodLifeTime") is Outcome.TOTAL_LIMIT:
            return


def remove_failed_pods(evictor: Evictor, nodes: Sequence[Node], args: RemoveFailedPodsArgs) -> None:
    """RemoveFailedPods."""
    is_candidate = _meant(evictor, args)
    situation = evictor.situation

    def candidates(node: Node) -> list[Pod]:
        return [
            pod
            for pod in situation.all_pods(node)
            if pod.status.phase == "Failed" and is_candidate(pod) and _has_failed(pod, args, situation.now)
        ]

    _node_by_node(evictor, nodes, candidates, "RemoveFailedPods")


def remove_restarting_pods(evictor: Evictor, nodes: Sequence[Node], args: TooManyRestartsArgs) -> None:
    """RemovePodsHavingTooManyRestarts: those with the most first."""
    is_candidate = _meant(evictor, args)

    def restarts(pod: Pod) -> int:
        return sum(status.restart_count for status in _statuses(pod, init=args.including_init_containers))

    def is_in_state(pod: Pod) -> bool:
        statuses = _statuses(pod, init=args.including_init_containers)
        waiting = {one.state.waiting.reason for one in statuses if one.state is not None and one.state.waiting}
        return not args.states or pod.status.phase in args.states or not waiting.isdisjoint(args.states)

    def candidates(node: Node) -> list[Pod]:
        pods = [
            pod
            for pod in evictor.situation.all_pods(node)
            if restarts(pod) >= args.pod_restart_threshold and is_candidate(pod) and is_in_state(pod)
        ]
        return sorted(pods, key=restarts, reverse=True)

    _node_by_node(evictor, nodes, candidates, "RemovePodsHavingTooManyRestarts")


def remove_tainted_pods(evictor: Evictor, nodes: Sequence[Node], args: NodeTaintsArgs) -> None:
    """RemovePodsViolatingNodeTaints."""
    is_candidate = _meant(evictor, args)
    effects = ("NoSchedule", "PreferNoSchedule") if args.include_prefer_no_schedule else ("NoSchedule",)

    def is_meant(taint: Taint) -> bool:
        names = {taint.key, f"{taint.key}={taint.value}"} if taint.value else {taint.key}
        if taint.effect not in effects or not names.isdisjoint(args.excluded_taints):
            return False
        return args.included_taints is None or not names.isdisjoint(args.included_taints)

    def candidates(node: Node) -> list[Pod]:
        taints = [taint for taint in node.spec.taints or () if is_meant(taint)]
        if not taints:
            return []
        return [
            pod
            for pod in evictor.situation.live_pods(node)
            if not all(is_tolerated(pod.spec.tolerations or (), taint) for taint in taints) and is_candidate(pod)
        ]

    _node_by_node(evictor, nodes, candidates, "RemovePodsViolatingNodeTaints")


def remove_pods_by_node_affinity(evictor: Evictor, nodes: Sequence[Node], args: NodeAffinityArgs) -> None:
    """RemovePodsViolatingNodeAffinity."""
    is_candidate = _meant(evictor, args)
    situation = evictor.situation

    def is_misplaced(pod: Pod, node: Node) -> bool:
        return required_node_affinity(pod) is not None and not matches_node(pod, node)

    def prefers_another(pod: Pod, node: Node) -> bool:
        terms = _preferred_terms(pod)
        return bool(terms) and max(0, *(_weight(terms, one) for one in nodes)) > _weight(terms, node)

    for kind in args.node_affinity_type:
        is_wrong = {REQUIRED: is_misplaced, PREFERRED: prefers_another}.get(kind)
        if is_wrong is None:
            continue

        def candidates(node: Node, is_wrong: Callable[[Pod, Node], bool] = is_wrong) -> list[Pod]:
            return [
                pod
                for pod in situation.live_pods(node)
                if is_wrong(pod, node) and is_candidate(pod) and fits_any(situation, pod, nodes)
            ]

        # A limit in all ends only this kind of affinity, as in the original; the next evicts nothing more either.
        _node_by_node(evictor, nodes, candidates, "RemovePodsViolatingNodeAffinity")


def remove_pods_by_anti_affinity(evictor: Evictor, nodes: Sequence[Node], args: InterPodAntiAffinityArgs) -> None:
    """RemovePodsViolatingInterPodAntiAffinity: once a pod is gone, the others need not go."""
    situation = evictor.situation
    by_name = {node.metadata.name: node for node in nodes}
    is_meant = selection_of(args)
    pods = {node.metadata.name: [pod for pod in situation.live_pods(node) if is_meant(pod)] for node in nodes}
    repelling = {name: found for name, some in pods.items() if (found := [*filter(anti_affinity_terms, some)])}
    if not repelling:
        return
    terms = [term for some in repelling.values() for pod in some for term in anti_affinity_terms(pod)]
    keys = frozenset[str]().union(*(compile_label_selector(term.label_selector).keys for term in terms))
    there = LabelledPods((pod for some in pods.values() for pod in some), keys)

    def is_violated(pod: Pod) -> bool:
        home = by_name[pod.spec.node_name]
        for term in anti_affinity_terms(pod):
            for other in there.selected(compile_label_selector(term.label_selector)):
                if is_selected(term, pod, other) and _shares_domain(
                    home, by_name[other.spec.node_name], term.topology_key
                ):
                    return True
        return False

    for some in repelling.values():
        for pod in sorted(some, key=eviction_order):
            if not is_violated(pod) or not evictor.may_evict(pod) or not evictor.could_move(pod):
                continue
            outcome = evictor.evict(pod, "RemovePodsViolatingInterPodAntiAffinity")
            if outcome is Outcome.DONE:
                there.remove(pod)
            elif outcome is Outcome.NODE_LIMIT:
                break
            elif outcome is Outcome.TOTAL_LIMIT:
                return


def _node_by_node(
    evictor: Evictor, nodes: Iterable[Node], candidates: Callable[[Node], list[Pod]], strategy: str
) -> None:
    for node in nodes:
        for pod in candidates(node):
            outcome = evictor.evict(pod, strategy)
            if outcome is Outcome.NODE_LIMIT:
                break
            if outcome is Outcome.TOTAL_LIMIT:
                return


def selection_of(args: PodArgs) -> Callable[[Pod], bool]:
    """Return which pods arguments speak of."""
    namespaces = args.namespaces
    selector = compile_label_selector(args.label_selector) if args.label_selector is not None else None

    def is_selected_by(pod: Pod) -> bool:
        if namespaces is not None and not namespaces.has(pod.metadata.namespace):
            return False
        return selector is None or selector.matches(pod.metadata.labels or {})

    return is_selected_by


def _meant(evictor: Evictor, args: PodArgs) -> Callable[[Pod], bool]:
    """Return which pods arguments speak of that may be evicted, and have somewhere to go."""
    is_selected_by = selection_of(args)
    return lambda pod: is_selected_by(pod) and evictor.may_evict(pod) and evictor.could_move(pod)


def _statuses(pod: Pod, *, init: bool = False, ephemeral: bool = False) -> list[ContainerStatus]:
    statuses = list(pod.status.container_statuses or ())
    statuses += (pod.status.init_container_statuses or ()) if init else ()
    statuses += (pod.status.ephemeral_container_statuses or ()) if ephemeral else ()
    return statuses


def _reasons(statuses: Iterable[ContainerStatus]) -> set[str]:
    """Why containers wait, or ended."""
    states = [status.state for status in statuses if status.state is not None]
    ends = {state.terminated.reason for state in states if state.terminated is not None}
    return ends | {state.waiting.reason for state in states if state.waiting is not None}


def _exit_codes(statuses: Iterable[ContainerStatus]) -> set[int]:
    states = [status.state for status in statuses if status.state is not None]
    return {state.terminated.exit_code for state in states if state.terminated is not None}


def _age_seconds(pod: Pod, now: float) -> float:
    return now - (timestamp_seconds(pod.metadata.creation_timestamp) or 0.0)


def _has_lived(pod: Pod, args: PodLifeTimeArgs, now: float) -> bool:
    """Whether a pod is what PodLifeTime looks for."""
    age, kinds = _age_seconds(pod, now), owner_kinds(pod)
    if args.max_pod_life_time_seconds is not None and (age < 0 or int(age) <= args.max_pod_life_time_seconds):
        return False
    if args.states:
        init, ephemeral = args.including_init_containers, args.including_ephemeral_containers
        states = {pod.status.phase, pod.status.reason} | _reasons(_statuses(pod, init=init, ephemeral=ephemeral))
        if states.isdisjoint(args.states):
            return False
    if args.owner_kinds is not None:
        if args.owner_kinds.include and not set(kinds) & set(args.owner_kinds.include):
            return False
        if set(kinds) & set(args.owner_kinds.exclude):
            return False
    if args.conditions and not any(_has_condition(pod, one, now) for one in args.conditions):
        return False
    if args.exit_codes:
        return not _exit_codes(_statuses(pod, init=args.including_init_containers)).isdisjoint(args.exit_codes)
    return True


def _has_condition(pod: Pod, wanted: ConditionFilter, now: float) -> bool:
    for condition in pod.status.conditions or ():
        if wanted.type not in ("", condition.type) or wanted.status not in ("", condition.status):
            continue
        if wanted.reason not in ("", condition.reason):
            continue
        if wanted.min_time_since_last_transition_seconds is None:
            return True
        since = timestamp_seconds(condition.last_transition_time)
        if since is not None and now >= since and int(now - since) >= wanted.min_time_since_last_transition_seconds:
            return True
    return False


def _has_failed(pod: Pod, args: RemoveFailedPodsArgs, now: float) -> bool:
    """Whether a failed pod is what RemoveFailedPods looks for."""
    if int(_age_seconds(pod, now)) < args.min_pod_lifetime_seconds:
        return False
    if set(owner_kinds(pod)) & set(args.exclude_owner_kinds):
        return False
    statuses = _statuses(pod, init=args.including_init_containers)
    if args.reasons and (_reasons(statuses) | {pod.status.reason}).isdisjoint(args.reasons):
        return False
    return not args.exit_codes or not _exit_codes(statuses).isdisjoint(args.exit_codes)


def _preferred_terms(pod: Pod) -> list[PreferredSchedulingTerm]:
    affinity = pod.spec.affinity
    return (affinity.node_affinity.preferred or []) if affinity and affinity.node_affinity else []


def _weight(terms: Iterable[PreferredSchedulingTerm], node: Node) -> int:
    labels = node.metadata.labels or {}
    return sum(term.weight for term in terms if compile_node_term(term.preference).matches(node.metadata.name, labels))


def _shares_domain(one: Node, other: Node, key: str) -> bool:
    """Whether two nodes are in one domain; a node is in one with itself, whatever its labels."""
    if one.metadata.name == other.metadata.name:
        return True
    value = (one.metadata.labels or {}).get(key)
    return value is not None and (other.metadata.labels or {}).get(key) == value
