"""The OpenAPI v2 document in protobuf: older ways of kubectl ask for it in no other form.

The numbers are those of gnostic's OpenAPIv2.proto. Only what our own documents have is written.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from mooring.kubeapi.status import Object

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_QUERY = 3
_json = msgspec.json.Encoder().encode


def to_protobuf(document: Object) -> bytes:
    paths = b"".join(
        _field(2, _named(path, b"".join(_field(_METHODS[method], _operation(each)) for method, each in item.items())))
        for path, item in document["paths"].items()
    )
    definitions = _schemas(document["definitions"])
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    return _text(1, document["swagger"]) + _field(2, info) + _field(8, paths) + _field(9, definitions)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode()) if text else b""


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _field(2, value)


def _any(value: Any) -> bytes:
    """A value as YAML, of which JSON is a part."""
    return _field(2, _json(value) + b"\n")


def _extensions(number: int, obj: Object) -> bytes:
    return b"".join(_field(number, _named(name, _any(value))) for name, value in obj.items() if name.startswith("x-"))


def _schemas(named: Object) -> bytes:
    """Definitions, or properties: both are lists of names and schemas."""
    return b"".join(_field(1, _named(name, _schema(schema))) for name, schema in named.items())


def _schema(schema: Object) -> bytes:
    parts = [
        _text(1, schema.get("$ref", "")),
        _text(2, schema.get("format", "")),
        _text(4, schema.get("description", "")),
        *(_text(19, name) for name in schema.get("required", ())),
        *(_field(20, _any(value)) for value in schema.get("enum", ())),
    ]
    if "default" in schema:
        parts.append(_field(5, _any(schema["default"])))
    further = schema.get("additionalProperties")
    if isinstance(further, dict):
        parts.append(_field(21, _field(1, _schema(further))))
    if "type" in schema:
        kinds: Iterable[str] = (schema["type"],) if isinstance(schema["type"], str) else schema["type"]
        parts.append(_field(22, b"".join(_text(1, kind) for kind in kinds)))
    if isinstance(schema.get("items"), dict):
        parts.append(_field(23, _field(1, _schema(schema["items"]))))
    parts += [_field(24, _schema(each)) for each in schema.get("allOf", ())]
    if schema.get("properties"):
        parts.append(_field(25, _schemas(schema["properties"])))
    parts.append(_extensions(31, schema))
    return b"".join(parts)


def _operation(operation: Object) -> bytes:
    parameters = b"".join(_field(8, _parameter(each)) for each in operation.get("parameters", ()))
    answers = b"".join(
        _field(1, _named(code, _field(1, _text(1, answer["description"]))))
        for code, answer in operation["responses"].items()
    )
    return _text(5, operation["operationId"]) + parameters + _field(9, answers) + _extensions(13, operation)


def _parameter(parameter: Object) -> bytes:
    """A parameter of the query, in the three messages that it is wrapped in."""
    inner = _text(2, parameter["in"]) + _text(4, parameter["name"]) + _text(6, parameter.get("type", "string"))
    return _field(1, _field(2, _field(_QUERY, inner)))
