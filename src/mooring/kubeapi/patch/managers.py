"""Who manages which fields: what an update and an apply do to it, and where appliers are in each other's way.

The rules are those of Kubernetes' structured merge: whoever writes a field owns it; an update takes what it changes; an
apply owns what it says, shares what it agrees on, and conflicts where it would change what another owns.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mooring.kubeapi.patch.field_sets import NOTHING, FieldSet, Path, path_text
from mooring.kubeapi.patch.merging import merge
from mooring.kubeapi.patch.ownership import Comparison, compare, field_set, with_named_fields, without
from mooring.kubeapi.schemas.types import Type


class Manager(NamedTuple):
    """Who writes: two entries of managedFields with the same one are one."""

    name: str
    operation: str = "Update"
    api_version: str = ""
    """Empty for appliers, who stay the same whichever version they apply."""
    subresource: str = ""

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


@dataclass(frozen=True, slots=True)
class Owned:
    """What a manager owns, in the words of which version, since when."""

    fields: FieldSet
    api_version: str
    time: str = ""


Managers = dict[Manager, Owned]


class Conflict(NamedTuple):
    manager: Manager
    path: Path


class ConflictError(Exception):
    """An apply would change what others own, and was not told to."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        self.conflicts = sorted(conflicts, key=lambda conflict: (str(conflict.manager), conflict.path))
        super().__init__(self._message())

    @property
    def causes(self) -> list[dict[str, str]]:
        return [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {conflict.manager}",
                "field": path_text(conflict.path),
            }
            for conflict in self.conflicts
        ]

    def _message(self) -> str:
        if len(self.conflicts) == 1:
            manager, path = self.conflicts[0]
            return f"Apply failed with 1 conflict: conflict with {manager}: {path_text(path)}"
        lines = []
        for manager in dict.fromkeys(conflict.manager for conflict in self.conflicts):
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {path_text(path)}" for owner, path in self.conflicts if owner == manager]
        return f"Apply failed with {len(self.conflicts)} conflicts: " + "\n".join(lines)


def _drop_ignored(fields: FieldSet, ignored: tuple[Path, ...]) -> FieldSet:
    if not ignored or not fields:
        return fields
    if all(len(prefix) == 1 for prefix in ignored):
        first = {prefix[0] for prefix in ignored}
        return frozenset(path for path in fields if path[0] not in first)
    return frozenset(path for path in fields if not any(path[: len(prefix)] == prefix for prefix in ignored))


def _settle(managers: Managers, changes: Comparison, writer: Manager, *, force: bool) -> Managers:
    """Take from all others what was changed or removed; raises ConflictError unless forced."""
    taken = changes.modified | changes.added
    conflicts = [
        Conflict(manager, path)
        for manager, owned in managers.items()
        if manager != writer
        for path in owned.fields & taken
    ]
    if conflicts and not force:
        raise ConflictError(conflicts)
    found: Managers = {}
    for manager, owned in managers.items():
        left = owned.fields if manager == writer else owned.fields - taken - changes.removed
        if left:
            found[manager] = owned if left == owned.fields else replace(owned, fields=left)
    return found


def update(
    old: Any, new: Any, type_: Type, managers: Managers, writer: Manager, *, now: str, ignored: tuple[Path, ...] = ()
) -> Managers:
    """What becomes of ownership when somebody writes an object as a whole."""
    changes = Comparison(*(_drop_ignored(fields, ignored) for fields in compare(old, new, type_)))
    found = _settle(managers, changes, Manager("", "None"), force=True)
    taken = changes.modified | changes.added
    if taken:
        held = found[writer].fields if writer in found else NOTHING
        found[writer] = Owned(held | taken, writer.api_version, now)
    return found


def apply(
    live: Any,
    applied: Any,
    type_: Type,
    managers: Managers,
    writer: Manager,
    *,
    api_version: str,
    now: str,
    force: bool = False,
    ignored: tuple[Path, ...] = (),
) -> tuple[Any, Managers]:
    """The object after an apply, and who owns what of it then; raises ConflictError."""
    merged = merge(live, applied, type_)
    last = managers.get(writer)
    given = _drop_ignored(field_set(applied, type_), ignored)
    found = {**managers, writer: Owned(given, api_version, last.time if last is not None else "")}
    if last is not None and last.fields:
        merged = _prune(merged, type_, found, last.fields)
    changes = Comparison(*(_drop_ignored(fields, ignored) for fields in compare(live, merged, type_)))
    found = _settle(found, changes, writer, force=force)
    if writer in found and merged != live:
        found[writer] = replace(found[writer], time=now)
    return merged, found


def _prune(merged: Any, type_: Type, managers: Managers, last: FieldSet) -> Any:
    """Remove what the applier said the last time, does not say any more, and nobody else owns."""
    last = with_named_fields(last, type_)
    everything = with_named_fields(field_set(merged, type_), type_)
    managed = with_named_fields(frozenset().union(*(owned.fields for owned in managers.values())), type_)
    pruned = without(merged, type_, last)
    gone = everything - with_named_fields(field_set(pruned, type_), type_) - managed
    pruned = without(merged, type_, gone)
    gone = (everything - with_named_fields(field_set(pruned, type_), type_)) & last
    return without(merged, type_, gone)
