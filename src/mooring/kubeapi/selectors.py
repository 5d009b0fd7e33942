"""Label and field selectors as they stand in a query: a=b,c!=d,e in (f,g),!h."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from mooring.kubeapi.registry import Resource
from mooring.kubeapi.status import ApiError, Object, bad_request
from mooring.kubeapi.store.records import Record
from mooring.kubeapi.strategy import Strategy
from mooring.model.values.selector_text import SelectorError, parse_label_selector
from mooring.model.values.selectors import Requirement


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Read a label selector; raises 400."""
    try:
        return parse_label_selector(text)
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from error


def match_labels(requirements: tuple[Requirement, ...], labels: Mapping[str, str]) -> bool:
    return all(requirement.matches(labels) for requirement in requirements)


@lru_cache(maxsize=4096)
def parse_fields(text: str) -> tuple[tuple[str, bool, str], ...]:
    """Read a field selector into (field, is equal, value); raises 400."""
    found = []
    for part in _terms(text):
        if not part.strip():
            continue
        at = next((index for index in range(len(part)) if part.startswith(("=", "!="), index)), -1)
        field = part[:at].strip()
        if at < 0 or not field:
            raise bad_request(f"invalid field selector: {text}; can't understand '{part}'")
        operator = next(each for each in ("!=", "==", "=") if part.startswith(each, at))
        found.append((field, operator != "!=", _unescaped(part[at + len(operator) :])))
    return tuple(found)


def _terms(text: str) -> list[str]:
    """Split a field selector at the commas that no backslash escapes."""
    found, start, is_escaped = [], 0, False
    for index, letter in enumerate(text):
        if letter == "," and not is_escaped:
            found.append(text[start:index])
            start = index + 1
        is_escaped = letter == "\\" and not is_escaped
    return [*found, text[start:]]


def _unescaped(value: str) -> str:
    """The value without its backslashes; each has to escape a backslash, a comma or an equals sign."""
    found, letters = [], iter(value)
    for letter in letters:
        if letter == "\\":
            letter = next(letters, "")
            if letter not in ("\\", ",", "="):
                sequence = f"\\{letter}"
                raise bad_request(f"invalid field selector: invalid escape sequence: {sequence}")
        elif letter in (",", "="):
            raise bad_request(f"invalid field selector: unescaped character in value: {letter}")
        found.append(letter)
    return "".join(found)


def make_selector(
    resource: Resource, strategy: Strategy, labels: str, fields: str, name: str = ""
) -> Callable[[Record], bool] | None:
    """Compile what a query selects; None if everything. With `name` only the object of that name is selected."""
    by_label = parse_labels(labels) if labels else ()
    instead = {strategy.fields_selectable[field]: path for field, path in strategy.fields_instead.items()}
    tests: list[tuple[str, tuple[str, ...] | None, bool, str]] = [("name", None, True, name)] if name else []
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
                found = record.text_at(path) or (record.text_at(instead[path]) if path in instead else "")
                found = found or ("false" if value in ("true", "false") else "")
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
