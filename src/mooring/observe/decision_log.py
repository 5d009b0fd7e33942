"""Every decision as a line of JSON: written by `mooring run --decision-log FILE`, read by `mooring explain --log FILE`.

A line says when, what kind of decision, of whom, and what became of it:

    {"time": 1767225600.1, "kind": "Bind", "pod": "default/web-0", "node": "n7"}
    {"time": 1767225600.2, "kind": "Bound", "pod": "default/web-0", "node": "n7"}
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from mooring.errors import InputError
from mooring.model.decisions import Decision

_encode = msgspec.json.Encoder().encode
_EMPTY: tuple[Any, ...] = ("", [], (), {}, None)
"""What need not be written down."""
_OF_A_JOB = {
    "workload": re.compile(r"(?P<kind>[a-z]+)-(?P<name>.+)-[0-9a-f]{5}"),
    "pod": re.compile(r"(?P<name>.+?)(-\d+)?-[bcdfghjklmnpqrstvwxz2456789]{5}"),
}
"""How Kueue names the Workload of a job, and Kubernetes the pods of one."""


MOST_BYTES = 256 << 20
"""How long a file gets before another is begun; the one before is kept as `FILE.1`."""


class DecisionLog:
    """Appends lines to a file, or to standard output by the name `-`; nothing without a name.

    The file is its owner's alone: it names pods, namespaces and nodes.
    """

    def __init__(self, path: str = "", most_bytes: int = MOST_BYTES) -> None:
        self._path, self._most_bytes = path, most_bytes
        self._file: BinaryIO | None = None
        if path:
            self._file = sys.stdout.buffer if path == "-" else _open(path)

    @property
    def is_on(self) -> bool:
        return self._file is not None

    def decided(self, now: float, decisions: list[Decision]) -> None:
        """Note what a cycle decided."""
        if self._file is None or not decisions:
            return
        lines = [_encode({"time": round(now, 6), "kind": type(found).__name__, **_facts(found)}) for found in decisions]
        self._write(b"\n".join(lines) + b"\n")

    def became(self, now: float, kind: str, **facts: str) -> None:
        """Note what became of a decision."""
        if self._file is not None:
            said = {name: value for name, value in facts.items() if value}
            self._write(_encode({"time": round(now, 6), "kind": kind, **said}) + b"\n")

    def _write(self, lines: bytes) -> None:
        assert self._file is not None
        self._file.write(lines)
        self._file.flush()  # nothing else may be decided for long
        if self._file is not sys.stdout.buffer and self._file.tell() > self._most_bytes:
            self._file.close()
            os.replace(self._path, f"{self._path}.1")
            self._file = _open(self._path)

    def close(self) -> None:
        if self._file is not None:
            self._file.flush()
            if self._file is not sys.stdout.buffer:
                self._file.close()


def _open(path: str) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "ab")


def _facts(decision: Decision) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(decision)
    return {name: value for name, value in facts.items() if value not in _EMPTY}


def read_log(path: Path, about: str) -> Iterator[dict[str, Any]]:
    """The lines about a pod, a workload or a job (name, namespace/name, for a job also job/name), and of what was done
    for it, in order."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: expected a decision log, found {str(error.strerror).lower()}") from error
    for number, line in enumerate(lines, 1):
        try:
            found = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            if number == len(lines):  # it is being written
                return
            raise InputError(f"{path}: line {number}: expected a line of JSON, found something else") from error
        if any(_is(found.get(name), about) for name in ("pod", "workload", "gang", "preemptor")):
            yield found


def read_between(path: Path, start: float, end: float, most: int) -> list[dict[str, Any]]:
    """The last lines of the time after `start` and up to `end`, at most so many, in order; of a file that was begun
    anew meanwhile also those before."""
    lines: list[bytes] = []
    for each in (Path(f"{path}.1"), path):
        try:
            lines += each.read_bytes().splitlines()
        except FileNotFoundError:
            if each == path:
                raise InputError(f"{path}: expected a decision log, found no such file") from None
        except OSError as error:
            raise InputError(f"{path}: expected a decision log, found {str(error.strerror).lower()}") from error
    found: list[dict[str, Any]] = []
    for line in reversed(lines):
        try:
            decision = msgspec.json.decode(line)
            time = decision["time"]
        except (msgspec.DecodeError, KeyError, TypeError):  # it is being written
            continue
        if start < time <= end:
            found.append(decision)
        if len(found) == most or time <= start:
            break
    return found[::-1]


def _is(name: Any, about: str) -> bool:
    if not isinstance(name, str):
        return False
    namespace, _, own = name.rpartition("/")
    return about in (name, own) or any(_is_of_job(own, namespace, form, about) for form in _OF_A_JOB.values())


def _is_of_job(own: str, namespace: str, form: re.Pattern[str], about: str) -> bool:
    """Whether somebody's name shows that it is of a job that is asked about: `train`, `job/train`, `team-a/train`."""
    found = form.fullmatch(own)
    before, _, last = about.rpartition("/")
    if found is None or found["name"] != last:
        return False
    kind = found.groupdict().get("kind", "job")
    return before.lower() in ("", namespace, kind, f"{namespace}/{kind}")
