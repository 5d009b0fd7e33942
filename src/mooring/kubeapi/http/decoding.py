"""Bodies as values, and values as objects of their kinds."""

import struct
from typing import Any

import yaml

from mooring.kubeapi.http.protobuf import MEDIA_TYPE, parse_protobuf
from mooring.kubeapi.schemas import decode, parse_json, schema_of
from mooring.kubeapi.schemas.book import IGNORE, STRICT, WARN, strict_error
from mooring.kubeapi.status import Object, bad_request

_NO_VALUE = (
    ValueError,
    KeyError,
    TypeError,
    OverflowError,
    OSError,
    RecursionError,
    struct.error,
    yaml.YAMLError,
)
"""What reading a body may raise; OSError comes from moments that are too far off."""
FIELD_VALIDATION = (IGNORE, WARN, STRICT)


def parse_body(body: bytes, media_type: str) -> Any:
    """The value of a body, in JSON or YAML; 400 where it has none."""
    try:
        if media_type == MEDIA_TYPE:
            return parse_protobuf(body)
        if media_type.endswith("yaml"):
            return yaml.load(body, Loader=_YamlLoader)
        return parse_json(body)
    except _NO_VALUE as error:
        text = " ".join(str(error).split())
        raise bad_request(f"the object provided is unrecognized (must be of type JSON or YAML): {text}") from error


class _YamlLoader(yaml.CSafeLoader):
    """YAML as the API means it: a date is text, and keys are text."""


_YamlLoader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def repeated_yaml_keys(body: bytes) -> str:
    """What Kubernetes says of keys that come twice in YAML; empty if none does."""
    found: list[str] = []
    pending = [yaml.compose(body, Loader=yaml.CSafeLoader)]
    while pending:
        node = pending.pop(0)
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if key.value in seen:
                    found.append(f'  line {key.start_mark.line + 1}: key "{key.value}" already set in map')
                seen.add(key.value)
                pending.append(value)
        elif isinstance(node, yaml.SequenceNode):
            pending.extend(node.value)
    return "error converting YAML to JSON: yaml: unmarshal errors:\n" + "\n".join(found) if found else ""


def decode_as(
    group: str,
    version: str,
    kind: str,
    value: Any,
    validation: str = IGNORE,
    warnings: list[str] | None = None,
) -> Object:
    """An object of a kind that is not its resource's: a Scale, a Binding, DeleteOptions; 400 where it is none."""
    if not isinstance(value, dict):
        raise bad_request(f"the object provided is unrecognized: expected a {kind}")
    if value.get("kind") not in (None, "", kind):
        raise bad_request(f'{value["kind"]} in version "{version}" cannot be handled as a {kind}')
    type_ = schema_of(group, version, kind)
    if type_ is None:
        return value
    decoded = decode(value, type_)
    error = decoded.error or (strict_error(decoded.strict) if decoded.strict and validation == STRICT else "")
    if error:
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}')
    if validation == WARN and warnings is not None:
        warnings.extend(decoded.strict)
    found: Object = decoded.value
    return found
