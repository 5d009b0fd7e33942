"""metadata.managedFields: read, write, and keep up to date with every write of an object."""

import json
from collections.abc import Mapping
from typing import Any

from mooring.kubeapi.patch.field_sets import FieldSet, Path, from_fields_v1, to_fields_v1
from mooring.kubeapi.patch.managers import ConflictError, Manager, Managers, Owned, apply, update
from mooring.kubeapi.patch.ownership import field_set
from mooring.kubeapi.schemas.types import Type

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
BEFORE_FIRST_APPLY = "before-first-apply"
ANCIENT_CHANGES = "ancient-changes"
MOST_UPDATE_MANAGERS = 10
"""Entries of updates; the oldest beyond that become one, as in Kubernetes."""

_STRIPPED: frozenset[Path] = frozenset(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",)]
    + [
        ("f:metadata", f"f:{name}")
        for name in (
            "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
            "resourceVersion",
        )
    ]
)  # fmt: skip
"""What nobody owns: identity, and what the server writes."""

Object = dict[str, Any]


def read_managers(entries: Any) -> Managers:
    found: Managers = {}
    for entry in entries or ():
        if isinstance(entry, dict) and entry.get("operation") in ("Apply", "Update"):
            version = entry.get("apiVersion", "")
            operation = entry["operation"]
            manager = Manager(
                entry.get("manager", ""),
                operation,
                version if operation == "Update" else "",
                entry.get("subresource", ""),
            )
            found[manager] = Owned(from_fields_v1(entry.get("fieldsV1")), version, entry.get("time", ""))
    return found


def write_managers(managers: Managers) -> list[Object]:
    """Entries in Kubernetes' order: appliers first, then by time, then by name."""

    def order(item: tuple[Manager, Owned]) -> tuple[str, ...]:
        manager, owned = item
        return manager.operation, owned.time, manager.name, owned.api_version, manager.subresource

    found = []
    for manager, owned in sorted(managers.items(), key=order):
        entry: Object = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": owned.api_version,
            "time": owned.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields_v1(owned.fields),
        }
        if manager.subresource:
            entry["subresource"] = manager.subresource
        found.append({name: value for name, value in entry.items() if value != ""})
    return found


def _without_managed_fields(value: Mapping[str, Any]) -> Object:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return dict(value)
    return {**value, "metadata": {name: inner for name, inner in metadata.items() if name != "managedFields"}}


def _with_managers(value: Object, managers: Managers) -> Object:
    stripped = {}
    for manager, owned in managers.items():
        left = owned.fields - _STRIPPED
        if left:
            stripped[manager] = Owned(left, owned.api_version, owned.time)
    entries = write_managers(_capped(stripped))
    metadata = {name: inner for name, inner in value.get("metadata", {}).items() if name != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**value, "metadata": metadata}


def _capped(managers: Managers) -> Managers:
    updaters = sorted((owned.time, manager) for manager, owned in managers.items() if manager.operation == "Update")
    if len(updaters) <= MOST_UPDATE_MANAGERS:
        return managers
    found = dict(managers)
    fields: FieldSet = frozenset()
    ancient: Owned | None = None
    for _, manager in updaters[: len(updaters) - MOST_UPDATE_MANAGERS + 1]:
        ancient = found.pop(manager)
        fields |= ancient.fields
    assert ancient is not None
    version = ancient.api_version
    found[Manager(ANCIENT_CHANGES, "Update", version)] = Owned(fields, version, ancient.time)
    return found


def _managers_of(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Managers:
    """Those that the new object names, or else the old one; a single empty entry means to start anew."""
    given = (new or {}).get("metadata", {}).get("managedFields")
    if given and all(not entry for entry in given):
        return {}
    return read_managers(given or (old or {}).get("metadata", {}).get("managedFields"))


def track(
    old: Object | None,
    new: Object,
    type_: Type,
    *,
    manager: str,
    now: str,
    empty: Object | None = None,
    subresource: str = "",
    ignored: tuple[Path, ...] = (),
) -> Object:
    """The new object with managedFields that say what its writer changed.

    `empty` is what creation is compared with: the canonical form of an object that says nothing.
    """
    version = new.get("apiVersion", "")
    before = _without_managed_fields(old) if old is not None else (empty or {})
    after = _without_managed_fields(new)
    writer = Manager(manager, "Update", version, subresource)
    managers = update(before, after, type_, _managers_of(old, new), writer, now=now, ignored=ignored)
    return _with_managers(after, managers)


def apply_configuration(
    live: Object | None,
    applied: Object,
    type_: Type,
    *,
    manager: str,
    now: str,
    empty: Object | None = None,
    subresource: str = "",
    force: bool = False,
    ignored: tuple[Path, ...] = (),
) -> Object:
    """The object after a server-side apply, managedFields included; raises ConflictError."""
    version = applied.get("apiVersion", "")
    before = _without_managed_fields(live) if live is not None else (empty or {})
    managers = read_managers((live or {}).get("metadata", {}).get("managedFields"))
    if live is not None and not managers:
        first = Manager(BEFORE_FIRST_APPLY, "Update", version)
        managers = update(empty or {}, before, type_, {}, first, now=now)
    writer = Manager(manager, "Apply", "", subresource)
    given = _without_managed_fields(applied)
    options: dict[str, Any] = {"api_version": version, "now": now, "ignored": ignored}
    try:
        merged, managers = apply(before, given, type_, managers, writer, force=force, **options)
    except ConflictError as conflict:
        if manager != KUBECTL or not _were_applied(conflict, before, type_):
            raise
        merged, managers = apply(before, given, type_, managers, writer, force=True, **options)
    return _with_managers(_with_last_applied(merged, given, manager), managers)


def _were_applied(conflict: ConflictError, live: Object, type_: Type) -> bool:
    """Whether all that is in the way is what kubectl itself applied from the client's side before."""
    text = (live.get("metadata", {}).get("annotations") or {}).get(LAST_APPLIED)
    try:
        last = json.loads(text) if text else None
    except ValueError:
        return False
    if not isinstance(last, dict):
        return False
    given = field_set(last, type_)
    return all(path in given for _, path in conflict.conflicts)


def _with_last_applied(merged: Object, applied: Object, manager: str) -> Object:
    """Keep the annotation of client-side apply up to date where it is, so that people can go back to that."""
    annotations = merged.get("metadata", {}).get("annotations") or {}
    if manager != KUBECTL or LAST_APPLIED not in annotations:
        return merged
    text = json.dumps(applied, separators=(",", ":"), sort_keys=True) + "\n"
    return {**merged, "metadata": {**merged["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}
