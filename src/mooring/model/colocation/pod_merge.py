"""Strategic merge patches of pods: which of their lists are merged item by item, and by which key."""

from collections.abc import Mapping
from dataclasses import dataclass

from mooring.model.api.meta import Document
from mooring.model.values.strategic_merge import strategic_merge

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "ownerReferences": "uid",
}
"""By field, wherever in a pod it stands: no two lists of one name differ in this."""


@dataclass(frozen=True)
class _MergedList:
    merge_key: str
    strategies: frozenset[str] = frozenset({"merge"})

    @property
    def type(self) -> "_PodPart":
        return POD_PART


class _PodPart:
    """Any object in a pod, or a list of such."""

    form = "struct"

    @property
    def item(self) -> "_PodPart":
        return self

    @property
    def fields(self) -> Mapping[str, _MergedList]:
        return _LISTS

    def field_type(self, _name: str) -> "_PodPart":
        return self


POD_PART = _PodPart()
_LISTS = {name: _MergedList(key) for name, key in MERGE_KEYS.items()}


def merge_pod(pod: Document, patch: Document) -> Document:
    """Apply a strategic merge patch to a pod; raises PatchError."""
    return strategic_merge(pod, patch, POD_PART)
