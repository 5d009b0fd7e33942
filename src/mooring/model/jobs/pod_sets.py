"""What all kinds of jobs say of their pods in the same words: which pod sets they queue as, which pods are in them."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from mooring.model.api.kueue_labels import POD_SET_GROUP, ROLE_HASH
from mooring.model.api.kueue_workload import TopologyRequest
from mooring.model.api.meta import Condition, ObjectMeta
from mooring.model.api.pods import Container, Pod, PodTemplateSpec
from mooring.model.jobs.expansion import OwnerKey, controller_of
from mooring.model.topology.requests import (
    KUEUE_PREFERRED,
    KUEUE_REQUESTS,
    KUEUE_REQUIRED,
    KUEUE_UNCONSTRAINED,
    topology_request_of,
)

MAIN = "main"
"""The pod set of a job that has only one kind of pods."""


@dataclass(frozen=True, slots=True)
class PodSetPlan:
    """One pod set of a job."""

    name: str
    template: PodTemplateSpec
    count: int
    path: str
    """The template's field, such as `spec.template`."""
    min_count: int | None = None
    """With how few pods the job would start."""
    reclaimable: int = 0
    """How many pods are done and need no quota any more."""
    index_label: str | None = None
    """The label that ranks the pods."""
    group_index_label: str | None = None
    """The label that ranks the groups of equal size that the pods come in."""
    group_count: int | None = None


class PodFinder:
    """Pods by controller and by label, each index made when it is first asked for."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = list(pods)
        self._owned: dict[OwnerKey, list[tuple[str, Pod]]] | None = None
        self._labelled: dict[str, dict[tuple[str, str], list[Pod]]] = {}

    def owned_by(self, group: str, kind: str, namespace: str, name: str) -> list[Pod]:
        """The pods of a controller; several API groups have a kind Job, so the group counts where a pod names it."""
        if self._owned is None:
            owned: defaultdict[OwnerKey, list[tuple[str, Pod]]] = defaultdict(list)
            for pod in self._pods:
                owner = controller_of(pod.metadata) if pod.metadata.owner_references else None
                if owner is not None:
                    owned[owner.kind, pod.metadata.namespace, owner.name].append((owner.api_version, pod))
            self._owned = owned
        found = self._owned.get((kind, namespace, name), ())
        return [pod for version, pod in found if not version or api_group(version) == group]

    def labelled(self, namespace: str, key: str, value: str) -> list[Pod]:
        if key not in self._labelled:
            by_value: defaultdict[tuple[str, str], list[Pod]] = defaultdict(list)
            for pod in self._pods:
                labels = pod.metadata.labels
                if labels and key in labels:
                    by_value[pod.metadata.namespace, labels[key]].append(pod)
            self._labelled[key] = by_value
        return self._labelled[key].get((namespace, value), [])


def api_group(api_version: str) -> str:
    """The group of `group/version`; empty for the core's `v1`."""
    return api_version.rpartition("/")[0]


def label(pod: Pod, key: str) -> str:
    return pod.metadata.labels.get(key, "") if pod.metadata.labels else ""


def by_label(pods: Iterable[Pod], key: str) -> dict[str, list[Pod]]:
    """Group pods by the value of a label, in lower case as the names of pod sets are."""
    groups: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        groups[label(pod, key).lower()].append(pod)
    return groups


def has_ended(conditions: Iterable[Condition] | None, *types: str) -> bool:
    """Tell whether a condition that ends a job is true."""
    return any(condition.type in types and condition.status == "True" for condition in conditions or ())


def topology_request(metadata: ObjectMeta, plan: PodSetPlan) -> TopologyRequest | None:
    """Read what a template's annotations ask of Kueue's topology-aware scheduling; raise WishError if they cannot."""
    annotations = metadata.annotations or {}
    if annotations.keys().isdisjoint(KUEUE_REQUESTS):
        return None
    topology_request = topology_request_of(annotations)
    if topology_request is None:
        return None
    required, preferred = annotations.get(KUEUE_REQUIRED), annotations.get(KUEUE_PREFERRED)
    return TopologyRequest(
        required=required,
        preferred=preferred,
        unconstrained=True if KUEUE_UNCONSTRAINED in annotations else None,
        pod_index_label=plan.index_label,
        sub_group_index_label=plan.group_index_label,
        sub_group_count=plan.group_count,
        pod_set_group_name=annotations.get(POD_SET_GROUP) if required or preferred else None,
        pod_set_slice_required_topology=topology_request.slice_level,
        pod_set_slice_size=topology_request.slice_size or None,
    )


def role_hash(pod: Pod) -> str:
    """A short name for everything of a pod that admission reads; the one that it was given, if it was."""
    given = (pod.metadata.annotations or {}).get(ROLE_HASH)
    if given:
        return given
    spec = pod.spec
    shape = [
        _container_shapes(spec.init_containers or ()),
        _container_shapes(spec.containers),
        *(spec.node_selector, spec.affinity, spec.tolerations, spec.priority),
        *(spec.topology_spread_constraints, spec.overhead, spec.resource_claims),
    ]
    return hashlib.sha256(msgspec.json.encode(shape, order="sorted")).hexdigest()[:8]


def _container_shapes(containers: Sequence[Container]) -> list[object]:
    return [[found.resources.requests if found.resources else None, found.ports] for found in containers]
