"""CEL's functions of strings and regular expressions."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from mooring.model.cel.costs import LARGEST
from mooring.model.cel.functions import BOOL, INT, LIST, STRING, Overload
from mooring.model.cel.values import NONE, CelEvaluationError
from mooring.model.values.patterns import Pattern, PatternError, linear_pattern

LONGEST_NUMBER = 100
"""Digits after the point that `format` writes: a double has fewer."""


def regular_expression(pattern: str) -> Pattern:
    try:
        return linear_pattern(pattern)
    except PatternError as error:
        raise CelEvaluationError(f"error parsing regexp: {error}") from error


def bounded(size: int) -> int:
    """A size of something that an expression makes, if that is not too much."""
    if size > LARGEST:
        raise CelEvaluationError(f"a value of more than {LARGEST} characters or items")
    return size


def text_of(value: Any) -> str:
    """A value as string() writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{value:g}" if isinstance(value, float) else str(value)


def _at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelEvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise CelEvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        return [*text] if limit < 0 else [*text[: limit - 1], *([text[limit - 1 :]] if len(text) >= limit else [])]
    return text.split(separator, -1 if limit < 0 else limit - 1)


def _format(pattern: str, values: Sequence[Any]) -> str:
    left = iter(values)
    length = len(pattern)

    def one(match: re.Match[str]) -> str:
        nonlocal length
        text = written(match)
        length = bounded(length + len(text))
        return text

    def written(match: re.Match[str]) -> str:
        if match.group() == "%%":
            return "%"
        value = next(left, NONE)
        if value is NONE:
            raise CelEvaluationError("index out of range in format")
        kind = match.group()[-1]
        if kind == "s":
            return _shown(value)
        if match.group(1) and int(match.group(1)) > LONGEST_NUMBER:
            raise CelEvaluationError(f"precision of more than {LONGEST_NUMBER} digits in format")
        return f"{value:{match.group()[1:]}}"

    return re.sub(r"%(?:%|s|d|x|X|o|b|(?:\.([0-9]{1,9}))?[fe])", one, pattern)


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    count = text.count(old)
    bounded(len(text) + (count if most < 0 else min(count, most)) * (len(new) - len(old)))
    return text.replace(old, new, most)


def _join(items: Sequence[Any], separator: str = "") -> str:
    bounded(sum(len(item) for item in items) + len(separator) * len(items))
    return separator.join(items)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_shown(each) for each in value) + "]"
    return "null" if value is None else text_of(value)


def string_functions() -> dict[str, tuple[Overload, ...]]:
    def on_text(name: str, gives: str, run: Callable[..., Any], *takes: str) -> tuple[str, Overload]:
        return f".{name}", Overload((STRING, *takes), gives, run)

    listed = [
        on_text("startsWith", BOOL, lambda text, part: text.startswith(part), STRING),
        on_text("endsWith", BOOL, lambda text, part: text.endswith(part), STRING),
        on_text("contains", BOOL, lambda text, part: part in text, STRING),
        on_text("matches", BOOL, lambda text, each: regular_expression(each).matches(text), STRING),
        on_text("charAt", STRING, _at, INT),
        on_text("indexOf", INT, lambda text, part: text.find(part), STRING),
        on_text("indexOf", INT, lambda text, part, start: text.find(part, start), STRING, INT),
        on_text("lastIndexOf", INT, lambda text, part: text.rfind(part), STRING),
        on_text("lastIndexOf", INT, lambda text, part, end: text.rfind(part, 0, end + len(part)), STRING, INT),
        on_text("lowerAscii", STRING, lambda text: text.lower() if text.isascii() else _ascii(text, str.lower)),
        on_text("upperAscii", STRING, lambda text: text.upper() if text.isascii() else _ascii(text, str.upper)),
        on_text("replace", STRING, _replace, STRING, STRING),
        on_text("replace", STRING, _replace, STRING, STRING, INT),
        on_text("split", LIST, _split, STRING),
        on_text("split", LIST, _split, STRING, INT),
        on_text("substring", STRING, _substring, INT),
        on_text("substring", STRING, _substring, INT, INT),
        on_text("trim", STRING, lambda text: text.strip()),
        on_text("format", STRING, _format, LIST),
        on_text("find", STRING, lambda text, each: "".join(regular_expression(each).find_all(text, 1)), STRING),
        on_text("findAll", LIST, lambda text, each: regular_expression(each).find_all(text), STRING),
        on_text("findAll", LIST, lambda text, each, most: regular_expression(each).find_all(text, most), STRING, INT),
        (".join", Overload((LIST,), STRING, _join)),
        (".join", Overload((LIST, STRING), STRING, _join)),
    ]
    found: dict[str, tuple[Overload, ...]] = {}
    for name, overload in listed:
        found[name] = (*found.get(name, ()), overload)
    found["matches"] = (Overload((STRING, STRING), BOOL, found[".matches"][0].run),)
    return found


def _ascii(text: str, change: Callable[[str], str]) -> str:
    return "".join(change(each) if each.isascii() else each for each in text)
