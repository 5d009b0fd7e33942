"""Bodies in protobuf, which kubectl's imperative commands send: read into the same values as JSON.

Nothing is ever answered in it: every client that sends it accepts JSON too. Numbers of fields come from
`protobuf.json` (made by tools/protobuf_fields.py), their types from the API's schemas.
"""

import base64
import json
import struct
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from mooring.kubeapi.metadata import timestamp
from mooring.kubeapi.schemas.notation import type_of_kind
from mooring.kubeapi.schemas.types import Type
from mooring.kubeapi.status import Object

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
MOST_NESTED = 100
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_ITEMS = 1
"""The field of a message that is a list, where JSON has the list itself."""
_IN_EVERY_GROUP = ("DeleteOptions",)
"""Kinds that clients send in the name of whatever group they talk to."""
_SCHEMA = "apiextensions/v1.JSONSchemaProps"
_SCHEMA_OR_MORE = ("items", "additionalProperties", "additionalItems")
"""Fields of a JSON schema that hold another, or a list of them, or a truth."""


@cache
def _numbers() -> dict[str, dict[int, str]]:
    """The fields of each message by number; `=` before a name says that its fields stand beside the others."""
    written = json.loads((files("mooring.kubeapi.http") / "protobuf.json").read_bytes())
    return {
        name: {int(number): field for number, field in (word.split(":", 1) for word in line.split())}
        for name, line in written.items()
    }


def parse_protobuf(body: bytes) -> Object:
    """The object in a body; raises ValueError where there is none."""
    if not body.startswith(MAGIC):
        raise ValueError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    about, raw = {1: "", 2: ""}, b""
    for number, _, value in _fields(body[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            about |= {inner: _text(each) for inner, _, each in _fields(value) if inner in about}
        elif number == 2 and isinstance(value, bytes):
            raw = value
    type_ = type_of_kind("v1" if about[2] in _IN_EVERY_GROUP else about[1], about[2])
    if type_ is None:
        raise ValueError(f'no kind "{about[2]}" is registered for version "{about[1]}"')
    return {"apiVersion": about[1], "kind": about[2], **_struct(raw, type_, type_.name, 0)}


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """The fields of a message: number, wire type, and an int or bytes."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value: Any
            value, at = _varint(data, at)
        elif wire == _BYTES:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
            value, at = data[at : at + length], at + length
        else:
            raise ValueError(f"illegal wireType {wire}")
        if at > end:
            raise ValueError("unexpected EOF")
        yield number, wire, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("unexpected EOF" if at >= len(data) else "integer overflow")
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
        shift += 7


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        raise ValueError("wrong wireType")
    return value.decode()


def _struct(data: bytes, type_: Type, message: str, depth: int) -> Object:
    if depth > MOST_NESTED:
        raise ValueError("exceeded max depth")
    found: Object = {}
    names = _numbers().get(message, {})
    for number, wire, value in _fields(data):
        name = names.get(number)
        if name is None:
            continue
        if name[0] == "=":
            found |= _struct(value, type_, name[1:], depth + 1)
            continue
        field = type_.fields[name].type
        if message == _SCHEMA and name in _SCHEMA_OR_MORE:
            found[name] = _schema_or_more(value, type_, depth)
            continue
        match field.form:
            case "list" if field.item is not None:
                found.setdefault(name, []).extend(_items(value, wire, field.item, depth))
            case "map" if field.item is not None:
                key, inner = _entry(value, field.item, depth)
                found.setdefault(name, {})[key] = inner
            case _:
                found[name] = _value(value, field, depth)
    return found


def _schema_or_more(value: bytes, type_: Type, depth: int) -> Any:
    schemas, allows = [], True
    for _, wire, inner in _fields(value):
        if wire == _VARINT:
            allows = bool(inner)
        else:
            schemas.append(_struct(inner, type_, _SCHEMA, depth + 1))
    return allows if not schemas else schemas[0] if len(schemas) == 1 else schemas


def _items(value: Any, wire: int, item: Type, depth: int) -> Iterator[Any]:
    """One item of a list, or many numbers in one field."""
    if wire == _BYTES and item.form == "plain" and item.name in ("int32", "int64", "bool"):
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            yield _value(number, item, depth)
    else:
        yield _value(value, item, depth)


def _entry(value: Any, item: Type, depth: int) -> tuple[str, Any]:
    parts = {number: inner for number, _, inner in _fields(value)}
    return _text(parts.get(1, b"")), _value(parts.get(2, b""), item, depth)


def _value(value: Any, type_: Type, depth: int) -> Any:
    match type_.form:
        case "struct":
            return _struct(value, type_, type_.name, depth + 1)
        case "list":
            assert type_.item is not None
            return [_value(inner, type_.item, depth) for number, _, inner in _fields(value) if number == _ITEMS]
        case "map":
            assert type_.item is not None
            return dict(_entry(inner, type_.item, depth) for _, _, inner in _fields(value))
    return _plain(value, type_)


def _plain(value: Any, type_: Type) -> Any:
    match type_.name:
        case "string":
            return _text(value)
        case "bool":
            return bool(value)
        case "int32" | "int64":
            return value - 2**64 if value >= 2**63 else value
        case "double":
            return struct.unpack("<d", value)[0]
        case "bytes":
            return base64.b64encode(value).decode()
    parts = {number: inner for number, _, inner in _fields(value)}
    match type_.name:
        case "quantity":
            return _text(parts.get(1, b"0"))
        case "time" | "microtime" if not parts:
            return None
        case "time" | "microtime":
            seconds = parts.get(1, 0)
            moment = timestamp(seconds - 2**64 if seconds >= 2**63 else seconds)
            micros = parts.get(2, 0) // 1000
            return f"{moment[:-1]}.{micros:06d}Z" if type_.name == "microtime" else moment
        case "int-or-string":
            number = parts.get(2, 0)
            return _text(parts.get(3, b"")) if parts.get(1) else number - 2**64 if number >= 2**63 else number
    return json.loads(parts.get(1) or b"null")
