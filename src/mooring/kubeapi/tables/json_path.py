"""JSONPath as printer columns and scale subresources use it: fields, indexes, wildcards, and filters by equality."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\]\\])+)
    | \[ (?P<index>-?\d+) \]
    | \[ (?P<all>\*) \]
    | \[ ['"] (?P<quoted>[^'"]*) ['"] \]
    | \[\?\( \s* @(?P<path>(?:\.[\w-]+)+) \s* == \s* (?P<value>"[^"]*"|'[^']*'|[\w.-]+) \s* \)\]""",
    re.VERBOSE,
)
Step = Callable[[Any], Iterable[Any]]


class JsonPathError(ValueError):
    """A path that cannot be followed."""


@lru_cache(maxsize=4096)
def compile_path(text: str) -> tuple[Step, ...]:
    """Read a path such as `.status.conditions[?(@.type=="Ready")].status`; raises JsonPathError."""
    path = text.strip()
    if path.startswith("{") and path.endswith("}"):
        path = path[1:-1]
    path = path.removeprefix("$")
    if path in ("", "."):
        return ()
    path = path if path.startswith((".", "[")) else f".{path}"
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise JsonPathError(f"unrecognized character in action: {path[at:]}")
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    name = match["field"] if match["field"] is not None else match["quoted"]
    if name == "*" or match["all"]:
        return _every
    if name is not None:
        field = name.replace("\\", "")
        return lambda value: (value[field],) if isinstance(value, dict) and field in value else ()
    if match["index"] is not None:
        index = int(match["index"])
        return lambda value: value[index : index + 1 or None] if isinstance(value, list) else ()
    wanted, path = match["value"].strip("\"'"), compile_path(match["path"])
    return lambda value: (
        item for item in _every(value) if any(_text(found) == wanted for found in _follow(item, path))
    )


def _every(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        return value
    return value.values() if isinstance(value, dict) else ()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _follow(value: Any, steps: tuple[Step, ...]) -> list[Any]:
    found = [value]
    for step in steps:
        found = [inner for each in found for inner in step(each)]
    return found


def find_all(value: Any, path: str) -> list[Any]:
    """All values at a path; none where there is nothing."""
    return _follow(value, compile_path(path))
