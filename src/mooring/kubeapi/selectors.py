"""Label and field selectors as they stand in a query: a=b,c!=d,e in (f,g),!h."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import ApiError, Object, bad_request
from mooring.kubeapi.store.records import Record
from mooring.kubeapi.strategy import Strategy
from mooring.model.values.selectors import Requirement

_TOKEN = re.compile(r"\s*(?:(==|!=|=|>|<|!|,|\(|\))|([^\s=!,()<>]+))")
_KEY = re.compile(r"(?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


class _Reader:
    """Reads a label selector, word by word."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error()
            self.words.append(match.group(1) or match.group(2))
            at = match.end()
        self.at = 0

    def error(self, why: str = "") -> Exception:
        said = why or f"found '{self.peek()}'" if hasattr(self, "at") else why
        return bad_request(f'unable to parse requirement: {said or "unexpected characters"} in "{self.text}"')

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
                return Requirement(key, "Gt" if operator == ">" else "Lt", frozenset((self.value(),)))
            case "in" | "notin":
                return Requirement(key, "In" if operator == "in" else "NotIn", frozenset(self.values()))
        self.at -= 1
        raise self.error(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def values(self) -> list[str]:
        if self.peek() != "(":
            raise bad_request(f"unable to parse requirement: found '{self.peek()}' expected: '('")
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
def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Read a label selector; raises 400."""
    reader = _Reader(text)
    found = []
    while reader.peek():
        found.append(reader.requirement())
        if reader.peek() == ",":
            reader.take()
        elif reader.peek():
            raise reader.error()
    return tuple(found)


def match_labels(requirements: tuple[Requirement, ...], labels: Mapping[str, str]) -> bool:
    return all(requirement.matches(labels) for requirement in requirements)


@lru_cache(maxsize=4096)
def parse_fields(text: str) -> tuple[tuple[str, bool, str], ...]:
    """Read a field selector into (field, is equal, value); raises 400."""
    found = []
    for part in re.split(r"(?<!\\),", text):
        if not part.strip():
            continue
        match = re.fullmatch(r"\s*([^=!]+?)\s*(==|!=|=)(.*)", part)
        if match is None:
            raise bad_request(f"invalid field selector: {text}; can't understand '{part}'")
        field, operator, value = match.groups()
        found.append((field, operator != "!=", re.sub(r"\\([\\,=])", r"\1", value)))
    return tuple(found)


def make_selector(resource: Resource, strategy: Strategy, labels: str, fields: str) -> Callable[[Record], bool] | None:
    """Compile what a query selects; None if everything."""
    by_label = parse_labels(labels) if labels else ()
    tests: list[tuple[str, tuple[str, ...] | None, bool, str]] = []
    for field, is_equal, value in parse_fields(fields) if fields else ():
        if field == "metadata.name" or (field == "metadata.namespace" and resource.namespaced):
            tests.append((field.partition(".")[2], None, is_equal, value))
        elif field in strategy.fields_selectable:
            tests.append(("", strategy.fields_selectable[field], is_equal, value))
        else:
            raise _unknown_field(resource, strategy, field)
    if not by_label and not tests:
        return None

    def selects(record: Record) -> bool:
        if by_label and not match_labels(by_label, record.labels):
            return False
        for attribute, path, is_equal, value in tests:
            if path is None:
                found = getattr(record, attribute)
            else:
                found = record.text_at(path) or ("false" if value in ("true", "false") else "")
            if (found == value) != is_equal:
                return False
        return True

    return selects


def _unknown_field(resource: Resource, strategy: Strategy, field: str) -> ApiError:
    if strategy.fields_selectable or resource.custom or resource.definition:
        return bad_request(f"field label not supported: {field}")
    return bad_request(f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def selects(selector: Object | None, labels: dict[str, str]) -> bool:
    """Whether a LabelSelector selects; an empty one selects all, none selects nothing."""
    if selector is None:
        return False
    equal = tuple(
        Requirement(key, "In", frozenset((value,))) for key, value in (selector.get("matchLabels") or {}).items()
    )
    more = tuple(
        Requirement(each["key"], each["operator"], frozenset(each.get("values") or ()))
        for each in selector.get("matchExpressions") or ()
    )
    return match_labels(equal + more, labels)
