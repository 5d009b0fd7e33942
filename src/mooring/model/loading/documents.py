"""Files, folders and standard input as single documents, each with its place; lists and wrappers are flattened."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mooring.errors import ManifestError
from mooring.model.jobs.app_wrapper import WRAPPER, WRAPPER_GROUP
from mooring.model.loading.app_wrapper import components
from mooring.model.loading.configuration import configuration_in_map, configuration_without_kind
from mooring.model.loading.disaggregated_set import SET, SET_GROUP, leader_worker_sets
from mooring.model.loading.fields import FieldChecks
from mooring.model.objects.kinds import Source, as_mapping, decode, find_kind
from mooring.model.places import Place, show
from mooring.model.yaml_text import YamlProblem, read_yaml

_SUFFIXES = (".yaml", ".yml", ".json")
LARGEST_FILE = 1 << 31
"""Bytes: a file is read whole, and ten times the largest cluster fits into this."""
LONG_JSON = 1 << 20
"""Bytes: no person writes longer JSON, and no program writes a key twice, which is slow to look for."""


_WRAPPERS: dict[tuple[str, str], Callable[[Source, Place], Iterator[dict[str, Any]]]] = {
    (WRAPPER_GROUP, WRAPPER): components,
    (SET_GROUP, SET): leader_worker_sets,
}
"""Kinds that are read as the objects inside them."""


class Document(msgspec.Struct, frozen=True, gc=False):
    """One object as read: what it says it is, where it stood, and the text or mapping itself."""

    api_version: str
    kind: str
    place: Place
    source: Source
    is_wrapper: bool = False
    """Whether it only holds those that come after it: its own fields are checked, and there is nothing else to it."""


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _ListHead(msgspec.Struct):
    items: list[msgspec.Raw] = []


class _MappingListHead(msgspec.Struct):
    items: list[Any] = []


def read_documents(paths: Sequence[str | Path], checks: FieldChecks | None = None) -> Iterator[Document]:
    """Read every object of the given files, folders (recursive, by name) and `-` for standard input.

    Fields are checked on the way, strictly if not told otherwise.
    """
    checks = checks or FieldChecks()
    for path in paths:
        if not str(path):
            raise ManifestError('-f ""', None, "", expected="a file, a folder or -", found="an empty name")
        if str(path) == "-":
            yield from _read_text(_whole(sys.stdin.buffer.read(LARGEST_FILE + 1), "<stdin>"), "<stdin>", checks)
            continue
        for file in _files(Path(path)):
            yield from _read_text(_content(file), str(file), checks)


def flatten(source: Source, place: Place, implied: tuple[str, str] = ("", "")) -> Iterator[Document]:
    """Yield the document, or the items of a list; items may leave apiVersion and kind to their list.

    A wrapper comes before the objects that it is read as.
    """
    head = decode(source, _Head, place)
    api_version, kind = head.api_version or implied[0], head.kind or implied[1]
    if not kind:
        kind = configuration_without_kind(as_mapping(source, place))
        if not kind:
            raise place.error("kind", expected="a kind such as Pod or Node", found="none")
    if kind == "ConfigMap":
        kind = configuration_in_map(as_mapping(source, place)) or kind
    unwrap = _WRAPPERS.get((api_version.rpartition("/")[0], kind))
    if unwrap is not None:
        yield Document(api_version, kind, place, source, is_wrapper=True)
        for index, inside in enumerate(unwrap(source, place)):
            yield from flatten(inside, msgspec.structs.replace(place, item=index))
        return
    if not kind.endswith("List"):
        yield Document(api_version, kind, place, source)
        return
    implied = (api_version, kind.removesuffix("List")) if kind != "List" else ("", "")
    if isinstance(source, dict):
        items: Iterable[Any] = decode(source, _MappingListHead, place, kind).items
    else:
        items = decode(source, _ListHead, place, kind).items
    for index, item in enumerate(items):
        inner = msgspec.structs.replace(place, item=index)
        if not isinstance(item, dict | msgspec.Raw):
            raise inner.error("", expected="an object", found=show(item), subject=kind)
        yield from flatten(item, inner, implied)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    if not found:
        raise ManifestError(str(path), None, "", expected="a folder with *.yaml, *.yml or *.json files", found="none")
    return found


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return _whole(stream.read(LARGEST_FILE + 1), str(file))
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise ManifestError(str(file), None, "", expected="a readable file", found=reason) from error


def _whole(content: bytes, file: str) -> bytes:
    if len(content) > LARGEST_FILE:
        raise ManifestError(file, None, "", expected=f"at most {LARGEST_FILE:,} bytes", found="more")
    return content


def _read_text(content: bytes, file: str, checks: FieldChecks) -> Iterator[Document]:
    is_json = file.endswith(".json") or (not file.endswith((".yaml", ".yml")) and content.lstrip()[:1] == b"{")
    if is_json:
        if content.strip():
            yield from _checked(_read_json(content, file), checks, is_long=len(content) > LONG_JSON)
    else:
        yield from _checked(_read_yaml(content, file, checks), checks, is_long=False)


def _checked(documents: Iterable[Document], checks: FieldChecks, *, is_long: bool) -> Iterator[Document]:
    for document in documents:
        if document.is_wrapper or find_kind(document.api_version, document.kind) is not None:
            checks.check(document.api_version, document.kind, document.source, document.place, is_long=is_long)
        if not document.is_wrapper:
            yield document


def _read_json(content: bytes, file: str) -> Iterator[Document]:
    place = Place(file)
    try:
        first = content.lstrip()[:1]
        if first != b"{":
            raise place.error("", expected="an object", found=show(as_mapping(content, place)))
        yield from flatten(content, place)
    except msgspec.DecodeError as error:
        raise _malformed_json(content, file, error) from error


def _malformed_json(content: bytes, file: str, error: msgspec.DecodeError) -> ManifestError:
    """Say where the JSON breaks; the standard library's parser, far slower, knows line and column."""
    try:
        json.loads(content)
    except json.JSONDecodeError as detail:
        where = f"line {detail.lineno}, column {detail.colno}"
        return ManifestError(file, None, where, expected="JSON", found=detail.msg[:1].lower() + detail.msg[1:])
    except UnicodeDecodeError as detail:
        return ManifestError(file, None, "", expected="JSON in UTF-8", found=f"a stray byte at {detail.start}")
    except (ValueError, RecursionError):  # a number of thousands of digits, or too deep for that parser
        pass
    return ManifestError(file, None, "", expected="JSON", found=str(error))


def _read_yaml(content: bytes, file: str, checks: FieldChecks) -> Iterator[Document]:
    try:
        for number, document, duplicates in read_yaml(content):
            if document is None:
                continue
            place = Place(file, number)
            if not isinstance(document, dict):
                raise place.error("", expected="an object", found=show(document))
            checks.check_keys(duplicates, document, place)
            yield from flatten(document, place)
    except YamlProblem as problem:
        raise ManifestError(file, problem.document, problem.where, expected="YAML", found=problem.found) from problem
