"""Label selectors as one line of text: a=b,c!=d,e in (f,g),!h."""

import re
from functools import lru_cache

from mooring.model.values.selectors import Requirement

_TOKEN = re.compile(r"\s*(?:(==|!=|=|>|<|!|,|\(|\))|([^\s=!,()<>]+))")
_KEY = re.compile(r"(?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


class SelectorError(ValueError):
    """The text is not a label selector."""


class _Reader:
    """Reads a label selector, word by word."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[str] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error()
            self.words.append(match.group(1) or match.group(2))
            at = match.end()
        self.at = 0

    def error(self, why: str = "") -> Exception:
        said = why or f"found '{self.peek()}'" if hasattr(self, "at") else why
        return SelectorError(f'{said or "unexpected characters"} in "{self.text}"')

    def peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def take(self) -> str:
        word = self.peek()
        self.at += 1
        return word

    def key(self) -> str:
        word = self.take()
        if not _KEY.fullmatch(word) or len(word.rpartition("/")[2]) > 63:
            self.at -= 1
            raise self.error(f"invalid label key '{word}'")
        return word

    def value(self) -> str:
        if self.peek() in ("", ",", ")"):
            return ""
        word = self.take()
        if not _VALUE.fullmatch(word) or len(word) > 63:
            self.at -= 1
            raise self.error(f"invalid label value '{word}'")
        return word

    def number(self) -> str:
        word = self.value()
        if not re.fullmatch(r"-?[0-9]{1,19}", word):
            raise self.error("for 'Gt', 'Lt' operators, the value must be an integer")
        return word

    def requirement(self) -> Requirement:
        if self.peek() == "!":
            self.take()
            return Requirement(self.key(), "DoesNotExist")
        key = self.key()
        operator = self.peek()
        if operator in ("", ","):
            return Requirement(key, "Exists")
        self.take()
        match operator:
            case "=" | "==":
                return Requirement(key, "In", frozenset((self.value(),)))
            case "!=":
                return Requirement(key, "NotIn", frozenset((self.value(),)))
            case ">" | "<":
                return Requirement(key, "Gt" if operator == ">" else "Lt", frozenset((self.number(),)))
            case "in" | "notin":
                return Requirement(key, "In" if operator == "in" else "NotIn", frozenset(self.values()))
        self.at -= 1
        raise self.error(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def values(self) -> list[str]:
        if self.peek() != "(":
            raise SelectorError(f"found '{self.peek()}' expected: '('")
        self.take()
        values = [self.value()]
        while self.peek() == ",":
            self.take()
            values.append(self.value())
        if self.take() != ")":
            self.at -= 1
            raise self.error()
        return values


@lru_cache(maxsize=4096)
def parse_label_selector(text: str) -> tuple[Requirement, ...]:
    """Read a label selector; raise SelectorError for anything else."""
    reader = _Reader(text)
    requirements = []
    while reader.peek():
        requirements.append(reader.requirement())
        if reader.peek() == ",":
            reader.take()
        elif reader.peek():
            raise reader.error()
    return tuple(requirements)
