"""What the simulation reads of pods. Equal pods share a shape, and a shape knows the next one that asks for less."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from mooring.actions.capacity.karpenter.memo import Memo, Tolerations, tolerations_of
from mooring.actions.capacity.karpenter.situation import IGNORE, KarpenterSettings
from mooring.actions.capacity.karpenter.type_columns import ResourceNames, Units
from mooring.model.api.meta import LabelSelector, Namespace
from mooring.model.api.pods import Container, Pod, PodAffinityTerm, PodSpec, TopologySpreadConstraint
from mooring.model.capacity.labels import HOSTNAME
from mooring.model.capacity.requirements import (
    Requirement,
    Requirements,
    from_labels,
    from_selector,
)
from mooring.model.values.requests import CPU, MEMORY, PODS, pod_requests, to_pod_units
from mooring.model.values.selectors import Requirement as LabelRequirement
from mooring.model.values.selectors import Selector, compile_label_selector

SPREAD, AFFINITY, ANTI_AFFINITY = "spread", "affinity", "anti-affinity"
HONOR = "Honor"
NO_SKEW_LIMIT = 2**31 - 1
PREFER_NO_SCHEDULE = ("", "Exists", "", "PreferNoSchedule")

HostPort = tuple[int, str, str]
"""Port, protocol, address."""
LabelClass = tuple[str, frozenset[tuple[str, str]]]
"""A pod's namespace and labels: what selectors look at."""


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Which nodes take part in a spread constraint.

    All of it makes filters different, even what the policies leave unread: constraints of pods with other tolerations
    are counted apart.
    """

    terms: frozenset[Requirements] = frozenset()
    """Alternatives, of which a node meets one."""
    honors_affinity: bool = False
    honors_taints: bool = False
    tolerations: Tolerations = ()


@dataclass(frozen=True, slots=True)
class TopologyTerm:
    """A spread constraint, an affinity or an anti-affinity; equal ones are counted together."""

    kind: str
    key: str
    namespaces: frozenset[str]
    selector: frozenset[LabelRequirement] | None
    """None selects no pod, yet when pods that exist are counted, all of them are."""
    max_skew: int = NO_SKEW_LIMIT
    node_filter: NodeFilter = NodeFilter()

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (
            self.selector is not None
            and namespace in self.namespaces
            and all(requirement.matches(labels) for requirement in self.selector)
        )

    def counts(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return namespace in self.namespaces if self.selector is None else self.selects(namespace, labels)


@dataclass(frozen=True, slots=True)
class SpreadWish:
    """A spread constraint before it is known which nodes take part."""

    key: str
    max_skew: int
    min_domains: int | None
    is_soft: bool
    selector: frozenset[LabelRequirement] | None
    honors_affinity: bool
    honors_taints: bool


@dataclass(frozen=True, slots=True)
class Wishes:
    """What of a pod can be relaxed, and what it is relaxed along with. Preferences are in order, heaviest first."""

    required: tuple[Requirements, ...] | None
    preferred: tuple[Requirements, ...]
    affinity: tuple[TopologyTerm, ...]
    anti_affinity: tuple[TopologyTerm, ...]
    spread: tuple[SpreadWish, ...]
    tolerations: Tolerations

    def relaxed(self, tolerate_preferences: bool) -> "Wishes | None":
        """Give up the next thing; None if there is nothing left to give up."""
        if self.required is not None and len(self.required) > 1:
            return replace(self, required=self.required[1:])
        if self.affinity:
            return replace(self, affinity=self.affinity[1:])
        if self.anti_affinity:
            return replace(self, anti_affinity=self.anti_affinity[1:])
        if self.preferred:
            return replace(self, preferred=self.preferred[1:])
        for position, wish in enumerate(self.spread):
            if wish.is_soft:
                left = list(self.spread)
                left[position] = left[-1]  # the last constraint takes the place of the one that goes
                return replace(self, spread=tuple(left[:-1]))
        if tolerate_preferences and PREFER_NO_SCHEDULE not in self.tolerations:
            return replace(self, tolerations=(*self.tolerations, PREFER_NO_SCHEDULE))
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What of a shape stays when it is relaxed."""

    labels: LabelClass
    selector: Requirements
    request: Units
    ports: tuple[HostPort, ...]
    affinity: tuple[TopologyTerm, ...]
    anti_affinity: tuple[TopologyTerm, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A kind of pod at one step of relaxation."""

    kind: Kind
    wishes: Wishes
    number: int
    requirements: int
    """By number, without the host name; preferences count as long as they are there."""
    hostname: Requirement | None
    strict: Requirements
    """Without preferences."""
    terms: tuple[tuple[TopologyTerm, int | None], ...]
    """With minDomains, which does not make constraints different."""

    @property
    def request(self) -> Units:
        return self.kind.request

    @property
    def ports(self) -> tuple[HostPort, ...]:
        return self.kind.ports

    @property
    def tolerations(self) -> Tolerations:
        return self.wishes.tolerations


class Shapes:
    """The shapes of pods, made once for all that are equal."""

    def __init__(
        self,
        memo: Memo,
        resources: ResourceNames,
        settings: KarpenterSettings,
        namespaces: Sequence[Namespace],
        tolerate_preferences: bool,
    ) -> None:
        self._memo = memo
        self._resources = resources
        self._ignores_preferences = settings.preference_policy == IGNORE
        self._namespaces = {found.metadata.name: found.metadata.labels or {} for found in namespaces}
        self._tolerate_preferences = tolerate_preferences
        self._by_pod: dict[int, Shape] = {}
        self._kinds: dict[tuple[bytes, bytes], Shape] = {}
        self._alike: dict[bytes, Shape] = {}
        self._shapes: dict[tuple[int, Wishes], Shape] = {}
        self._count = 0
        self._encode = msgspec.msgpack.Encoder().encode

    def shape_of(self, pod: Pod) -> Shape:
        """The shape of a pod of the situation; it is known again by identity, so no other pod may be asked about."""
        shape = self._by_pod.get(id(pod))
        if shape is None:
            shape = self._by_pod[id(pod)] = self._find(pod)
        return shape

    def _find(self, pod: Pod) -> Shape:
        spec, metadata = pod.spec, pod.metadata
        constraints = self._encode(
            (
                metadata.namespace,
                metadata.labels,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
            )
        )
        takes = self._encode((spec.containers, spec.init_containers, spec.overhead, spec.resources))
        shape = self._kinds.get((constraints, takes))
        if shape is None:
            like = self._alike.get(constraints)
            if like is None:
                shape = self._alike[constraints] = self._make(pod)
            else:
                shape = self._resized(like, pod)
            self._kinds[constraints, takes] = shape
        return shape

    def _resized(self, like: Shape, pod: Pod) -> Shape:
        """A shape that differs from another only in what it takes of a node."""
        request, ports = self._resources.vector(requests_of(pod)), host_ports(pod.spec.containers)
        kind = replace(like.kind, request=request, ports=ports)
        shape = replace(like, kind=kind, number=self._count)
        self._count += 1
        self._shapes[id(kind), shape.wishes] = shape
        return shape

    def relaxed(self, shape: Shape) -> Shape | None:
        wishes = shape.wishes.relaxed(self._tolerate_preferences)
        return None if wishes is None else self._build(shape.kind, wishes)

    def _make(self, pod: Pod) -> Shape:
        spec = pod.spec
        affinity = spec.affinity
        node_affinity = affinity.node_affinity if affinity is not None else None
        required: tuple[Requirements, ...] | None = None
        preferred: tuple[Requirements, ...] = ()
        if node_affinity is not None:
            if node_affinity.required is not None:
                terms = node_affinity.required.node_selector_terms
                required = tuple(from_selector(term.match_expressions) for term in terms)
            ordered = sorted(node_affinity.preferred or (), key=lambda each: -each.weight)
            preferred = tuple(from_selector(each.preference.match_expressions) for each in ordered)
        labels = pod.metadata.labels or {}
        namespace = pod.metadata.namespace
        near = affinity.pod_affinity if affinity is not None else None
        far = affinity.pod_anti_affinity if affinity is not None else None
        kind = Kind(
            labels=(namespace, frozenset(labels.items())),
            selector=from_labels(spec.node_selector),
            request=self._resources.vector(requests_of(pod)),
            ports=host_ports(spec.containers),
            affinity=self._terms(AFFINITY, (near.required or ()) if near else (), namespace),
            anti_affinity=self._terms(ANTI_AFFINITY, (far.required or ()) if far else (), namespace),
        )
        wishes = Wishes(
            required=required,
            preferred=preferred,
            affinity=self._terms(
                AFFINITY,
                [each.pod_affinity_term for each in sorted((near.preferred or ()) if near else (), key=_heaviest)],
                namespace,
            ),
            anti_affinity=self._terms(
                ANTI_AFFINITY,
                [each.pod_affinity_term for each in sorted((far.preferred or ()) if far else (), key=_heaviest)],
                namespace,
            ),
            spread=tuple(_spread(each, labels) for each in spec.topology_spread_constraints or ()),
            tolerations=tolerations_of(spec.tolerations),
        )
        return self._build(kind, wishes)

    def _terms(self, kind: str, terms: Iterable[PodAffinityTerm], namespace: str) -> tuple[TopologyTerm, ...]:
        return tuple(
            TopologyTerm(kind, term.topology_key, self._namespaces_of(term, namespace), _frozen(term.label_selector))
            for term in terms
        )

    def _namespaces_of(self, term: PodAffinityTerm, namespace: str) -> frozenset[str]:
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (namespace,))
        selector: Selector = compile_label_selector(term.namespace_selector)
        selected = {name for name, labels in self._namespaces.items() if selector.matches(labels)}
        return frozenset(selected.union(term.namespaces or ()))

    def _build(self, kind: Kind, wishes: Wishes) -> Shape:
        found = self._shapes.get((id(kind), wishes))
        if found is not None:
            return found
        strict = kind.selector.merged(wishes.required[0]) if wishes.required else kind.selector
        wanted = strict
        if wishes.preferred and not self._ignores_preferences:
            wanted = strict.merged(wishes.preferred[0])
        shape = Shape(
            kind=kind,
            wishes=wishes,
            number=self._count,
            requirements=self._memo.number(wanted.without(HOSTNAME) if HOSTNAME in wanted else wanted),
            hostname=wanted.get(HOSTNAME),
            strict=strict,
            terms=self._topology_terms(kind, wishes),
        )
        self._count += 1
        self._shapes[id(kind), wishes] = shape
        return shape

    def _topology_terms(self, kind: Kind, wishes: Wishes) -> tuple[tuple[TopologyTerm, int | None], ...]:
        found: dict[TopologyTerm, int | None] = {}
        for wish in wishes.spread:
            if wish.is_soft and self._ignores_preferences:
                continue
            required = wishes.required
            terms = (kind.selector,) if required is None else tuple(kind.selector.merged(term) for term in required)
            node_filter = NodeFilter(frozenset(terms), wish.honors_affinity, wish.honors_taints, wishes.tolerations)
            namespaces = frozenset((kind.labels[0],))
            term = TopologyTerm(SPREAD, wish.key, namespaces, wish.selector, wish.max_skew, node_filter)
            found.setdefault(term, wish.min_domains)
        preferred = () if self._ignores_preferences else (*wishes.affinity, *wishes.anti_affinity)
        for term in (*kind.affinity, *kind.anti_affinity, *preferred):
            found.setdefault(term, None)
        return tuple(found.items())


def _heaviest(term: object) -> int:
    weight: int = getattr(term, "weight", 0)
    return -weight


def _spread(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> SpreadWish:
    selector = _frozen(constraint.label_selector)
    if selector is not None:
        keys = [key for key in constraint.match_label_keys or () if key in labels]
        selector = selector.union(LabelRequirement(key, "In", frozenset((labels[key],))) for key in keys)
    return SpreadWish(
        key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=constraint.min_domains,
        is_soft=constraint.when_unsatisfiable == "ScheduleAnyway",
        selector=selector,
        honors_affinity=(constraint.node_affinity_policy or HONOR) == HONOR,
        honors_taints=constraint.node_taints_policy == HONOR,
    )


def _frozen(selector: LabelSelector | None) -> frozenset[LabelRequirement] | None:
    return None if selector is None else frozenset(compile_label_selector(selector).requirements)


def requests_of(pod: Pod) -> dict[str, int]:
    """What a pod takes of a node, itself included."""
    return {**{name: to_pod_units(name, amount) for name, amount in pod_requests(pod).items()}, PODS: 1}


def host_ports(containers: Iterable[Container]) -> tuple[HostPort, ...]:
    return tuple(
        (port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")
        for container in containers
        for port in container.ports or ()
        if port.host_port
    )


_EVERYWHERE = frozenset({"0.0.0.0", "::"})


def ports_conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    taken = tuple(used)
    for port, protocol, address in wanted:
        for other_port, other_protocol, other_address in taken:
            if (port, protocol) == (other_port, other_protocol) and (
                address == other_address or address in _EVERYWHERE or other_address in _EVERYWHERE
            ):
                return True
    return False


def keys_read_by(specs: Iterable[PodSpec]) -> set[str]:
    """The node labels that pods ask about."""
    keys: set[str] = set()
    for spec in specs:
        if spec.node_selector:
            keys.update(from_labels(spec.node_selector))
        for constraint in spec.topology_spread_constraints or ():
            keys.add(constraint.topology_key)
        affinity = spec.affinity
        if affinity is None:
            continue
        if affinity.node_affinity is not None:
            required = affinity.node_affinity.required
            terms = list(required.node_selector_terms) if required is not None else []
            terms.extend(each.preference for each in affinity.node_affinity.preferred or ())
            for term in terms:
                keys.update(from_selector(term.match_expressions))
        for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
            if side is not None:
                keys.update(term.topology_key for term in side.required or ())
                keys.update(each.pod_affinity_term.topology_key for each in side.preferred or ())
    return keys


def order_key(shape: Shape, resources: ResourceNames) -> tuple[int, int]:
    """Larger pods come first: by CPU, then by memory."""
    request = shape.request
    return -int(request[resources.position(CPU)]), -int(request[resources.position(MEMORY)])
