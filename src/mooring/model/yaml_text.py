"""YAML as Kubernetes reads it, within limits: every mistake in the text is one `YamlProblem` with its place.

Values are put together from the parser's events, not from its nodes: that needs no recursion, sees duplicate keys, and
costs about half. A date is text, as in Kubernetes, and so is whatever JSON has no number for.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

MOST_NESTED = 200
"""Levels of lists and objects: no API has a tenth of it, and whoever walks a document may do so by recursion."""
MOST_REPEATED = 1_000_000
"""Values that aliases may stand for, each counted as often as it is repeated: a few bytes could mean billions."""
MOST_DIGITS = 1_000
"""A longer number is text: no field holds it, and turning text into numbers is quadratic."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?(?:0b[01_]+|0x[\da-fA-F_]+|0o?[0-7_]*|[1-9][\d_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?", re.ASCII)
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **{form: True for word in ("yes", "true", "on") for form in (word, word.title(), word.upper())},
    **{form: False for word in ("no", "false", "off") for form in (word, word.title(), word.upper())},
}
_TAG = "tag:yaml.org,2002:"
_COLLECTIONS = (None, "!", f"{_TAG}map", f"{_TAG}seq")
_TEXTS = ("!", f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}binary")
_NUMBERS = {f"{_TAG}int": int, f"{_TAG}float": float, f"{_TAG}bool": bool, f"{_TAG}null": type(None)}
_NONE = object()


class YamlProblem(Exception):
    """The text is no YAML, or more than we read: in which document, where, and what is wrong."""

    def __init__(self, document: int, where: str, found: str) -> None:
        super().__init__(found)
        self.document, self.where, self.found = document, where, found


class YamlDocument(NamedTuple):
    number: int
    value: Any
    duplicates: list[str]
    """The paths of keys that came twice in one mapping, of which the last counts."""


def read_yaml(content: bytes | str) -> Iterator[YamlDocument]:
    """Read all documents, numbered from 1; an empty one is None. Raise YamlProblem for the first mistake."""
    number = 1
    try:
        loader = _Loader(content)
        while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                composer = _Composer(loader)
                yield YamlDocument(number, composer.compose(), composer.duplicates)
                number += 1
    except _Refused as refused:
        raise YamlProblem(number, _place(refused.mark), refused.problem) from None
    except yaml.MarkedYAMLError as error:
        found = " ".join(part.strip() for part in (error.context, error.problem) if part)
        raise YamlProblem(number, _place(error.problem_mark or error.context_mark), found) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlProblem(number, "", str(error).splitlines()[0]) from error


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""


class _Refused(Exception):
    def __init__(self, mark: Any, problem: str) -> None:
        self.mark, self.problem = mark, problem


class _Composer:
    """Puts the values of one document together."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._outer: list[tuple[Any, Any, str, int, list[Any]]] = []
        """Those that contain the current one: each with its pending key, its anchor, and what it merges."""
        self._anchors: dict[str, tuple[Any, int]] = {}
        """By name: what it stands for, and how many values that is; none while it is not complete."""
        self._count = 0
        """Values so far, repeated ones counted each time."""
        self._repeated = 0
        self.duplicates: list[str] = []

    def compose(self) -> Any:
        """Read events up to the end of the document."""
        get_event = self._loader.get_event
        current: Any = None  # the list or mapping whose values come now
        key: Any = _NONE
        merges: list[Any] = []
        anchor, before = "", 0
        root: Any = None
        while True:
            event = get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._count += 1
                value = _plain(event.value) if event.implicit[0] else _tagged(event)
                if event.anchor:
                    self._anchors[event.anchor] = (value, 1)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._count += 1
                self._check_start(event, is_key=type(current) is dict and key is _NONE)
                self._outer.append((current, key, anchor, before, merges))
                current = {} if kind is yaml.MappingStartEvent else []
                key, merges, anchor, before = _NONE, [], event.anchor or "", self._count
                if anchor:
                    self._anchors[anchor] = (_NONE, 0)
                continue
            elif kind is yaml.AliasEvent:
                value = self._repeat(event)
            elif kind is yaml.DocumentEndEvent:
                return root
            else:  # the end of a mapping or a list, which is now a value of the one around it
                value = current
                for merged in merges:
                    for name, item in merged.items():
                        current.setdefault(name, item)
                if anchor:
                    self._anchors[anchor] = (value, self._count - before + 1)
                current, key, anchor, before, merges = self._outer.pop()
            if type(current) is list:
                current.append(value)
            elif current is None:
                root = value
            elif key is _NONE:
                key = _MERGE if kind is yaml.ScalarEvent and value == "<<" and event.implicit[0] else value
                if isinstance(key, dict | list):
                    raise _Refused(event.start_mark, "a key that is a list or an object")
            else:
                if key is _MERGE:
                    merges += _mappings(value, event)
                else:
                    if key in current:
                        self.duplicates.append(self._path(current, key))
                    current[key] = value
                key = _NONE

    def _check_start(self, event: Any, is_key: bool) -> None:
        if is_key:
            raise _Refused(event.start_mark, "a key that is a list or an object")
        if len(self._outer) >= MOST_NESTED:
            raise _Refused(event.start_mark, f"more than {MOST_NESTED} levels of lists and objects")
        if event.tag not in _COLLECTIONS:
            raise _Refused(event.start_mark, f"the tag {_short_tag(event.tag)}, which means nothing in a manifest")

    def _repeat(self, event: Any) -> Any:
        found = self._anchors.get(event.anchor)
        if found is None:
            raise _Refused(event.start_mark, f"an alias of &{event.anchor}, which is not there")
        value, size = found
        if value is _NONE:
            raise _Refused(event.start_mark, f"an alias of &{event.anchor} inside itself")
        self._count += size
        self._repeated += size
        if self._repeated > MOST_REPEATED:
            raise _Refused(event.start_mark, f"aliases that stand for more than {MOST_REPEATED:,} values")
        return value

    def _path(self, current: Any, key: Any) -> str:
        """Spell the path of a key of the current mapping."""
        path = ""
        for container, pending, *_ in self._outer[1:]:
            path += f"[{len(container)}]" if isinstance(container, list) else f".{pending}"
        return f"{path}.{key}".removeprefix(".")


_MERGE = object()
"""Instead of a key: what follows is merged in, below what is written."""


def _mappings(value: Any, event: Any) -> list[dict[Any, Any]]:
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in found):
        raise _Refused(event.start_mark, "a merge (<<) of something that is no object")
    return found


@lru_cache(maxsize=65536)
def _plain(text: str) -> Any:
    """What an unquoted text means: a number, true or false, nothing, or itself."""
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "0123456789+-." and len(text) <= MOST_DIGITS:
        if _INT.fullmatch(text):
            return _integer(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            return number if abs(number) != float("inf") else text
    return text


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    sign = -1 if digits[0] == "-" else 1
    digits = digits.lstrip("+-")
    if digits[:2] in ("0b", "0x", "0o"):
        return sign * int(digits[2:] or "0", {"b": 2, "x": 16, "o": 8}[digits[1]])
    return sign * int(digits, 8 if digits[0] == "0" else 10)


def _tagged(event: Any) -> Any:
    """A quoted text, or one with a tag of its own."""
    text, tag = event.value, event.tag
    if event.implicit[1] or tag in _TEXTS:
        return text
    type_ = _NUMBERS.get(tag)
    value = _plain(text) if type_ is not None else _NONE
    if type_ is float and type(value) is int:
        value = float(value)
    if type(value) is not type_:
        found = f"the tag {_short_tag(tag)}, which means nothing in a manifest"
        raise _Refused(event.start_mark, found if type_ is None else f"{_short_tag(tag)} of something that is none")
    return value


def _short_tag(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag
