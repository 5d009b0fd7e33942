"""Bodies as values, and values as objects of their kinds."""

import struct
from collections import deque
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
            return _parse_yaml(body)
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


MOST_NODES = 1_000_000
"""Values that a document may have with its aliases written out: more than fit into the largest body without any."""


def _parse_yaml(body: bytes) -> Any:
    loader = _YamlLoader(body)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {})
        return _with_text_keys(loader.construct_document(node))
    finally:
        loader.dispose()


def _count(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node has with its aliases written out; ValueError if too many, or it contains itself."""
    count = known.get(id(node))
    if count is None:
        known[id(node)] = 0
        count = 1
        for child in node.value if isinstance(node, yaml.CollectionNode) else ():
            for part in child if isinstance(child, tuple) else (child,):
                count += _count(part, known)
        known[id(node)] = count
    if count == 0:
        raise ValueError("yaml: anchor value contains itself")
    if count > MOST_NODES:
        raise ValueError("yaml: document contains excessive aliasing")
    return count


def _with_text_keys(value: Any) -> Any:
    """As JSON has it: numbers and truths that are keys are text."""
    if isinstance(value, dict):
        return {_key(key): _with_text_keys(inner) for key, inner in value.items()}
    return [_with_text_keys(inner) for inner in value] if isinstance(value, list) else value


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return str(key)
    raise ValueError(f"yaml: a key is to be text, found {'null' if key is None else type(key).__name__}")


def repeated_yaml_keys(body: bytes) -> str:
    """What Kubernetes says of keys that come twice in YAML that was parsed; empty if none does."""
    found: list[str] = []
    pending = deque([yaml.compose(body, Loader=yaml.CSafeLoader)])
    looked_at: set[int] = set()
    while pending:
        node = pending.popleft()
        if id(node) in looked_at:
            continue
        looked_at.add(id(node))
        if isinstance(node, yaml.MappingNode):
            seen: set[Any] = set()
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
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
