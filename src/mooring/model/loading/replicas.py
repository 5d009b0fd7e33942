"""One manifest that stands for many: `mooring.dev/replicas` and the expressions that tell the copies apart.

    metadata:
      name: gpu-{i:04}
      annotations: {mooring.dev/replicas: "500"}
      labels: {rack: "rack-{i//8}", zone: "zone-{i%3}"}

`i` counts from 0. Integers, `i`, `+ - * // %` and parentheses are understood, with a format after a colon; nothing is
ever evaluated as Python.
"""

import ast
import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from mooring.model.api.meta import ObjectMeta
from mooring.model.api.nodes import Node, Taint
from mooring.model.api.pods import Pod
from mooring.model.defaults import HOSTNAME_LABEL
from mooring.model.places import Place, show

REPLICAS = "mooring.dev/replicas"
WITHOUT = "mooring.dev/replicas-without"
"""The names of copies that are not to be made, between commas: they are gone, or given as they are by themselves."""
MOST_REPLICAS = 1_000_000
"""A slip of the hand in a count should be a message, not a machine out of memory."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_BRACES = re.compile(r"\{([^{}]*)\}")
_FORMAT = re.compile(r"(?:0?\d{1,3})?[dxXob]?", re.ASCII)
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_EXPECTED = "an expression over i such as {i}, {i//8}, {i%3} or {i+1:03}"

_Pattern = tuple[tuple[str, Callable[[int], int] | None, str], ...]
"""Pieces of a text: literal text before, the expression if any, its format."""


class ExpressionError(ValueError):
    """The text in braces is not an expression over i."""


@lru_cache(maxsize=4096)
def compile_pattern(text: str) -> _Pattern:
    """Split a text into literal pieces and expressions; raise ExpressionError for a bad one."""
    pieces: list[tuple[str, Callable[[int], int] | None, str]] = []
    end = 0
    for match in _BRACES.finditer(text):
        expression, _, form = match[1].partition(":")
        if not _FORMAT.fullmatch(form):
            raise ExpressionError(match[0])
        pieces.append((text[end : match.start()], _compile_expression(expression, match[0]), form))
        end = match.end()
    rest = text[end:]
    if "{" in rest or "}" in rest or any("{" in literal or "}" in literal for literal, _, _ in pieces):
        raise ExpressionError(text)
    return (*pieces, (rest, None, ""))


def fill(pattern: _Pattern, i: int) -> str:
    return "".join(literal + (format(value(i), form) if value else "") for literal, value, form in pattern)


def _compile_expression(text: str, shown: str) -> Callable[[int], int]:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(shown) from error
    return _build(tree, shown)


def _build(node: ast.expr, shown: str) -> Callable[[int], int]:
    match node:
        case ast.Name(id="i"):
            return lambda i: i
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return lambda i: number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            value = _build(inner, shown)
            return lambda i: -value(i)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATORS:
            apply, first, second = _OPERATORS[type(operation)], _build(left, shown), _build(right, shown)
            return lambda i: apply(first(i), second(i))
    raise ExpressionError(shown)


def replica_count(metadata: ObjectMeta, place: Place, subject: object) -> int | None:
    """Read the annotation; None where the object stands for itself."""
    text = (metadata.annotations or {}).get(REPLICAS)
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,9}", text) or not 1 <= int(text) <= MOST_REPLICAS:
        raise place.error(
            f"metadata.annotations.{REPLICAS}",
            expected=f"a whole number from 1 to {MOST_REPLICAS}",
            found=show(text),
            subject=subject,
        )
    return int(text)


def _left_out(metadata: ObjectMeta) -> set[str]:
    """The names of the copies that are not to be made."""
    return {name.strip() for name in (metadata.annotations or {}).get(WITHOUT, "").split(",")}


class _Filler:
    """Fills one object's patterns for each i, and knows how to complain about them."""

    def __init__(self, place: Place, subject: object) -> None:
        self._place, self._subject = place, subject

    def text(self, text: str, field: str) -> Callable[[int], str]:
        if "{" not in text and "}" not in text:
            return lambda i: text
        try:
            pattern = compile_pattern(text)
            fill(pattern, 0)
        except ExpressionError as error:
            raise self._error(field, str(error)) from error
        except ZeroDivisionError as error:
            raise self._error(field, f"a division by zero in {text}") from error

        def at(i: int) -> str:
            try:
                return fill(pattern, i)
            except ZeroDivisionError as error:
                raise self._error(field, f"a division by zero in {text} for i = {i}") from error

        return at

    def _error(self, field: str, found: str) -> Exception:
        return self._place.error(field, expected=_EXPECTED, found=found, subject=self._subject)

    def mapping(self, texts: dict[str, str] | None, field: str) -> Callable[[int], dict[str, str] | None]:
        if not texts:
            return lambda i: None
        constant = {key: text for key, text in texts.items() if "{" not in text and "}" not in text}
        varying = [(key, self.text(text, f"{field}.{key}")) for key, text in texts.items() if key not in constant]
        return lambda i: {**constant, **{key: at(i) for key, at in varying}}

    def metadata(self, metadata: ObjectMeta) -> Callable[[int], ObjectMeta]:
        name = metadata.name or f"{metadata.generate_name}{{i}}"
        named = self.text(name if "{" in name else f"{name}-{{i}}", "metadata.name")
        labels = self.mapping(metadata.labels, "metadata.labels")
        # The count belongs to the original alone, or the copies would multiply when read again. What is JSON has
        # braces of its own.
        given = metadata.annotations or {}
        verbatim = {key: text for key, text in given.items() if is_json_object(text)}
        others = {key: text for key, text in given.items() if key not in verbatim and key not in (REPLICAS, WITHOUT)}
        verbatim.pop(_LAST_APPLIED, None)
        annotations = self.mapping(others, "metadata.annotations")
        return lambda i: replace(
            metadata,
            name=named(i),
            labels=labels(i),
            annotations={**verbatim, **(annotations(i) or {})} or None,
            uid=f"{metadata.uid}-{i}" if metadata.uid else "",
        )


def is_json_object(text: str) -> bool:
    """Whether a text is an object in JSON, or a list of such: its braces are no expressions."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return isinstance(found, dict) or (isinstance(found, list) and any(isinstance(each, dict) for each in found))


def expand_node(node: Node, place: Place) -> list[Node]:
    """Return the nodes that a manifest stands for; the copies share status and, where they can, spec."""
    count = replica_count(node.metadata, place, node)
    if count is None:
        return [node]
    filler = _Filler(place, node)
    metadata_at = filler.metadata(node.metadata)
    taints_at = _taints(filler, node.spec.taints)
    hostname = (node.metadata.labels or {}).get(HOSTNAME_LABEL)
    repeats = hostname is not None and "{" not in hostname
    left_out = _left_out(node.metadata)
    nodes = []
    for i in range(count):
        metadata = metadata_at(i)
        if metadata.name in left_out:
            continue
        if repeats and metadata.labels is not None:
            metadata.labels[HOSTNAME_LABEL] = metadata.name
        spec = node.spec if taints_at is None else replace(node.spec, taints=taints_at(i))
        nodes.append(replace(node, metadata=metadata, spec=spec))
    return nodes


def _taints(filler: _Filler, taints: list[Taint] | None) -> Callable[[int], list[Taint]] | None:
    if not taints or not any("{" in taint.value or "}" in taint.value for taint in taints):
        return None
    values = [filler.text(taint.value, f"spec.taints[{index}].value") for index, taint in enumerate(taints)]
    return lambda i: [replace(taint, value=value(i)) for taint, value in zip(taints, values, strict=True)]


def expand_pod(pod: Pod, place: Place) -> list[Pod]:
    """Return the pods that a manifest stands for; the copies share the spec unless its nodeName varies."""
    count = replica_count(pod.metadata, place, pod)
    if count is None:
        return [pod]
    filler = _Filler(place, pod)
    metadata_at = filler.metadata(pod.metadata)
    left_out = _left_out(pod.metadata)
    copies = [(i, metadata) for i in range(count) if (metadata := metadata_at(i)).name not in left_out]
    node_name = pod.spec.node_name
    if "{" not in node_name:
        return [replace(pod, metadata=metadata) for _, metadata in copies]
    node_at: Any = filler.text(node_name, "spec.nodeName")
    return [replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=node_at(i))) for i, metadata in copies]
