"""What changes in a pod that exists: the part of an update that the scheduler itself decides on.

The state applies a patch to what it knows of the pod (`Cluster.amend`), and drivers write the same patch to the world.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mooring.model.api.pods import Container, Pod, PodSpec, ResourceRequirements, Toleration
from mooring.model.values.quantity import parse_quantity

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""Keys and values, in the order of keys."""


class ContainerResources(Struct, frozen=True):
    """What one container, or init container, requests and is limited to; resources that are not named stay."""

    container: str
    requests: Pairs = ()
    limits: Pairs = ()


class PodPatch(Struct, frozen=True):
    """Additions to a pod's scheduling terms and metadata, gates to remove, and resources to change."""

    node_selector: Pairs = ()
    tolerations: tuple[Toleration, ...] = ()
    """Added unless the pod has them."""
    labels: Pairs = ()
    annotations: Pairs = ()
    removed_gates: tuple[str, ...] = ()
    """Names of scheduling gates."""
    resources: tuple[ContainerResources, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        node_selector: Mapping[str, str] | None = None,
        tolerations: Iterable[Toleration] = (),
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        removed_gates: Iterable[str] = (),
        resources: Mapping[str, ResourceRequirements] | None = None,
    ) -> "PodPatch":
        """Make a patch of the types that manifests have; `resources` by container name."""
        changed = [
            ContainerResources(name, _pairs(asked.requests), _pairs(asked.limits))
            for name, asked in sorted((resources or {}).items())
        ]
        return cls(
            _pairs(node_selector),
            tuple(tolerations),
            _pairs(labels),
            _pairs(annotations),
            tuple(sorted(removed_gates)),
            tuple(changed),
        )

    def apply(self, pod: Pod) -> Pod:
        """Return the pod with the changes; the pod that is given stays as it is."""
        metadata = pod.metadata
        if self.labels or self.annotations:
            metadata = replace(
                metadata,
                labels=_merged(metadata.labels, self.labels),
                annotations=_merged(metadata.annotations, self.annotations),
            )
        return replace(pod, metadata=metadata, spec=self.apply_to_spec(pod.spec))

    def apply_to_spec(self, spec: PodSpec) -> PodSpec:
        """Return the changed spec: once for all pods of a template, which share it."""
        changed = dict[str, object]()
        if self.node_selector:
            changed["node_selector"] = _merged(spec.node_selector, self.node_selector)
        added = [each for each in self.tolerations if each not in (spec.tolerations or ())]
        if added:
            changed["tolerations"] = [*(spec.tolerations or ()), *added]
        if self.removed_gates and spec.scheduling_gates:
            kept = [gate for gate in spec.scheduling_gates if gate.name not in self.removed_gates]
            changed["scheduling_gates"] = kept or None
        if self.resources:
            changes = {each.container: each for each in self.resources}
            changed["containers"] = _resized(spec.containers, changes)
            if spec.init_containers:
                changed["init_containers"] = _resized(spec.init_containers, changes)
        return replace(spec, **changed) if changed else spec

    def is_in(self, spec: PodSpec) -> bool:
        """Whether a spec has the changes already; amounts may be written in another way."""
        rest = replace(self, resources=())
        if rest.apply_to_spec(spec) != spec:
            return False
        containers = {each.name: each for each in (*spec.containers, *(spec.init_containers or ()))}
        return all(_has(containers[each.container], each) for each in self.resources if each.container in containers)


def _has(container: Container, change: ContainerResources) -> bool:
    had = container.resources or ResourceRequirements()
    return all(
        name in (there or {}) and parse_quantity((there or {})[name]) == parse_quantity(text)
        for there, wanted in ((had.requests, change.requests), (had.limits, change.limits))
        for name, text in wanted
    )


def _pairs(found: Mapping[str, object] | None) -> Pairs:
    return tuple(sorted((key, str(value)) for key, value in (found or {}).items()))


def _merged(own: dict[str, str] | None, more: Pairs) -> dict[str, str] | None:
    return {**(own or {}), **dict(more)} if more else own


def _resized(containers: list[Container], changes: Mapping[str, ContainerResources]) -> list[Container]:
    return [_resize(each, changes[each.name]) if each.name in changes else each for each in containers]


def _resize(container: Container, change: ContainerResources) -> Container:
    had = container.resources or ResourceRequirements()
    requests, limits = {**(had.requests or {}), **dict(change.requests)}, {**(had.limits or {}), **dict(change.limits)}
    return replace(container, resources=replace(had, requests=requests or None, limits=limits or None))
