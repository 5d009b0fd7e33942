"""One manifest that stands for many (`mooring.dev/replicas`), as objects of the API.

The same annotation and expressions as in `mooring schedule`: see `mooring.model.loading.replicas`.
"""

import re
from collections.abc import Iterator
from typing import Any

from mooring.errors import MooringError
from mooring.kubeapi.metadata import metadata_of
from mooring.kubeapi.status import Object
from mooring.model.loading.replicas import MOST_REPLICAS, REPLICAS, WITHOUT, ExpressionError, compile_pattern, fill

_MULTIPLIED = ("Node", "Pod")


class TemplateError(MooringError):
    """A template that cannot be filled in."""

    def __init__(self, *, expected: str, found: str) -> None:
        self.expected, self.found = expected, found
        super().__init__(f"expected {expected}, found {found}")


def is_template(obj: Object) -> bool:
    annotations = metadata_of(obj).get("annotations")
    return obj.get("kind") in _MULTIPLIED and isinstance(annotations, dict) and REPLICAS in annotations


def expand(obj: Object, most: int = MOST_REPLICAS) -> Iterator[Object]:
    """The objects that a manifest stands for: itself, mostly; TemplateError where they are more than `most`."""
    if not is_template(obj):
        yield obj
        return
    about = metadata_of(obj)
    annotations = about["annotations"]
    text = str(annotations[REPLICAS])
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        shown = text if len(text) <= 20 else f"{text[:20]}..."
        raise TemplateError(expected=f"{REPLICAS} to be a whole number from 1 to {most}", found=f'"{shown}"')
    left_out = {name.strip() for name in annotations.get(WITHOUT, "").split(",")}
    name = about.get("name") or about.get("generateName") or ""
    kept = {key: value for key, value in annotations.items() if key not in (REPLICAS, WITHOUT)}
    pattern = {**about, "name": name if "{" in name else f"{name}-{{i}}", "annotations": kept}
    try:
        for i in range(int(text)):
            copy = {**obj, "metadata": _filled(pattern, i)}
            if isinstance(obj.get("spec"), dict):
                copy["spec"] = _filled_spec(obj["spec"], i)
            if copy["metadata"]["name"] not in left_out:
                yield copy
    except (ExpressionError, ZeroDivisionError) as error:
        raise TemplateError(expected="expressions over i such as {i//8}", found=str(error)) from error


def _filled(value: Any, i: int) -> Any:
    if isinstance(value, str):
        return fill(compile_pattern(value), i) if "{" in value and not value.lstrip().startswith('{"') else value
    if isinstance(value, dict):
        return {key: _filled(inner, i) for key, inner in value.items()}
    return [_filled(inner, i) for inner in value] if isinstance(value, list) else value


def _filled_spec(spec: Object, i: int) -> Object:
    """Of a spec only taints and nodeName vary."""
    return {key: _filled(value, i) if key in ("taints", "nodeName") else value for key, value in spec.items()}
