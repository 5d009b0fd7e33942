"""Koordinator's gangs: Coscheduling's, and what its own annotations add, on a PodGroup or on the pods themselves.

A gang is named by Coscheduling's labels or by `gang.scheduling.koordinator.sh/name`. Gangs that one another's `groups`
name start together, at one moment.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import msgspec

from mooring.model.api.pods import Pod
from mooring.model.gangs.checks import check_duration
from mooring.model.gangs.gang import Gang, gang_key
from mooring.model.gangs.membership import COSCHEDULING_KIND, KOORDINATOR_MINIMUM, KOORDINATOR_PREFIX
from mooring.model.keys import GangKey
from mooring.model.places import Place, show
from mooring.model.validation.terms import Subject, check_choice

SCHEDULER = "koord-scheduler"
TOTAL = f"{KOORDINATOR_PREFIX}/total-number"
MODE = f"{KOORDINATOR_PREFIX}/mode"
GROUPS = f"{KOORDINATOR_PREFIX}/groups"
MATCH_POLICY = f"{KOORDINATOR_PREFIX}/match-policy"
MATCH_POLICY_ALIAS = "pod-group.scheduling.sigs.k8s.io/match-policy"
WAITING_TIME = f"{KOORDINATOR_PREFIX}/waiting-time"

MODES = ("Strict", "NonStrict")
ONCE_SATISFIED = "once-satisfied"
MATCH_POLICIES = ("only-waiting", "waiting-and-running", ONCE_SATISFIED)
GANG_GROUP_KIND = "GangGroup.scheduling.koordinator.sh"

_KEYS = frozenset({KOORDINATOR_MINIMUM, TOTAL, MODE, GROUPS, MATCH_POLICY, MATCH_POLICY_ALIAS, WAITING_TIME})
_EXPECTED_GROUPS = 'a list of gangs in JSON, such as ["default/leader", "default/workers"]'


def check_koordinator(subject: Subject, path: str, annotations: Mapping[str, str]) -> None:
    """Check what annotations of a pod, a template or a PodGroup say in Koordinator's words."""
    if _KEYS.isdisjoint(annotations):
        return
    for key in (KOORDINATOR_MINIMUM, TOTAL):
        text = annotations.get(key)
        if text is not None and not (text.isascii() and text.isdigit() and 1 <= int(text) < 2**31):
            subject.refuse(f"{path}.{key}", expected="a whole number of at least 1", found=show(text))
    for key, choices in ((MODE, MODES), (MATCH_POLICY, MATCH_POLICIES), (MATCH_POLICY_ALIAS, MATCH_POLICIES)):
        if annotations.get(key):
            check_choice(subject, f"{path}.{key}", annotations[key], choices)
    check_duration(subject, f"{path}.{WAITING_TIME}", annotations.get(WAITING_TIME) or None)
    if gang_group(annotations) is None:
        subject.refuse(f"{path}.{GROUPS}", expected=_EXPECTED_GROUPS, found=show(annotations[GROUPS]))


def gang_group(annotations: Mapping[str, str]) -> tuple[str, ...] | None:
    """The gangs (namespace/name) that start together, in order; none without a group, None if it cannot be read."""
    text = annotations.get(GROUPS)
    if not text:
        return ()
    try:
        names = msgspec.json.decode(text, type=list[str])
    except msgspec.DecodeError:
        return None
    is_good = all(name.count("/") == 1 and all(name.split("/")) for name in names)
    return tuple(sorted(set(names))) if is_good else None


def is_koordinators(pod: Pod) -> bool:
    annotations = pod.metadata.annotations or {}
    return pod.spec.scheduler_name == SCHEDULER or any(key.startswith(KOORDINATOR_PREFIX) for key in annotations)


def with_koordinator(
    gangs: Mapping[GangKey, Gang],
    on_groups: Mapping[GangKey, Mapping[str, str]],
    first_of: Mapping[GangKey, Pod],
    place_of: Callable[[Pod], Place],
) -> Iterator[Gang]:
    """Gangs of Coscheduling with what Koordinator's annotations say of them, and one for each group of gangs.

    `on_groups` are the annotations of PodGroups by the gang's key, `first_of` a member of each gang. What pods say goes
    before what their PodGroup says.
    """
    said: dict[GangKey, Mapping[str, str]] = {}
    for key in gangs:
        if key.startswith(f"{COSCHEDULING_KIND}/"):
            pod, annotations = first_of.get(key), dict(on_groups.get(key) or {})
            is_own = any(name.startswith(KOORDINATOR_PREFIX) for name in annotations)
            if pod is not None and is_koordinators(pod):
                is_own = True
                annotations |= pod.metadata.annotations or {}
            if is_own:
                said[key] = annotations
    group_of = _groups(said, first_of, place_of)
    for key, gang in gangs.items():
        if key not in said:
            yield gang
            continue
        policy = said[key].get(MATCH_POLICY) or said[key].get(MATCH_POLICY_ALIAS) or ONCE_SATISFIED
        group = group_of.get(key)
        parent = gang.parent if group is None else _group_key(group)
        yield replace(gang, once_satisfied=policy == ONCE_SATISFIED, parent=parent)
    for group in dict.fromkeys(group_of.values()):
        yield Gang(key=_group_key(group), name=", ".join(group), minimum=len(group), of_gangs=True)


def _groups(
    said: Mapping[GangKey, Mapping[str, str]], first_of: Mapping[GangKey, Pod], place_of: Callable[[Pod], Place]
) -> dict[GangKey, tuple[str, ...]]:
    """The group of each gang that names one, or that is named by another that does."""
    found: dict[GangKey, tuple[str, ...]] = {}
    for key, annotations in said.items():
        group = gang_group(annotations)
        if group is None:  # of a template that nobody has looked at before
            pod = first_of[key]
            field = f"metadata.annotations.{GROUPS}"
            raise place_of(pod).error(field, expected=_EXPECTED_GROUPS, found=show(annotations[GROUPS]), subject=pod)
        if len(group) > 1:
            for name in group:
                found.setdefault(gang_key(COSCHEDULING_KIND, *name.split("/")), group)
            found[key] = group
    return found


def _group_key(group: tuple[str, ...]) -> GangKey:
    namespace, _, name = group[0].partition("/")
    return gang_key(GANG_GROUP_KIND, namespace, ",".join((name, *group[1:])))
