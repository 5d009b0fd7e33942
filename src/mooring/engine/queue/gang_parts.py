"""Gangs of gangs: which of the gangs inside one lack something, and which are to be placed together."""

from collections.abc import Container, Mapping
from typing import Any

from mooring.model.keys import GangKey, PodKey
from mooring.state.gangs import GangRecord, GangTable


def lacking(record: GangRecord, waiting: Mapping[PodKey, Any], table: GangTable) -> str:
    """What a gang lacks to be whole once all its members that wait are placed; nothing if it lacks nothing."""
    if record.gang is None:
        return f"gang {record.key.partition('/')[2]} is not declared"
    if record.gang.of_gangs:
        problems = [lacking(inside, waiting, table) for inside in table.inside(record)]
        needed = record.gang.minimum
        if problems.count("") >= needed:
            return ""
        if len(problems) < needed:
            return f"gang {record.gang.name} waits for its parts: {len(problems)} of {needed} exist"
        return next(problem for problem in problems if problem)
    members = record.members
    present = [*record.bound(), *(members[key] for key in members.keys() & waiting.keys())]
    missing = record.lacks(present)
    if not missing:
        return ""
    needed = max(record.gang.minimum, sum(role.minimum for role in record.gang.roles))
    exist = len(present) + len(record.done)
    if exist < needed:
        return f"gang {record.gang.name} waits for its members: {exist} of {needed} exist"
    by_role = record.by_role(found.key for found in present)
    short = next(role for role in record.gang.roles if by_role[role.name] < role.minimum)
    has = by_role[short.name]
    return f"gang {record.gang.name} waits for its members: {has} of {short.minimum} {short.name} members exist"


def complete_parts(record: GangRecord, waiting: Mapping[PodKey, Any], table: GangTable) -> list[GangRecord]:
    """The gangs of pods inside a gang (itself if it is one) that run whole or can, with all that they are a part of."""
    if lacking(record, waiting, table):
        return []
    if record.gang is None or not record.gang.of_gangs:
        return [record]
    return [part for inside in table.inside(record) for part in complete_parts(inside, waiting, table)]


def parts_to_start(
    record: GangRecord, waiting: Mapping[PodKey, Any], table: GangTable, besides: Container[GangKey] = ()
) -> list[GangRecord]:
    """The gangs of pods without which a gang is not whole: those that have begun to run, then as many as it takes.

    A gang of gangs that is whole grows by one of these. Nothing if all that could run does. `besides` are the keys of
    gangs that are to be left out, where others would do.
    """
    if lacking(record, waiting, table):
        return []
    if record.gang is None or not record.gang.of_gangs:
        return [] if record.is_whole() else [record]
    inside = table.inside(record)
    whole = [part for part in inside if table.is_whole(part)]
    ready = [part for part in inside if part not in whole and not lacking(part, waiting, table)]
    begun = [part for part in ready if any(leaf.bound() for leaf in table.parts_of(part))]
    fresh = [part for part in ready if part not in begun and part.key not in besides]
    count = record.gang.minimum - len(whole) - len(begun)
    if len(fresh) < count:
        return []
    chosen = begun + fresh[: max(count, 0)] or fresh[:1]
    if not chosen:
        grown = (parts_to_start(part, waiting, table, besides) for part in whole)
        return next((found for found in grown if found), [])
    return [leaf for part in chosen for leaf in parts_to_start(part, waiting, table, besides)]
