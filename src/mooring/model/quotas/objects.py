"""The two core kinds that govern a namespace. Kueue has a ResourceQuota too, hence the longer name here."""

import msgspec

from mooring.model.api.meta import KubeObject, ObjectMeta, Resources

CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"
"""What a limit may be about."""


class ScopedSelectorRequirement(KubeObject):
    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class ScopeSelector(KubeObject):
    match_expressions: list[ScopedSelectorRequirement] | None = None


class ResourceQuotaSpec(KubeObject):
    hard: Resources | None = None
    scopes: list[str] | None = None
    scope_selector: ScopeSelector | None = None


class CoreResourceQuota(KubeObject):
    """Its status is not read: what is used is counted from the objects at hand."""

    api_version: str = "v1"
    kind: str = "ResourceQuota"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceQuotaSpec = msgspec.field(default_factory=ResourceQuotaSpec)


class LimitRangeItem(KubeObject):
    type: str = ""
    max: Resources | None = None
    min: Resources | None = None
    default: Resources | None = None
    default_request: Resources | None = None
    max_limit_request_ratio: Resources | None = None


class LimitRangeSpec(KubeObject):
    limits: list[LimitRangeItem] = []


class LimitRange(KubeObject):
    api_version: str = "v1"
    kind: str = "LimitRange"
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: LimitRangeSpec = msgspec.field(default_factory=LimitRangeSpec)
