"""Checks that the gang dialects share: counts, names within a list, what starts after what, durations, levels."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from mooring.model.places import show
from mooring.model.topology.requests import is_label_key
from mooring.model.validation.terms import Subject
from mooring.model.values.durations import EXPECTED_DURATION, parse_duration

MOST_PODS = 1_000_000
LARGEST_COUNT = 2**31 - 1
"""Counts are int32 in all of the dialects."""
_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


def check_minimum(subject: Subject, path: str, value: int | None) -> int:
    """A count that has to be given and to be more than nothing, such as minMember."""
    if value is None or value < 1:
        subject.refuse(path, expected="a number of at least 1", found="none" if value is None else show(value))
    check_at_most(subject, path, value, LARGEST_COUNT, "the largest count")
    return value


def check_count(subject: Subject, path: str, value: int | None, *, least: int = 0) -> None:
    if value is None:
        return
    if value < least:
        subject.refuse(path, expected=f"a number of at least {least}", found=show(value))
    check_at_most(subject, path, value, LARGEST_COUNT, "the largest count")


def check_pods(subject: Subject, path: str, pods: int) -> None:
    """How many pods a workload makes in all: a slip of the hand must not fill the memory."""
    if pods > MOST_PODS:
        subject.refuse(path, expected=f"at most {MOST_PODS:,} pods in all", found=f"{pods:,}")


def check_at_most(subject: Subject, path: str, value: int, most: int, why: str) -> None:
    if value > most:
        subject.refuse(path, expected=f"at most {most}, {why}", found=show(value))


def check_names(subject: Subject, path: str, names: Iterable[str]) -> None:
    """Names of the parts of a list: each given, each once."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if not name:
            subject.refuse(f"{path}[{index}].name", expected="a name", found="none")
        if name in seen:
            subject.refuse(f"{path}[{index}].name", expected="a name that is not taken", found=show(name))
        seen.add(name)


def check_dns_label(subject: Subject, path: str, name: str) -> None:
    """A name that becomes a part of the names of pods."""
    if not _DNS_LABEL.fullmatch(name):
        expected = "lower case letters, digits and dashes, at most 63"
        subject.refuse(path, expected=expected, found=show(name) if name else "none")


def check_order(
    subject: Subject, path_of: Callable[[str], str], earlier_of: Mapping[str, Sequence[str]], part: str
) -> None:
    """Parts of a whole that start after others: each after some that there are, none after itself by any way.

    `path_of` finds the field in which a part names those that start before it; `part` is what a part is called.
    """
    for name, earlier in earlier_of.items():
        for other in earlier:
            if other not in earlier_of:
                expected = f"the name of a {part} ({', '.join(sorted(earlier_of))})"
                subject.refuse(path_of(name), expected=expected, found=show(other))
    try:
        TopologicalSorter(earlier_of).prepare()
    except CycleError as error:
        cycle = error.args[1][::-1]  # it comes from first to last; each names the one before it
        expected = f"a {part} that does not wait for this one"
        subject.refuse(path_of(cycle[0]), expected=expected, found=f"a cycle, {' -> '.join(cycle)}")


def check_level(subject: Subject, path: str, level: str | None) -> None:
    if level is not None and not is_label_key(level):
        subject.refuse(
            path, expected="a topology level: the key of a node label", found=show(level) if level else "none"
        )


def check_duration(subject: Subject, path: str, text: str | None) -> None:
    if text is not None and not parse_duration(text):
        subject.refuse(path, expected=EXPECTED_DURATION, found=show(text) if text else "none")
