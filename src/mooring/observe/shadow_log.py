"""What a shadow decided beside what happened, a line of JSON each: written by `mooring run --shadow`, read by `mooring
shadow report`.

    {"kind": "Pod", "time": 1767225600.2, "pod": "default/web-0", "outcome": "same", "node": "n7", "bound": "n7", ...}
"""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec

from mooring.errors import InputError
from mooring.observe.decision_log import DecisionLog


class Outcome(StrEnum):
    """How our decision on a pod compares with what the present scheduler did."""

    SAME = "same"
    """Both chose the same node."""
    TIE = "tie"
    """The present scheduler chose another node that scored equally for us."""
    OTHER = "other"
    """It chose another node that scored lower for us, or that one of our filters refused."""
    BEFORE_US = "before-us"
    """It bound the pod before we decided; `hindsight` says how its node compares with the one that we would choose."""
    UNSCHEDULABLE = "unschedulable-here"
    """It bound a pod for which we had found no node."""
    PREEMPTION = "preemption-here"
    """It bound a pod for which we were about to evict others."""
    UNCONFIRMED = "unconfirmed"
    """We chose a node, and it has not bound the pod within the time that a shadow waits."""


class Side(StrEnum):
    """Which of the two schedulers did something."""

    BOTH = "both"
    OURS = "ours"
    THEIRS = "theirs"


class _Line(msgspec.Struct, rename="camel", omit_defaults=True, tag_field="kind", kw_only=True):
    time: float
    """Seconds since 1970."""


class Started(_Line, tag="Start", kw_only=True):
    """A shadow began to follow a cluster."""

    server: str
    schedulers: list[str]
    version: str = ""


class ComparedPod(_Line, tag="Pod", kw_only=True):
    """One pod: our decision, and what happened."""

    pod: str
    """namespace/name"""
    outcome: Outcome
    uid: str = ""
    node: str = ""
    """The node that we chose."""
    bound: str = ""
    """The node that the present scheduler chose."""
    difference: int | None = None
    """By how much our node's total score exceeds the other's, where the other passed our filters."""
    plugins: dict[str, int] = {}
    """By plugin, its part of that difference."""
    refused_by: list[str] = []
    """Our filters that refused the other node, with their reasons."""
    hindsight: str = ""
    """Of a pod that was bound before we decided: same, tie or other, on the state just before."""
    is_drift: bool = False
    """Whether the other node is as good as the best once those decisions of ours are left out that were not yet
    confirmed: then the schedulers differ in earlier decisions, not in this one."""
    message: str = ""
    deciding_seconds: float | None = None
    """The processor's time for our decision."""
    ours_seconds: float | None = None
    """From the moment at which the watch showed the pod until we decided."""
    theirs_seconds: float | None = None
    """From the same moment until the watch showed the pod bound."""


class ComparedPreemption(_Line, tag="Preemption", kw_only=True):
    """A pod that one of the schedulers evicted, or would have evicted, for another."""

    victim: str
    side: Side
    preemptor: str = ""
    """Known of our own decisions only."""
    node: str = ""


class ComparedAdmission(_Line, tag="Admission", kw_only=True):
    """A workload that one of the schedulers gave quota, or would have given."""

    workload: str
    side: Side
    queue: str = ""
    flavors: dict[str, str] = {}
    """By pod set and resource (`main/cpu`), the flavor that we chose."""
    other_flavors: dict[str, str] = {}
    """Those of the other scheduler, where they differ."""
    message: str = ""


class OtherDecision(_Line, tag="Decision", kw_only=True):
    """Anything else that we would have done: suspend a workload, resize a pod, cut a GPU."""

    decision: str
    about: str
    message: str = ""


ShadowLine: TypeAlias = Started | ComparedPod | ComparedPreemption | ComparedAdmission | OtherDecision

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ShadowLine).decode


class ShadowLog(DecisionLog):
    """Appends comparisons to a file; nothing without a name."""

    def note(self, line: ShadowLine) -> None:
        if self.is_on:
            self._write(_encode(line) + b"\n")


def read_shadow_log(path: Path) -> Iterator[ShadowLine]:
    """Read all lines of a shadow's log, in order; a last line that is still being written is left out."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: expected the log of a shadow, found {str(error.strerror).lower()}") from error
    for number, line in enumerate(lines, 1):
        try:
            yield _decode(line)
        except msgspec.ValidationError as error:
            raise InputError(f"{path}: line {number}: expected a line of a shadow's log, found: {error}") from error
        except msgspec.DecodeError as error:
            if number == len(lines) and number > 1:
                return
            raise InputError(f"{path}: line {number}: expected a line of JSON, found something else") from error
