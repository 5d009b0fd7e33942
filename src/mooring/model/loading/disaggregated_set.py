"""DisaggregatedSet of `disaggregatedset.x-k8s.io`: roles, each a LeaderWorkerSet, in slices that may keep apart."""

from collections.abc import Iterator
from typing import Any

from mooring.model.api.meta import KubeObject, ObjectMeta
from mooring.model.gangs.checks import MOST_PODS
from mooring.model.objects.kinds import Source, decode
from mooring.model.places import Place, show

SET_GROUP, SET = "disaggregatedset.x-k8s.io", "DisaggregatedSet"
_NAME, _ROLE, _SLICE = (f"{SET_GROUP}/{part}" for part in ("name", "role", "slice"))
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NONE, EXCLUSIVE_SLICE, EXCLUSIVE_TOPOLOGY = "None", "ExclusiveSlice", "ExclusiveTopology"


class _Role(KubeObject):
    spec: dict[str, Any]
    name: str = ""
    metadata: dict[str, Any] | None = None


class _PlacementPolicy(KubeObject):
    type: str = NONE
    topology: str = ""


class _SetSpec(KubeObject):
    roles: list[_Role] = []
    slices: int = 1
    placement_policy: _PlacementPolicy | None = None


class _DisaggregatedSet(KubeObject):
    spec: _SetSpec
    metadata: ObjectMeta


def leader_worker_sets(source: Source, place: Place) -> Iterator[dict[str, Any]]:
    """The LeaderWorkerSet of each role, slice by slice; their names lack the revision that the controller puts in."""
    found = decode(source, _DisaggregatedSet, place, SET)
    policy = found.spec.placement_policy or _PlacementPolicy()
    kinds = (NONE, EXCLUSIVE_SLICE, EXCLUSIVE_TOPOLOGY)
    if policy.type not in kinds:
        expected = f"one of {', '.join(kinds)}"
        raise place.error("spec.placementPolicy.type", expected=expected, found=show(policy.type), subject=SET)
    if policy.type != NONE and not policy.topology:
        expected = "the key of a node label"
        raise place.error("spec.placementPolicy.topology", expected=expected, found="none", subject=SET)
    if not 0 <= found.spec.slices <= MOST_PODS:
        expected = f"a number from 0 to {MOST_PODS:,}"
        raise place.error("spec.slices", expected=expected, found=show(found.spec.slices), subject=SET)
    for index in range(found.spec.slices):
        for role in found.spec.roles:
            yield _leader_worker_set(found.metadata, role, index, policy)


def _leader_worker_set(owner: ObjectMeta, role: _Role, index: int, policy: _PlacementPolicy) -> dict[str, Any]:
    marks = {_NAME: owner.name, _ROLE: role.name, _SLICE: str(index)}
    template = role.spec.get("leaderWorkerTemplate")
    inner = dict(template) if isinstance(template, dict) else {}
    for name in ("leaderTemplate", "workerTemplate"):
        if isinstance(inner.get(name), dict):
            inner[name] = _placed(inner[name], marks, policy)
    given = role.metadata or {}
    metadata = {
        **given,
        "name": f"{owner.name}-{index}-{role.name}",
        "namespace": owner.namespace,
        "labels": {**(given.get("labels") or {}), **marks},
    }
    spec = {**role.spec, "leaderWorkerTemplate": inner}
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": metadata, "spec": spec}


def _placed(template: dict[str, Any], marks: dict[str, str], policy: _PlacementPolicy) -> dict[str, Any]:
    """A pod template with the labels of its slice, and the affinity that keeps slices together and apart."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    marked = {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **marks}}}
    if policy.type == NONE:
        return marked
    this_set, this_slice = _among(_NAME, "In", marks[_NAME]), marks[_SLICE]
    apart = [_term(policy, this_set, _among(_SLICE, "Exists"), _among(_SLICE, "NotIn", this_slice))]
    if policy.type == EXCLUSIVE_TOPOLOGY:
        others = _among(_NAME, "Exists"), _among(_NAME, "NotIn", marks[_NAME]), _among(_SLICE, "Exists")
        apart.append(_term(policy, *others))
    together = [_term(policy, this_set, _among(_SLICE, "In", this_slice))]
    affinity = dict(spec.get("affinity") or {})
    for side, terms in (("podAffinity", together), ("podAntiAffinity", apart)):
        own = affinity.get(side) or {}
        affinity[side] = {**own, _REQUIRED: [*(own.get(_REQUIRED) or ()), *terms]}
    return {**marked, "spec": {**spec, "affinity": affinity}}


def _among(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _term(policy: _PlacementPolicy, *expressions: dict[str, Any]) -> dict[str, Any]:
    return {"labelSelector": {"matchExpressions": list(expressions)}, "topologyKey": policy.topology}
