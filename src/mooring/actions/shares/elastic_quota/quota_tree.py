"""A tree of Koordinator's ElasticQuotas: what each requests, uses and may use, and whether a pod is admitted.

All amounts are in the units of columns: thousandths of CPUs, whole units of everything else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from msgspec.structs import replace

from mooring.actions.shares.elastic_quota.dividing import Claim, scaled_minimums, share_out
from mooring.actions.shares.elastic_quota.weights import shared_weight
from mooring.model.api.elastic_quota import (
    DEFAULT_QUOTA,
    PREEMPTIBLE,
    ROOT_QUOTA,
    SYSTEM_QUOTA,
    ElasticQuota,
    KoordinatorQuotas,
)
from mooring.model.api.meta import Resources
from mooring.model.api.pods import Pod
from mooring.model.values.quantity import parse_quantity
from mooring.model.values.requests import CPU, MEMORY, MOST_OF_A_QUOTA, pod_requests, to_column_units

Amounts = dict[str, int]
APART = (SYSTEM_QUOTA, DEFAULT_QUOTA)
"""Quotas below the root that take no part in its division."""
UNLIMITED = {CPU: MOST_OF_A_QUOTA, MEMORY: MOST_OF_A_QUOTA}


class Refusal(Enum):
    """Why a pod is not admitted."""

    QUOTA = "quota"
    """It would exceed its quota's runtime, or max."""
    NON_PREEMPTIBLE = "non-preemptible"
    """What cannot be preempted would exceed its quota's min."""
    PARENT = "parent"
    """It would exceed what a quota above has."""


@dataclass(frozen=True)
class QuotaSettings:
    """Koordinator's ElasticQuotaArgs and feature gates."""

    scales_minimums: bool = True
    limits_to_runtime: bool = True
    """Else to max."""
    checks_parents: bool = False
    guarantees_usage: bool = False
    ignores_overhead: bool = False
    has_default: bool = True
    """Whether pods without a quota count in the default one."""
    default_max: Mapping[str, int] = field(default_factory=lambda: dict(UNLIMITED))
    system_max: Mapping[str, int] = field(default_factory=lambda: dict(UNLIMITED))


@dataclass(frozen=True)
class _Quota:
    name: str
    parent: str
    least: Mapping[str, int]
    most: Mapping[str, int]
    weights: Mapping[str, int]
    lends: bool


@dataclass(frozen=True)
class Books:
    """What pods request and use, quota by quota, those above included."""

    request: Mapping[str, Amounts]
    used: Mapping[str, Amounts]
    own_used: Mapping[str, Amounts]
    """By the pods of the quota itself, without those of quotas below."""
    fixed: Mapping[str, Amounts]
    """Used by pods of the quota itself that cannot be preempted."""

    def reserve(self, path: Sequence[str], asked: Amounts, *, is_fixed: bool) -> "Books":
        """The books after a pod is placed: `path` leads from its quota to the root."""
        used = {**self.used, **{name: _sum(self.used[name], asked) for name in path}}
        own = path[0]
        return Books(
            self.request,
            used,
            {**self.own_used, own: _sum(self.own_used[own], asked)},
            {**self.fixed, own: _sum(self.fixed[own], asked)} if is_fixed else self.fixed,
        )


class QuotaTree:
    """Quotas and rules; pods and nodes come in as arguments."""

    def __init__(self, quotas: Sequence[ElasticQuota], settings: QuotaSettings) -> None:
        self.settings = settings
        self._finder = KoordinatorQuotas(quotas, has_default=settings.has_default)
        compiled = [_compile(quota) for quota in quotas if quota.metadata.name not in (*APART, ROOT_QUOTA)]
        maxima = {SYSTEM_QUOTA: settings.system_max, DEFAULT_QUOTA: settings.default_max}
        apart = [_Quota(name, ROOT_QUOTA, {}, most, {}, lends=True) for name, most in maxima.items()]
        self._quotas = {quota.name: quota for quota in (*compiled, *apart)}

    @cached_property
    def _children(self) -> dict[str, list[_Quota]]:
        children: dict[str, list[_Quota]] = {}
        for _, quota in sorted(self._quotas.items()):  # of equal remainders the first by name gets more
            parent = quota.parent if quota.parent in self._quotas else ROOT_QUOTA
            children.setdefault(parent, []).append(quota)
        return children

    def _downwards(self) -> Iterator[str]:
        """The root and all quotas, each after the one above it."""
        line = [ROOT_QUOTA]
        for name in line:
            yield name
            line += [child.name for child in self._children.get(name, ())]

    def path(self, name: str) -> list[str]:
        """From a quota up to the root."""
        found = [name]
        while found[-1] != ROOT_QUOTA:
            parent = self._quotas[found[-1]].parent
            found.append(parent if parent in self._quotas and parent not in found else ROOT_QUOTA)
        return found

    def quota_of(self, pod: Pod) -> str:
        """The name of the quota that a pod counts in; empty if it counts in none."""
        return self._finder.name_of(pod)

    def asked_by(self, pod: Pod) -> Amounts:
        """What a pod counts with: the resources that its quota has a max of."""
        if self.settings.ignores_overhead and pod.spec.overhead:
            pod = replace(pod, spec=replace(pod.spec, overhead=None))
        most = self._quotas[self.quota_of(pod)].most
        return {name: to_column_units(name, nanos) for name, nanos in pod_requests(pod).items() if name in most}

    # What pods request and use.

    def books(self, pods: Iterable[Pod]) -> Books:
        """Sum up pods: all of them request, and those with a node that have not ended use."""
        names = list(self._downwards())
        request, used, own, fixed = ({name: Amounts() for name in names} for _ in range(4))
        for pod in pods:
            name = self.quota_of(pod)
            if not name:
                continue
            asked = self.asked_by(pod)
            request[name] = _sum(request[name], asked)
            if pod.spec.node_name and not pod.is_terminal:
                own[name] = _sum(own[name], asked)
                fixed[name] = _sum(fixed[name], asked) if is_fixed(pod) else fixed[name]
        for name in reversed(names):
            used[name] = _sum(used[name], own[name])
            if name == ROOT_QUOTA:
                break
            quota = self._quotas[name]
            if not self._lends(quota):
                request[name] = {**request[name], **_most(request[name], quota.least)}
            parent = self.path(name)[1]
            request[parent] = _sum(request[parent], _limited(request[name], quota.most))
            used[parent] = _sum(used[parent], used[name])
        return Books(request, used, own, fixed)

    # What each may use.

    def runtime(self, total: Mapping[str, int], books: Books) -> dict[str, Amounts]:
        """By quota and resource: how much it may use of it. No entry is no limit."""
        left = dict(total)
        for name in APART:
            for resource, amount in books.used[name].items():
                left[resource] = left.get(resource, 0) - amount
        found = {ROOT_QUOTA: left}
        named = sorted({name for quota in self._quotas.values() if quota.name not in APART for name in quota.most})
        guarantees = self._guarantees(books) if self.settings.guarantees_usage else {}
        for parent in self._downwards():
            children = [child for child in self._children.get(parent, ()) if self._takes_part(child)]
            if not children:
                continue
            found |= {child.name: {} for child in children}
            resources = named if parent == ROOT_QUOTA else self._quotas[parent].most
            for resource in resources:
                parts = self._divide(resource, found[parent].get(resource), children, books, guarantees)
                for child, part in zip(children, parts, strict=True):
                    if resource in child.most:
                        found[child.name][resource] = part
        return {name: amounts for name, amounts in found.items() if name not in APART}

    def _lends(self, quota: _Quota) -> bool:
        return quota.lends and not self.settings.guarantees_usage

    def _takes_part(self, quota: _Quota) -> bool:
        return quota.name not in APART or self.settings.guarantees_usage

    def _guarantees(self, books: Books) -> dict[str, Amounts]:
        """What each quota keeps in any case: its min, or what is used and guaranteed below it."""
        found: dict[str, Amounts] = {}
        for name in reversed(list(self._downwards())):
            if name != ROOT_QUOTA:
                below = dict(books.own_used[name])
                for child in self._children.get(name, ()):
                    below = _sum(below, found[child.name])
                found[name] = {**below, **_most(below, self._quotas[name].least)}
        return found

    def _divide(
        self,
        resource: str,
        total: int | None,
        children: Sequence[_Quota],
        books: Books,
        guarantees: Mapping[str, Amounts],
    ) -> list[int]:
        minimums = [child.least.get(resource, 0) for child in children]
        if self.settings.scales_minimums and total is not None:
            minimums = scaled_minimums(total, minimums)
        claims = [
            Claim(
                max(least, guarantees.get(child.name, {}).get(resource, 0)),
                _limited(books.request[child.name], child.most).get(resource, 0),
                child.weights.get(resource, 0),
                self._lends(child),
            )
            for child, least in zip(children, minimums, strict=True)
        ]
        return share_out(total or 0, claims)

    # Admission.

    def refusal(self, pod: Pod, books: Books, runtime: Mapping[str, Amounts]) -> Refusal | None:
        """Why a pod may not be placed now; None if it may."""
        name = self.quota_of(pod)
        if not name:
            return None
        asked, quota = self.asked_by(pod), self._quotas[name]
        if not _is_within(_sum(books.used[name], asked), self._limit(name, runtime)):
            return Refusal.QUOTA
        if is_fixed(pod) and not _is_within(_sum(books.fixed[name], asked), quota.least):
            return Refusal.NON_PREEMPTIBLE
        for parent in self.path(name)[1:-1] if self.settings.checks_parents else ():
            limit = self._limit(parent, runtime)
            # Here only what the pod asks for counts, and of what a quota above does not name there is nothing.
            if any(books.used[parent].get(name, 0) + amount > limit.get(name, 0) for name, amount in asked.items()):
                return Refusal.PARENT
        return None

    def _limit(self, name: str, runtime: Mapping[str, Amounts]) -> Mapping[str, int]:
        return runtime.get(name, {}) if self.settings.limits_to_runtime else self._quotas[name].most


def is_fixed(pod: Pod) -> bool:
    """Whether a pod may not be preempted for others of its quota."""
    return (pod.metadata.labels or {}).get(PREEMPTIBLE) == "false"


def quota_amounts(resources: Resources | None) -> Amounts:
    return {name: to_column_units(name, parse_quantity(text)) for name, text in (resources or {}).items()}


def _compile(quota: ElasticQuota) -> _Quota:
    return _Quota(
        quota.metadata.name,
        quota.parent or ROOT_QUOTA,
        quota_amounts(quota.spec.min),
        quota_amounts(quota.spec.max),
        quota_amounts(shared_weight(quota)),
        quota.lends,
    )


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _most(one: Mapping[str, int], least: Mapping[str, int]) -> Amounts:
    return {name: max(one.get(name, 0), amount) for name, amount in least.items()}


def _limited(request: Mapping[str, int], most: Mapping[str, int]) -> Amounts:
    return {name: min(amount, most.get(name, amount)) for name, amount in request.items()}


def _is_within(amounts: Mapping[str, int], limit: Mapping[str, int]) -> bool:
    return all(amount <= limit[name] for name, amount in amounts.items() if name in limit)
