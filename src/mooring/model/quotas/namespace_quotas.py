"""The quotas of one namespace and how much of them is used, kept as objects come and go.

Whoever creates objects asks `check` first, then calls `charge`; whoever removes one calls `release`. What already
exists is charged without a check: a quota that is lowered takes nothing away, it only lets nothing more in.
"""

from collections.abc import Iterable
from typing import Any

from mooring.model.api.pods import Pod, PodSpec
from mooring.model.api.volumes import PersistentVolumeClaim
from mooring.model.quotas.amounts import Amount, Amounts, Notation, read_amounts, show_amounts
from mooring.model.quotas.by_spec import BySpec
from mooring.model.quotas.object_usage import object_usage
from mooring.model.quotas.objects import CoreResourceQuota
from mooring.model.quotas.pod_usage import is_pod_resource, missing_compute, pod_usage
from mooring.model.quotas.refusals import forbidden, object_key
from mooring.model.quotas.resource_names import resource_of
from mooring.model.quotas.scopes import claim_is_in, compile_scopes, pod_facts


class _Account:
    """One quota: what it allows, and what is used of it."""

    __slots__ = ("hard", "name", "notation", "scopes", "used_nanos")

    def __init__(self, quota: CoreResourceQuota) -> None:
        self.name = quota.metadata.name
        self.scopes = compile_scopes(quota.spec)
        self.hard = read_amounts(quota.spec.hard)
        # Plain integers: a hundred thousand pods are added to them, and few are ever shown.
        self.used_nanos = dict.fromkeys(self.hard, 0)
        self.notation = dict.fromkeys(self.hard, Notation.DECIMAL)

    def used(self, name: str) -> Amount:
        return Amount(self.used_nanos[name], self.notation[name])

    def add(self, amounts: Iterable[tuple[str, Amount]]) -> None:
        used = self.used_nanos
        for name, amount in amounts:
            if not used[name]:
                self.notation[name] = amount.notation
            used[name] += amount.nanos

    def subtract(self, amounts: Iterable[tuple[str, Amount]]) -> None:
        for name, amount in amounts:
            self.used_nanos[name] -= amount.nanos

    def share_of(self, usage: Amounts) -> "_Share":
        """What an object takes of this quota. Zeros are left out: who takes nothing cannot be too many."""
        return self, tuple((name, amount) for name, amount in usage.items() if name in self.hard and amount.nanos)

    def objection(self, amounts: Iterable[tuple[str, Amount]]) -> str | None:
        used_nanos, hard = self.used_nanos, self.hard
        exceeded = {name: amount for name, amount in amounts if used_nanos[name] + amount.nanos > hard[name].nanos}
        if not exceeded:
            return None
        used = show_amounts({name: self.used(name) for name in exceeded})
        limited = show_amounts({name: hard[name] for name in exceeded})
        return f"exceeded quota: {self.name}, requested: {show_amounts(exceeded)}, used: {used}, limited: {limited}"


_Share = tuple[_Account, tuple[tuple[str, Amount], ...]]


class _Charge:
    """What equal objects take of every quota that is about them, or what they lack to be counted at all."""

    __slots__ = ("lack", "shares")

    def __init__(self, shares: Iterable[_Share], lack: str = "") -> None:
        self.shares = tuple(share for share in shares if share[1])
        self.lack = lack


_NOTHING = _Charge(())


class NamespaceQuotas:
    """The quotas of one namespace, in the order given, with what is used of each."""

    def __init__(self, quotas: Iterable[CoreResourceQuota]) -> None:
        self._accounts = [_Account(quota) for quota in quotas]
        self._of_objects = [account for account in self._accounts if not all(map(is_pod_resource, account.hard))]
        self._pods = BySpec(self._pod_charge)
        self._charged: dict[tuple[str, str], tuple[_Share, ...]] = {}

    def used(self) -> dict[str, Amounts]:
        """What is used of each quota, by name and resource."""
        return {account.name: {name: account.used(name) for name in account.hard} for account in self._accounts}

    def check(self, found: Any) -> str | None:
        """Say, in the API server's words, why an object may not be created; None if it may.

        The object must have its defaults already, those of the namespace's LimitRanges included.
        """
        reason = self.objection(found)
        return None if reason is None else forbidden(found, reason)

    def objection(self, found: Any) -> str | None:
        """The same without the object's name.

        An object that some quota cannot even measure is told so, whatever it would exceed elsewhere.
        """
        charge = self._charge_of(found)
        if charge.lack:
            return charge.lack
        for account, amounts in charge.shares:
            objection = account.objection(amounts)
            if objection is not None:
                return objection
        return None

    def charge(self, found: Any) -> None:
        """Count an object as existing, in place of what was charged for it before: a pod may end, a claim may grow."""
        if not self._of_objects and not isinstance(found, Pod):
            return
        resource, key = resource_of(found), object_key(found)
        self.release(key, resource)
        shares = self._charge_of(found).shares
        for account, amounts in shares:
            account.add(amounts)
        self._charged[resource, key] = shares

    def release(self, key: str, resource: str = "pods") -> None:
        """Give back what was charged for an object, by namespace/name; nothing if it is not known."""
        for account, amounts in self._charged.pop((resource, key), ()):
            account.subtract(amounts)

    def _charge_of(self, found: Any) -> _Charge:
        if isinstance(found, Pod):
            return self._pods.of(found.spec) if not found.is_terminal else self._pod_charge(found.spec, True)
        if not self._of_objects:
            return _NOTHING
        usage = object_usage(found)
        return _Charge(account.share_of(usage) for account in self._of_objects if _is_about(account, found))

    def _pod_charge(self, spec: PodSpec, is_terminal: bool = False) -> _Charge:
        facts = pod_facts(spec)
        usage = pod_usage(spec, is_terminal=is_terminal)
        accounts = [account for account in self._accounts if facts.is_in(account.scopes)]
        lacks = ((account.name, missing_compute(spec, account.hard)) for account in accounts)
        lack = next((f"failed quota: {name}: {missing}" for name, missing in lacks if missing), "")
        return _Charge((account.share_of(usage) for account in accounts), lack)


def _is_about(account: _Account, found: Any) -> bool:
    if isinstance(found, PersistentVolumeClaim):
        return claim_is_in(found, account.scopes)
    return not account.scopes
