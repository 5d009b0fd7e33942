"""Shapes: everything of a pod that scheduling reads, interned, so that equal pods share their answers.

Labels belong to a shape only as far as someone selects on them, or a plugin says that it reads them: an index or a pod
name among the labels of a thousand replicas must not make a thousand shapes. When a selector on a new key appears, pods
are shaped again.

Of volumes, a shape has what plugins read (claims, disks, drivers and images), not their names: the API server gives
each pod a volume for its token under a name of its own. Such a volume, as any that is only a directory on the node, is
no part of the shape.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from mooring.model.api.meta import Labels
from mooring.model.api.pods import Affinity, Pod, PodAffinity, PodAffinityTerm, PodSpec, Volume
from mooring.model.devices.card_dialects import CARD_ANNOTATIONS, card_request
from mooring.model.devices.cards import CardRequest, Sharing
from mooring.model.devices.dialects.hami import NO_AMOUNTS
from mooring.model.devices.naming import AskedClaim
from mooring.model.numa.ask import ask_of
from mooring.model.values.requests import CPU, MEMORY, pod_requests, to_pod_units, whole_requests
from mooring.model.values.selectors import Selector, compile_label_selector
from mooring.state.read_keys import ALL, NOTHING_READ, ReadKeys, ReadLabels

HostPort = tuple[str, str, int]
"""(ip, protocol, port)"""


@dataclass(eq=False)
class Shape:
    """All pods that scheduling cannot tell apart."""

    id: int
    sample: Pod
    """One pod of this shape, whole; names and most labels are its own, so that plugins see it as `pod`."""
    namespace: str
    selected_labels: Labels
    """The labels that someone selects on, or that a plugin reads."""
    terminating: bool
    node_name: str
    """The node that a pod not yet bound asks for by name."""
    read_keys: ReadKeys = NOTHING_READ
    claims: tuple[AskedClaim, ...] | None = None
    """The claims to devices, if the pod has any."""
    _parts: dict[str, Hashable] = field(default_factory=dict)

    @property
    def spec(self) -> PodSpec:
        return self.sample.spec

    @property
    def affinity(self) -> Affinity | None:
        return self.sample.spec.affinity

    def label(self, key: str) -> str | None:
        """The value of a label that the plugin says it reads (`reads_pod_labels`); None for pods without it."""
        return self.labels.get(key)

    def annotation(self, key: str) -> str | None:
        """The value of an annotation that the plugin says it reads (`reads_pod_annotations`)."""
        return self.annotations.get(key)

    @property
    def priority_class(self) -> str:
        """The name of its PriorityClass, where a plugin says that it reads it (`reads_pod_priority_class`)."""
        return self.sample.spec.priority_class_name if self.read_keys.priority_class else ""

    @cached_property
    def labels(self) -> ReadLabels:
        """The labels that some plugin says it reads."""
        return ReadLabels(self.sample.metadata.labels or {}, self.read_keys.labels, "label")

    @cached_property
    def annotations(self) -> ReadLabels:
        """The annotations that some plugin says it reads."""
        return ReadLabels(self.sample.metadata.annotations or {}, self.read_keys.annotations, "annotation")

    @cached_property
    def pod(self) -> Pod:
        """One pod of this shape, for reading what the others share; its name is its own."""
        metadata = replace(self.sample.metadata, labels=self.labels, annotations=self.annotations)
        return replace(self.sample, metadata=metadata)

    def part(self, name: str) -> Hashable:
        """A part of the pod as a comparable value; shapes with equal parts get equal answers from who reads them."""
        found = self._parts.get(name)
        if found is None:
            found = self._parts[name] = _PARTS[name](self)
        return found

    @cached_property
    def as_selected(self) -> Hashable:
        """All that selectors of pods can see of it: namespace and labels."""
        return self.namespace, tuple(sorted(self.selected_labels.items()))

    @cached_property
    def images(self) -> tuple[str, ...]:
        """The images of init containers, containers and image volumes, as written."""
        spec = self.spec
        volumes = [volume.image.reference for volume in spec.volumes or () if volume.image is not None]
        return (*(c.image for c in (*(spec.init_containers or ()), *spec.containers)), *volumes)

    @cached_property
    def requests(self) -> dict[str, int]:
        """What a pod takes of each resource of its node, in column units (CPU in millis)."""
        found = whole_requests(pod_requests(self.sample))
        return found if NO_AMOUNTS.isdisjoint(found) else {k: n for k, n in found.items() if k not in NO_AMOUNTS}

    def request(self, resource: str) -> int:
        return self.requests.get(resource, 0)

    @cached_property
    def _says_it_all(self) -> bool:
        """Whether every container asks for CPU and memory itself, so that scoring counts nothing but requests."""
        containers = (*self.spec.containers, *(self.spec.init_containers or ()))
        asked = [c.resources.requests if c.resources else None for c in containers]
        return self.spec.resources is None and all(a and CPU in a and MEMORY in a for a in asked)

    @cached_property
    def nonzero(self) -> tuple[int, int]:
        """CPU millis and memory bytes that scoring counts for a pod that runs: never nothing."""
        if self._says_it_all:
            return self.request(CPU), self.request(MEMORY)
        return _cpu_and_memory(pod_requests(self.sample, nonzero=True))

    @cached_property
    def nonzero_incoming(self) -> dict[str, int]:
        """What scoring counts for a pod on its way: without pod-level resources, as kube-scheduler does."""
        if self._says_it_all:
            return self.requests
        return whole_requests(pod_requests(self.sample, nonzero=True, pod_level=False))

    @cached_property
    def card_request(self) -> CardRequest | None:
        """What a pod asks of the cards of its node."""
        return card_request(self.sample)

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        sidecars = [c for c in self.spec.init_containers or () if c.restart_policy == "Always"]
        return tuple(
            (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
            for container in (*self.spec.containers, *sidecars)
            for port in container.ports or ()
            if port.host_port > 0
        )

    @cached_property
    def has_volumes(self) -> bool:
        """Whether it has volumes that matter to scheduling, other than images."""
        return any(
            source is not None for *sources, _image in map(_sources, self.spec.volumes or ()) for source in sources
        )


def _sources(volume: Volume) -> tuple[Any, ...]:
    """All that scheduling reads of a volume; the image, which only scoring reads, is last."""
    return (
        volume.persistent_volume_claim,
        volume.ephemeral,
        volume.gce_persistent_disk,
        volume.aws_elastic_block_store,
        volume.rbd,
        volume.iscsi,
        volume.csi,
        volume.image,
    )


_NO_SOURCES = _sources(Volume())


def _cpu_and_memory(amounts: dict[str, int]) -> tuple[int, int]:
    return to_pod_units(CPU, amounts.get(CPU, 0)), to_pod_units(MEMORY, amounts.get(MEMORY, 0))


_encode = msgspec.msgpack.Encoder().encode

_PARTS: dict[str, Callable[[Shape], Hashable]] = {
    "shape": lambda shape: shape.id,
    "node_name": lambda shape: shape.node_name,
    "tolerations": lambda shape: _encode(shape.spec.tolerations),
    "node_affinity": lambda shape: _encode(
        (shape.spec.node_selector, shape.affinity.node_affinity if shape.affinity else None)
    ),
    "images": lambda shape: shape.images,
    "volumes": lambda shape: shape.id if shape.has_volumes else None,
    "claims": lambda shape: shape.claims,
    "numa": lambda shape: ask_of(shape.spec),
    "annotations": lambda shape: tuple(sorted(dict.items(shape.annotations))),
    "features": lambda shape: (shape.spec.host_network, shape.spec.host_users, _restart_actions(shape.spec)),
}
"""What plugins can say they read of a pod; `shape` is all of it."""


def _restart_actions(spec: PodSpec) -> tuple[str, ...]:
    containers = (*spec.containers, *(spec.init_containers or ()))
    return tuple(rule.action for container in containers for rule in container.restart_policy_rules or ())


GONE = Shape(-1, Pod(), "", {}, False, "")
"""In the place of a shape that is forgotten, until another one has its number."""

ShapeKey = tuple[Any, ...]


class AsksForClaims(Protocol):
    """Says what a pod asks for by its claims."""

    def __call__(self, pod: Pod, *, bound: bool) -> tuple[AskedClaim, ...] | None: ...


class ShapeTable:
    """Interns shapes; knows which label keys anyone selects on."""

    def __init__(self, read_keys: ReadKeys = NOTHING_READ, claims: AsksForClaims | None = None) -> None:
        self._claims = claims
        self.all = list[Shape]()
        """By id; GONE where one is forgotten."""
        self.known = list[Shape]()
        """All of them, in order of appearance."""
        self.read_keys = read_keys
        self.selected_keys = set[str]() if read_keys.labels is ALL else set(read_keys.labels)
        """The label keys that someone selects on, or that a plugin reads."""
        self.with_pod_affinity = list[Shape]()
        """The shapes that have terms about other pods: a new one may concern everybody."""
        self.sharing_gpus = list[Shape]()
        """The shapes that take shares of GPUs where others are given whole ones: a new one may concern those."""
        self._labelled: dict[tuple[str, str], list[Shape]] = {}
        """By label and value, the shapes that have it."""
        self._asking: dict[tuple[str, str] | None, list[Shape]] = {None: []}
        """By label and value, the shapes with a term about pods that have it; None: with a term that names none."""
        self._annotations = (
            () if read_keys.annotations is ALL else tuple(sorted({*read_keys.annotations, *CARD_ANNOTATIONS}))
        )
        self.epoch = 0
        """Rises when shapes are forgotten: their numbers may then be given to others."""
        self._free = list[int]()
        self._shape_of: dict[ShapeKey, Shape] = {}
        self._signature_of: dict[bytes, int] = {}
        self._signatures = 0
        self._encoder = msgspec.msgpack.Encoder()
        self._last: tuple[PodSpec, int] | None = None

    def __len__(self) -> int:
        """One past the last id."""
        return len(self.all)

    @property
    def in_use(self) -> int:
        """How many shapes are known."""
        return len(self._shape_of)

    def __getitem__(self, shape_id: int) -> Shape:
        return self.all[shape_id]

    def forget_but(self, living: Set[int]) -> None:
        """Forget all shapes but these, by id, and all that was kept for the sake of the others."""
        self.epoch += 1
        self._shape_of = {key: shape for key, shape in self._shape_of.items() if shape.id in living}
        signatures = {key[0] for key in self._shape_of}
        self._signature_of = {spec: number for spec, number in self._signature_of.items() if number in signatures}
        self._last = None
        self._free = [shape_id for shape_id in range(len(self.all)) if shape_id not in living]
        for shape_id in self._free:
            self.all[shape_id] = GONE
        self.with_pod_affinity.clear()
        self.sharing_gpus.clear()
        self.known = []
        self._labelled, self._asking = {}, {None: []}
        for shape in self._shape_of.values():
            self._note(shape)

    def select_on(self, keys: Iterable[str]) -> frozenset[str]:
        """Note that someone selects on these label keys; return those that are new."""
        new = frozenset(keys) - self.selected_keys
        self.selected_keys |= new
        return new

    def intern(self, pod: Pod, *, bound: bool) -> Shape:
        labels = pod.metadata.labels or {}
        if self.read_keys.labels is not ALL:
            labels = {key: labels[key] for key in labels if key in self.selected_keys}
        terminating = pod.metadata.deletion_timestamp is not None
        node_name = "" if bound else pod.spec.node_name
        owner = _controller(pod)
        # The claims of generic ephemeral volumes are the pod's own, by name and uid: such pods share nothing.
        itself = (pod.metadata.name, pod.metadata.uid) if _has_ephemeral_claims(pod.spec) else None
        claims = self._claims(pod, bound=bound) if self._claims is not None else None
        key = (
            self._signature(pod.spec),
            pod.metadata.namespace,
            tuple(sorted(labels.items())),
            terminating,
            node_name,
            owner,
            itself,
            claims,
            self._read_annotations(pod),
            (pod.spec.priority_class_name, pod.spec.priority) if self.read_keys.priority_class else None,
        )
        shape = self._shape_of.get(key)
        if shape is None:
            number = self._free.pop() if self._free else len(self.all)
            shape = Shape(number, pod, pod.metadata.namespace, labels, terminating, node_name, self.read_keys, claims)
            self._shape_of[key] = shape
            if number == len(self.all):
                self.all.append(shape)
            else:
                self.all[number] = shape
            self._note(shape)
        return shape

    def _note(self, shape: Shape) -> None:
        """Take a shape into the lists by which it is found."""
        self.known.append(shape)
        if shape.card_request is not None and shape.card_request.asks.get(Sharing.COUNTED):
            self.sharing_gpus.append(shape)
        for label in shape.selected_labels.items():
            self._labelled.setdefault(label, []).append(shape)
        affinity = shape.affinity
        if affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
            self.with_pod_affinity.append(shape)
            terms = (*pod_terms(affinity.pod_affinity), *pod_terms(affinity.pod_anti_affinity))
            selectors = [compile_label_selector(term.label_selector) for term in terms]
            for needed in {label: None for selector in selectors for label in _labels_needed(selector)}:
                self._asking.setdefault(needed, []).append(shape)

    def selected_by(self, selector: Selector) -> list[list[Shape]]:
        """Lists that have all shapes that a selector may select, and few others; they grow until `epoch` rises."""
        needed = _labels_needed(selector)
        return [self.known if label is None else self._labelled.setdefault(label, []) for label in needed]

    def speaking_of(self, pod: Shape) -> list[list[Shape]]:
        """Lists that have all shapes with a term that may select a pod, and few others; they grow until then, too."""
        labels = pod.selected_labels.items()
        return [self._asking[None], *(self._asking.setdefault(label, []) for label in labels)]

    def _read_annotations(self, pod: Pod) -> tuple[tuple[str, str], ...]:
        found = pod.metadata.annotations
        if not found:
            return ()
        if self.read_keys.annotations is ALL:
            return tuple(sorted(found.items()))
        return tuple((key, found[key]) for key in self._annotations if key in found)

    def _signature(self, spec: PodSpec) -> int:
        """A number for everything in a pod's specification that scheduling reads."""
        if self._last is not None and self._last[0] is spec:
            return self._last[1]  # replicas of one template share the object
        encoded = self._encoder.encode(
            (
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.resources,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                [sources for sources in map(_sources, spec.volumes or ()) if sources != _NO_SOURCES],
                spec.resource_claims,
                spec.host_network,
                spec.host_users,
            )
        )
        signature = self._signature_of.get(encoded)
        if signature is None:
            self._signatures += 1
            signature = self._signature_of[encoded] = self._signatures
        self._last = (spec, signature)
        return signature


def _labels_needed(selector: Selector) -> Sequence[tuple[str, str] | None]:
    """Labels one of which a pod must have to be selected; [None] if it may have any."""
    if selector.is_nothing:
        return []
    named = [found for found in selector.requirements if found.operator == "In"]
    if not named:
        return [None]
    fewest = min(named, key=lambda found: len(found.values))
    return [(fewest.key, value) for value in sorted(fewest.values)]


def _has_ephemeral_claims(spec: PodSpec) -> bool:
    return bool(spec.volumes) and any(volume.ephemeral is not None for volume in spec.volumes or ())


def _controller(pod: Pod) -> tuple[str, str] | None:
    """The owner whose selector default spreading uses, or a DaemonSet; no other owner matters to scheduling."""
    for owner in pod.metadata.owner_references or ():
        if owner.kind == "DaemonSet":
            return owner.kind, ""
        if owner.controller and owner.kind in ("ReplicaSet", "ReplicationController", "StatefulSet"):
            return owner.kind, owner.name
    return None


def selected_keys(pod: Pod) -> Iterator[str]:
    """The label keys of pods that this pod's affinity and spreading select on."""
    affinity = pod.spec.affinity
    if affinity is not None:
        for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
            for term in pod_terms(side):
                yield from _term_keys(term)
    for constraint in pod.spec.topology_spread_constraints or ():
        yield from constraint.match_label_keys or ()
        selector = constraint.label_selector
        if selector is not None:
            yield from selector.match_labels or ()
            yield from (expression.key for expression in selector.match_expressions or ())


def pod_terms(side: PodAffinity | None) -> Iterator[PodAffinityTerm]:
    if side is not None:
        yield from side.required or ()
        yield from (weighted.pod_affinity_term for weighted in side.preferred or ())


def _term_keys(term: PodAffinityTerm) -> Iterator[str]:
    selector = term.label_selector
    if selector is not None:
        yield from selector.match_labels or ()
        yield from (expression.key for expression in selector.match_expressions or ())
