"""Checks that the gang dialects share: counts, names within a list, durations, topology levels."""

from collections.abc import Iterable

from mooring.model.durations import EXPECTED_DURATION, parse_duration
from mooring.model.places import show
from mooring.model.topology import is_label_key
from mooring.model.validation_terms import Subject


def check_minimum(subject: Subject, path: str, value: int | None) -> int:
    """A count that has to be given and to be more than nothing, such as minMember."""
    if value is None or value < 1:
        subject.refuse(path, expected="a number of at least 1", found="none" if value is None else show(value))
    return value


def check_count(subject: Subject, path: str, value: int | None, *, least: int = 0) -> None:
    if value is not None and value < least:
        subject.refuse(path, expected=f"a number of at least {least}", found=show(value))


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


def check_level(subject: Subject, path: str, level: str | None) -> None:
    if level is not None and not is_label_key(level):
        subject.refuse(
            path, expected="a topology level: the key of a node label", found=show(level) if level else "none"
        )


def check_duration(subject: Subject, path: str, text: str | None) -> None:
    if text is not None and not parse_duration(text):
        subject.refuse(path, expected=EXPECTED_DURATION, found=show(text) if text else "none")
