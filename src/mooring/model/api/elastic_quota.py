"""The kind `ElasticQuota`: what a team can insist on (min) and the most it may have (max), in two dialects.

Of `scheduling.x-k8s.io`, as scheduler-plugins' CapacityScheduling has it: one for a namespace, for all pods there. Of
`scheduling.sigs.k8s.io`, as Koordinator has it: a tree by labels, and pods name theirs by a label.
"""

from collections.abc import Iterable

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, Resources
from mooring.model.api.pods import Pod

GROUP = "scheduling.x-k8s.io"
KOORDINATOR_GROUP = "scheduling.sigs.k8s.io"
KIND = "ElasticQuota"

QUOTA_NAME = "quota.scheduling.koordinator.sh/name"
PARENT = "quota.scheduling.koordinator.sh/parent"
SHARED_WEIGHT = "quota.scheduling.koordinator.sh/shared-weight"
ALLOW_LENT = "quota.scheduling.koordinator.sh/allow-lent-resource"
TREE_ID = "quota.scheduling.koordinator.sh/tree-id"
IS_ROOT = "quota.scheduling.koordinator.sh/is-root"
TOTAL = "quota.scheduling.koordinator.sh/total-resource"
NAMESPACES = "quota.scheduling.koordinator.sh/namespaces"
PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"
ROOT_QUOTA = "koordinator-root-quota"
SYSTEM_QUOTA = "koordinator-system-quota"
DEFAULT_QUOTA = "koordinator-default-quota"
"""The quota of pods that have none."""


class ElasticQuotaSpec(KubeObject):
    min: Resources | None = None
    max: Resources | None = None


class ElasticQuota(KubeObject):
    api_version: str = f"{GROUP}/v1alpha1"
    kind: str = KIND
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ElasticQuotaSpec = msgspec.field(default_factory=ElasticQuotaSpec)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def label(self, name: str) -> str:
        return (self.metadata.labels or {}).get(name, "")

    @property
    def is_koordinator(self) -> bool:
        """Whether it is one of a tree: its group says so, or labels that only Koordinator reads."""
        return self.api_version.startswith(KOORDINATOR_GROUP)

    @property
    def parent(self) -> str:
        """The name of the quota above it; empty right below the root."""
        found = self.label(PARENT)
        return "" if found == ROOT_QUOTA else found

    @property
    def lends(self) -> bool:
        """Whether others may use of its min what it does not ask for itself."""
        return self.label(ALLOW_LENT) != "false"

    @property
    def tree_id(self) -> str:
        """The tree that it is in, beside the default one; empty for that."""
        return self.label(TREE_ID)

    @property
    def tree_total(self) -> Resources | None:
        """What a tree has to divide that this quota is the root of; None for quotas inside of trees."""
        return (self.amounts(TOTAL) or self.spec.max or {}) if self.label(IS_ROOT) == "true" else None

    @property
    def namespaces(self) -> list[str]:
        """Further namespaces whose pods count in it."""
        text = (self.metadata.annotations or {}).get(NAMESPACES, "")
        return msgspec.json.decode(text, type=list[str]) if text else []

    def amounts(self, annotation: str) -> Resources:
        """The amounts by resource that an annotation has as JSON; nothing if it is not there."""
        text = (self.metadata.annotations or {}).get(annotation, "")
        found: Resources = msgspec.json.decode(text) if text else {}
        return found


class QuotaIndex:
    """Which quota pods count in: the one that their label names, else that of their namespace."""

    def __init__(self, quotas: Iterable[ElasticQuota]) -> None:
        self._by_name: dict[str, ElasticQuota] = {}
        self._by_namespace: dict[str, ElasticQuota] = {}
        for quota in quotas:
            self._by_name.setdefault(quota.metadata.name, quota)
            # Koordinator's may stand in any namespace: only one of the same name is that namespace's own.
            is_own = not quota.is_koordinator or quota.metadata.name == quota.metadata.namespace
            for namespace in (*quota.namespaces, *([quota.metadata.namespace] if is_own else ())):
                self._by_namespace.setdefault(namespace, quota)

    def of(self, pod: Pod) -> ElasticQuota | None:
        named = (pod.metadata.labels or {}).get(QUOTA_NAME, "")
        return self._by_name.get(named) if named else self._by_namespace.get(pod.metadata.namespace)


class KoordinatorQuotas:
    """Which quota of Koordinator's pods count in: the one that their label names, else that of their namespace."""

    def __init__(self, quotas: Iterable[ElasticQuota], *, has_default: bool) -> None:
        found = list(quotas)
        self._has_default = has_default
        self._names = {quota.metadata.name for quota in found} | {SYSTEM_QUOTA, DEFAULT_QUOTA}
        self._of_namespace: dict[str, str] = {}
        for quota in found:
            for namespace in quota.namespaces:
                self._of_namespace.setdefault(namespace, quota.metadata.name)
        # A quota that is called as the namespace that it is in is that namespace's, whatever others say.
        own = (quota.metadata for quota in found if quota.metadata.name == quota.metadata.namespace)
        self._of_namespace.update({metadata.namespace: metadata.name for metadata in own})

    def name_of(self, pod: Pod) -> str:
        """The name of a pod's quota; empty if it has none and there is no default."""
        named = (pod.metadata.labels or {}).get(QUOTA_NAME, "")
        if not named and self._has_default:
            named = self._of_namespace.get(pod.metadata.namespace, "")
        return named if named in self._names else DEFAULT_QUOTA if self._has_default else ""
