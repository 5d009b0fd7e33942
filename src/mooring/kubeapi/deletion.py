"""How objects end: preconditions, grace, finalizers, and what becomes of those they own."""

from typing import TYPE_CHECKING, NamedTuple

from mooring.kubeapi.metadata import timestamp
from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import Object, bad_request, conflict, success
from mooring.kubeapi.store.records import Record

if TYPE_CHECKING:
    from mooring.kubeapi.api import Api

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
"""The finalizers that the garbage collector waits for."""
_FINALIZER_OF = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": ""}


class Deletion(NamedTuple):
    """What a client asks of a deletion."""

    uid: str | None = None
    resource_version: str | None = None
    grace_period: int | None = None
    propagation: str | None = None


def carry_out(api: "Api", resource: Resource, record: Record, how: Deletion, *, dry_run: bool = False) -> Object:
    """Delete an object as far as its grace and its finalizers let it go."""
    obj = record.decode()
    about = obj["metadata"]
    _check_preconditions(resource, about, how)
    if how.propagation not in (None, *_FINALIZER_OF):
        raise bad_request(
            f'invalid propagation policy "{how.propagation}": needs to be one of Background, Foreground, Orphan'
        )
    strategy = api.strategy_of(resource)
    grace = strategy.grace_period(obj, how.grace_period)
    _set_propagation(about, _propagation(resource, about, how.propagation))
    strategy.begin_deletion(obj)
    now = api.now()
    if about.get("deletionTimestamp"):
        left = about.get("deletionGracePeriodSeconds") or 0
        if grace and grace >= left:
            return obj if how.propagation is None else api.write(resource, record, obj, dry_run=dry_run)
        if grace < left:
            about["deletionGracePeriodSeconds"] = grace
            about["deletionTimestamp"] = timestamp(now + grace)
    else:
        about["deletionTimestamp"] = timestamp(now + grace)
        about["deletionGracePeriodSeconds"] = grace
        if about.get("generation"):
            about["generation"] += 1
    gone = is_finished(resource, obj)
    api.write(resource, record, obj, dry_run=dry_run)
    if gone and not strategy.returns_deleted:
        return success(resource.group, resource.plural, record.name, about["uid"])
    return obj


def is_finished(resource: Resource, obj: Object) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    about = obj["metadata"]
    if not about.get("deletionTimestamp") or about.get("finalizers") or about.get("deletionGracePeriodSeconds"):
        return False
    return resource.key != "namespaces" or not (obj.get("spec") or {}).get("finalizers")


def _check_preconditions(resource: Resource, about: Object, how: Deletion) -> None:
    for what, asked, found in (
        ("UID", how.uid, about["uid"]),
        ("ResourceVersion", how.resource_version, about["resourceVersion"]),
    ):
        if asked and asked != found:
            why = f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}"
            raise conflict(resource.group, resource.plural, about["name"], why)


_ORPHANED_BY_DEFAULT = ("replicationcontrollers", "jobs.batch")
"""Kinds of old versions whose pods stay if nobody says otherwise."""


def _propagation(resource: Resource, about: Object, asked: str | None) -> str | None:
    """What is asked for; else what the finalizers that are there say, else what the kind does by itself."""
    if asked is not None or about.get("deletionTimestamp") or {ORPHAN, FOREGROUND} & set(about.get("finalizers") or ()):
        return asked
    return "Orphan" if resource.key in _ORPHANED_BY_DEFAULT else None


def _set_propagation(about: Object, propagation: str | None) -> None:
    """Put the garbage collector's finalizers as the policy wants them; none said, those that are there stay."""
    if propagation is None:
        return
    kept = [each for each in about.get("finalizers") or [] if each not in (ORPHAN, FOREGROUND)]
    if wanted := _FINALIZER_OF[propagation]:
        kept.append(wanted)
    if kept:
        about["finalizers"] = kept
    else:
        about.pop("finalizers", None)
