"""How a simulated container ends, read from its image and command: nothing is run.

`sleep 30`, `exit 3`, `/bin/false` and small shell scripts made of these are understood. What is not understood has no
ending of its own (`UNKNOWN`): its pod decides.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

_SHELLS = ("sh", "bash", "ash", "dash")
_SHORT_PROGRAMS = (
    "true",
    "echo",
    "printf",
    "ls",
    "cat",
    "date",
    "hostname",
    "env",
    "printenv",
    "touch",
    "mkdir",
    "id",
    "pwd",
)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SLEEP = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_ODD_INDEX = re.compile(r"JOB_COMPLETION_INDEX\}?\s*%\s*2")
_COIN = re.compile(r"exit\s+\$\(\(\s*\$?RANDOM\s*/\s*16384\s*\)\)")
_FOREVER = re.compile(r"(?:while\s+(?:true|:|sleep\b[^;]*)|until\s+false|tail\s+-[fF]\s)")
_SEPARATOR = re.compile(r"\s*(?:;|&&|\n)\s*")


@dataclass(frozen=True, slots=True)
class Ending:
    """When and how a container ends by itself; `seconds` is None where its command does not tell."""

    seconds: float | None = None
    exit_code: int = 0
    odd_indexes_fail: bool = False
    failure_probability: float = 0.0


UNKNOWN = Ending()
ENDLESS = Ending(math.inf)
SHORTLY = 0.5
"""Seconds that a program takes of which we know that it does little."""


def ending_of(image: str, command: Sequence[str]) -> Ending:
    """Read how a container ends from its image and its command with arguments."""
    if image_name(image) == "pause":
        return ENDLESS
    if not command:
        return UNKNOWN
    program = command[0].rsplit("/", 1)[-1]
    if program in _SHELLS and len(command) > 2 and command[1].startswith("-") and "c" in command[1]:
        return _ending_of_script(command[2])
    return _ending_of_words(program, command[1:])


def image_name(image: str) -> str:
    """The last part of an image's path, without tag and digest.

    >>> image_name("registry.k8s.io/pause:3.10")
    'pause'
    """
    return image.rsplit("/", 1)[-1].split("@", 1)[0].split(":", 1)[0]


def _ending_of_words(program: str, arguments: Sequence[str]) -> Ending:
    if program == "sleep":
        return Ending(_slept(arguments))
    if program == "false":
        return Ending(SHORTLY, exit_code=1)
    if program in _SHORT_PROGRAMS:
        return Ending(SHORTLY)
    return UNKNOWN


def _slept(arguments: Sequence[str]) -> float | None:
    if "infinity" in arguments or "inf" in arguments:
        return math.inf
    found = [_SLEEP.fullmatch(argument) for argument in arguments]
    if not found or None in found:
        return None
    return sum((float(part[1]) * _UNITS[part[2]] for part in found if part), 0.0)


def _ending_of_script(script: str) -> Ending:
    """Add up the sleeps of a script up to its first exit; a statement that is not understood makes all of it so."""
    if _FOREVER.search(script):
        return ENDLESS
    if _ODD_INDEX.search(script):
        return Ending(SHORTLY, odd_indexes_fail=True)
    if _COIN.search(script):
        return Ending(SHORTLY, failure_probability=0.5)
    ending = Ending(0.0)
    for statement in filter(None, _SEPARATOR.split(script.strip())):
        words = statement.split()
        if words[0] == "exit":
            return replace(ending, seconds=ending.seconds or SHORTLY, exit_code=_exit_code(words[1:], ending.exit_code))
        if words[0] in ("set", "trap"):
            continue
        one = _ending_of_words(words[0].rsplit("/", 1)[-1], words[1:])
        if one.seconds is None or ending.seconds is None:
            return UNKNOWN
        ending = Ending(ending.seconds + (one.seconds if words[0].endswith("sleep") else 0.0), one.exit_code)
    return replace(ending, seconds=ending.seconds or SHORTLY)


def _exit_code(words: Sequence[str], before: int) -> int:
    return int(words[0]) % 256 if words and words[0].isdecimal() else before
