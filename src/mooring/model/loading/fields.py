"""Field validation as kubectl has it: a field that the API does not know is a mistake, as is a key that comes twice.

The types that we decode into know only what scheduling reads. Which fields are legal besides is data (`fields.json`,
written by tools/api_fields.py from the Go types). Kinds and versions that are not in it are not checked.

Documents are walked. Long files of JSON, which only programs write, are decoded into structs that allow just the legal
fields, at a fraction of what loading costs; what does not fit is then walked, to find and name it.
"""

import difflib
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from mooring.errors import ManifestError
from mooring.model.objects.kinds import Source
from mooring.model.places import Place

Validation = Literal["strict", "warn", "ignore"]
"""What is done about unknown fields and duplicate keys."""


class FieldTypes(msgspec.Struct, frozen=True):
    """The API's types as data: for each kind its type, for each type its fields and theirs."""

    kinds: dict[str, str]
    types: dict[str, dict[str, str]]

    def of_kind(self, api_version: str, kind: str) -> str:
        """The type of a kind, empty if there is none; who names no version is taken at its newest."""
        if api_version:
            return self.kinds.get(f"{api_version} {kind}", "")
        return _newest().get(kind, "")


@cache
def field_types() -> FieldTypes:
    return msgspec.json.decode(files("mooring.model.api").joinpath("fields.json").read_bytes(), type=FieldTypes)


@cache
def _newest() -> dict[str, str]:
    """By kind: the only type that has this name, or none where several groups use it."""
    found: dict[str, str] = {}
    groups: dict[str, set[str]] = {}
    for key, type_ in field_types().kinds.items():
        api_version, _, kind = key.partition(" ")
        groups.setdefault(kind, set()).add(api_version.rpartition("/")[0])
        found[kind] = type_
    return {kind: type_ for kind, type_ in found.items() if len(groups[kind]) == 1}


class FieldChecks:
    """Checks documents as they are read: raises, or keeps a warning, or does nothing at all."""

    def __init__(self, validation: Validation = "strict") -> None:
        self._validation = validation
        self.warnings: list[str] = []

    def check(self, api_version: str, kind: str, source: Source, place: Place, *, is_long: bool = False) -> None:
        """Check one object of a kind that scheduling reads; one of a long file may have the same key twice."""
        if self._validation == "ignore":
            return
        type_ = field_types().of_kind(api_version, kind)
        if not type_ or (is_long and not isinstance(source, dict) and _is_clean(type_, source)):
            return
        try:
            value = source if isinstance(source, dict) else json.loads(bytes(source), object_pairs_hook=_Keyed)
        except (ValueError, RecursionError):
            return  # it cannot be decoded either, and whoever tries says why
        subject = _subject(value, kind)
        for path in _twice(value, ""):
            self._report(_duplicate(path, place, subject))
        for path, name, found_in in _unknown(value, type_, ""):
            self._report(_misspelt(path, name, found_in, place, subject))

    def check_keys(self, duplicates: list[str], value: Any, place: Place) -> None:
        """Say which keys came twice in a YAML document."""
        if self._validation != "ignore":
            for path in duplicates:
                self._report(_duplicate(path, place, _subject(value, "")))

    def _report(self, error: ManifestError) -> None:
        if self._validation == "strict":
            raise error
        self.warnings.append(str(error))


def _is_clean(type_: str, source: Raw | bytes) -> bool:
    """Whether a JSON object surely has nothing but legal fields; of keys that come twice decoding says nothing."""
    try:
        _decoder(type_).decode(source)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


@cache
def _decoder(type_: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_shadow(type_))


@cache
def _shadow(type_: str) -> Any:
    """A struct with the legal fields of a type, and no others."""
    fields = field_types().types[type_]
    forms: dict[str, Any] = dict.fromkeys(fields[""].split(), Raw)
    forms |= {name: _annotation(form) | None for name, form in fields.items() if name}
    return _struct(type_, dict(sorted(forms.items())))


def _annotation(form: str) -> Any:
    if form == "":
        return Raw
    if form.startswith("[]"):
        return list[_annotation(form[2:])]  # type: ignore[misc]
    if form.startswith("{}"):
        return dict[str, _annotation(form[2:])]  # type: ignore[misc]
    return _shadow(form)


def _struct(name: str, fields: dict[str, Any]) -> Any:
    """The names of fields are the API's only in JSON: some of them are words of Python."""
    python_names = {f"f{index}": field for index, field in enumerate(fields)}
    given = [(python, fields[field] | UnsetType, UNSET) for python, field in python_names.items()]
    return msgspec.defstruct(
        "".join(letter if letter.isalnum() else "_" for letter in name),
        given,
        rename=python_names,
        forbid_unknown_fields=True,
        gc=False,
    )


class _Keyed(dict[str, Any]):
    """An object of JSON that knows which of its keys came twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.twice = sorted({name for name in names if names.count(name) > 1}) if len(self) < len(pairs) else []


def _twice(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Keyed):
        yield from (_join(path, name) for name in value.twice)
        for name, item in value.items():
            yield from _twice(item, _join(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _twice(item, f"{path}[{index}]")


def _unknown(value: Any, form: str, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, name and type wherever an object has a field that its type has not."""
    if isinstance(value, list) and form.startswith("[]"):
        for index, item in enumerate(value):
            yield from _unknown(item, form[2:], f"{path}[{index}]")
    elif not isinstance(value, dict) or form in ("", "{}") or form.startswith("[]"):
        return
    elif form.startswith("{}"):
        for key, item in value.items():
            yield from _unknown(item, form[2:], _join(path, key))
    else:
        fields, plain = field_types().types[form], _plain(form)
        for name, item in value.items():
            if name in plain:
                continue
            inner = fields.get(name) if name else None
            if inner is None:
                yield path, str(name), form
            elif inner != "{}":
                yield from _unknown(item, inner, _join(path, name))


def _join(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)


@cache
def _plain(type_: str) -> frozenset[str]:
    return frozenset(field_types().types[type_][""].split())


def _subject(value: Any, kind: str) -> str:
    """Name an object that has no type yet, as far as it lets itself be named."""
    if not isinstance(value, dict):
        return kind
    kind = kind or str(value.get("kind") or "")
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{kind} {name}" if isinstance(name, str) else kind


def _duplicate(path: str, place: Place, subject: str) -> ManifestError:
    return place.error(path, expected="each key once", found="it twice", subject=subject)


def _misspelt(path: str, name: str, type_: str, place: Place, subject: str) -> ManifestError:
    legal = [*_plain(type_), *(field for field in field_types().types[type_] if field)]
    same = [field for field in legal if field.lower() == name.lower()]
    close = same or difflib.get_close_matches(name, sorted(legal), n=1)
    expected = f"a field of {type_.rpartition('.')[2]}" + (f" (did you mean {close[0]}?)" if close else "")
    return place.error(_join(path, name), expected=expected, found="an unknown field", subject=subject)
