"""Manifests as if they were created now, in the order given: what LimitRanges and ResourceQuotas let in.

What exists already is counted and never refused: pods that have a node, claims that are bound, and whatever an API
server has numbered before (`resourceVersion`). What is new gets its defaults, is checked, then counted. What a
refused object would have created is not created either.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mooring.model.api.pods import Pod
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.jobs.expansion import controller_of
from mooring.model.objects.kinds import KINDS
from mooring.model.quotas.namespace_limits import NamespaceLimits
from mooring.model.quotas.namespace_quotas import NamespaceQuotas
from mooring.model.quotas.object_usage import CLAIMS
from mooring.model.quotas.objects import CoreResourceQuota, LimitRange
from mooring.model.quotas.refusals import RESOURCE_QUOTA, Refusal, forbid, object_key
from mooring.model.quotas.resource_names import resource_name, resource_of

if TYPE_CHECKING:
    from mooring.model.objects.picture import Manifests

_ALWAYS_THERE = (CoreResourceQuota, LimitRange)
"""The rules themselves are in force before anything else is created."""


def admit_to_namespaces(manifests: "Manifests") -> list[Refusal]:
    """Take out of the manifests what their quotas and limits refuse, and give defaults to the pods that stay."""
    quotas, ranges = manifests.of(CoreResourceQuota), manifests.of(LimitRange)
    if not quotas and not ranges:
        return []
    return _Admission(quotas, ranges).run(manifests)


class _Rules:
    """What governs one namespace."""

    def __init__(self, quotas: list[CoreResourceQuota], ranges: list[LimitRange]) -> None:
        self.quotas = NamespaceQuotas(quotas) if quotas else None
        self.limits = NamespaceLimits(ranges) if ranges else None

    def admit(self, found: Any) -> Refusal | None:
        """Let limits speak before quotas, and charge what both let in."""
        refusal = self._limit(found) if self.limits is not None else None
        if refusal is not None or self.quotas is None:
            return refusal
        reason = self.quotas.objection(found)
        if reason is not None:
            return forbid(found, reason, RESOURCE_QUOTA)
        self.quotas.charge(found)
        return None

    def _limit(self, found: Any) -> Refusal | None:
        assert self.limits is not None
        if isinstance(found, Pod):
            return self.limits.admit(found)
        return self.limits.admit_claim(found) if isinstance(found, PersistentVolumeClaim) else None


class _Admission:
    """One pass over all manifests."""

    def __init__(self, quotas: list[CoreResourceQuota], ranges: list[LimitRange]) -> None:
        quotas_in: defaultdict[str, list[CoreResourceQuota]] = defaultdict(list)
        ranges_in: defaultdict[str, list[LimitRange]] = defaultdict(list)
        for quota in quotas:
            quotas_in[quota.metadata.namespace].append(quota)
        for found in ranges:
            ranges_in[found.metadata.namespace].append(found)
        names = dict.fromkeys((*quotas_in, *ranges_in))
        self._rules = {name: _Rules(quotas_in[name], ranges_in[name]) for name in names}
        self._refused: dict[tuple[str, str], Refusal] = {}
        """By resource and namespace/name."""

    def run(self, manifests: "Manifests") -> list[Refusal]:
        """Admit what users create, then what controllers make of it, then pods."""
        types = dict.fromkeys(kind.type for kind in KINDS if kind.is_namespaced and kind.type is not Pod)
        lists: list[list[Any]] = [manifests.all_of(type_) for type_ in types]
        for objects in (*lists, manifests.pods):
            self._count_existing(objects)
        for objects in lists:
            self._admit_new([found for found in objects if controller_of(found.metadata) is None])
        for objects in lists:
            self._admit_new([found for found in objects if controller_of(found.metadata) is not None])
        self._admit_new(manifests.pods)
        if self._refused:
            for objects in (*lists, manifests.pods):
                objects[:] = [found for found in objects if _identity(found) not in self._refused]
        return list(self._refused.values())

    def _count_existing(self, objects: Iterable[Any]) -> None:
        for found in objects:
            rules = self._rules.get(found.metadata.namespace)
            if rules is not None and rules.quotas is not None and _exists(found):
                rules.quotas.charge(found)

    def _admit_new(self, objects: Iterable[Any]) -> None:
        for found in objects:
            rules = self._rules.get(found.metadata.namespace)
            if rules is None or _exists(found):
                continue
            refusal = (self._never_made(found) if self._refused else None) or rules.admit(found)
            if refusal is not None:
                self._refused[_identity(found)] = refusal

    def _never_made(self, found: Any) -> Refusal | None:
        """Refuse what nobody creates: its controller is refused itself, or fails at the claims that come first."""
        owner = controller_of(found.metadata)
        if owner is None:
            return None
        namespace = found.metadata.namespace
        needed = [(resource_name(owner.api_version, owner.kind), f"{namespace}/{owner.name}")]
        if owner.kind == "StatefulSet" and isinstance(found, Pod):
            claims = [volume.persistent_volume_claim for volume in found.spec.volumes or ()]
            needed += [(CLAIMS, f"{namespace}/{claim.claim_name}") for claim in claims if claim is not None]
        cause = next((self._refused[identity] for identity in needed if identity in self._refused), None)
        return None if cause is None else Refusal(object_key(found), cause.message, cause.message, cause.plugin, found)


def _identity(found: Any) -> tuple[str, str]:
    return resource_of(found), object_key(found)


def is_new(found: Any) -> bool:
    """Tell whether an object is yet to be created, so that admission has a say."""
    return not _exists(found)


def _exists(found: Any) -> bool:
    """Tell whether an object is there already, so that admission is behind it."""
    metadata = found.metadata
    if metadata.resource_version or metadata.deletion_timestamp is not None:
        return True
    if isinstance(found, Pod):
        return bool(found.spec.node_name) or found.is_terminal
    if isinstance(found, PersistentVolumeClaim):
        return found.status.phase not in ("", "Pending")
    return isinstance(found, _ALWAYS_THERE)
