"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from typing import Any

import msgspec

from mooring.model.values.strategic_merge import PatchError


class TooManyOperations(PatchError):
    """A patch is too long."""


MOST_OPERATIONS = 10_000
MOST_COPIED = 3 * 1024 * 1024
"""Bytes that all copies of a JSON patch may come to."""
_encode = msgspec.json.Encoder().encode


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(inner) for name, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def merge_patch(value: Any, patch: Any) -> Any:
    """Apply a merge patch: objects are merged, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    found = dict(value) if isinstance(value, dict) else {}
    for name, inner in patch.items():
        if inner is None:
            found.pop(name, None)
        else:
            found[name] = merge_patch(found.get(name), inner)
    return found


def json_patch(value: Any, operations: Any) -> Any:
    """Apply operations in turn, all or none; raises PatchError."""
    if not isinstance(operations, list):
        raise PatchError("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(operations) > MOST_OPERATIONS:
        raise TooManyOperations(
            f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}"
        )
    found = _copy(value)
    copied = 0
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchError("an operation is not an object")
        if operation.get("op") == "copy":
            copied += len(_encode(_find(found, _parts(operation.get("from")), "copy")))
            if copied > MOST_COPIED:
                raise PatchError(f"the accumulated size of copied values exceeds the limit of {MOST_COPIED}")
        found = _apply(found, operation)
    return found


def _apply(value: Any, operation: dict[str, Any]) -> Any:
    kind, path = operation.get("op"), _parts(operation.get("path"))
    match kind:
        case "add":
            return _add(value, path, _given(operation))
        case "remove":
            return _remove(value, path)
        case "replace":
            _find(value, path, kind)
            return _add(_remove(value, path), path, _given(operation)) if path else _given(operation)
        case "move":
            source = _parts(operation.get("from"))
            moved = _find(value, source, kind)
            return _add(_remove(value, source), path, moved)
        case "copy":
            return _add(value, path, _copy(_find(value, _parts(operation.get("from")), kind)))
        case "test":
            if not _is_equal(_find(value, path, kind, is_lenient=True), operation.get("value")):
                raise PatchError(f"testing value {operation.get('path')} failed")
            return value
    raise PatchError(f"Unexpected kind: {kind}")


def _given(operation: dict[str, Any]) -> Any:
    return _copy(operation.get("value"))


def _parts(path: Any) -> list[str]:
    if not isinstance(path, str):
        raise PatchError("missing path")
    if path and not path.startswith("/"):
        raise PatchError(f"invalid path {path}")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _is_equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_is_equal(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_is_equal, left, right))
    return bool(left == right)


def _find(value: Any, path: list[str], kind: str, *, is_lenient: bool = False) -> Any:
    for part in path:
        if isinstance(value, dict):
            if part not in value:
                if is_lenient:
                    return None
                raise PatchError(
                    f"{kind} operation does not apply: doc is missing key: /{'/'.join(path)}: missing value"
                )
            value = value[part]
        elif isinstance(value, list):
            value = value[_index(part, len(value) - 1)]
        else:
            raise PatchError(f"{kind} operation does not apply: doc is missing path: /{'/'.join(path)}: missing value")
    return value


def _index(part: str, highest: int) -> int:
    try:
        index = int(part)
    except ValueError:
        raise PatchError(f"value was not a proper array index: {part!r}") from None
    if index < 0:
        index += highest + 1
    if not 0 <= index <= highest:
        raise PatchError(f"Unable to access invalid index: {part}: invalid index referenced")
    return index


def _parent(value: Any, path: list[str], kind: str) -> Any:
    parent = _find(value, path[:-1], kind)
    if not isinstance(parent, dict | list):
        raise PatchError(f"{kind} operation does not apply: doc is missing path: /{'/'.join(path)}: missing value")
    return parent


def _add(value: Any, path: list[str], item: Any) -> Any:
    if not path:
        return item
    parent = _parent(value, path, "add")
    if isinstance(parent, dict):
        parent[path[-1]] = item
    elif path[-1] == "-":
        parent.append(item)
    else:
        parent.insert(_index(path[-1], len(parent)), item)
    return value


def _remove(value: Any, path: list[str]) -> Any:
    if not path:
        return None
    parent = _parent(value, path, "remove")
    if isinstance(parent, dict):
        if path[-1] not in parent:
            raise PatchError(f"remove operation does not apply: doc is missing path: /{'/'.join(path)}: missing value")
        del parent[path[-1]]
    else:
        del parent[_index(path[-1], len(parent) - 1)]
    return value
