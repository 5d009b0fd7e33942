"""Where the fields of a YAML file stand: lines for messages, looked up only when something is wrong."""

import re
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from mooring.errors import ConfigError
from mooring.model.places import Place

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


class Places:
    """One file with one document."""

    def __init__(self, file: Path, content: bytes) -> None:
        self.file, self._content = file, content

    def error(self, field: str, *, expected: str, found: str) -> ConfigError:
        """What is wrong with a field such as `work[0].duration`, with its line."""
        return ConfigError(f"{self.file}: line {self.line_of(field)}", field, expected=expected, found=found)

    def located(self, error: ConfigError) -> ConfigError:
        """The same error, with its line."""
        return self.error(error.field, expected=error.expected, found=error.found)

    def place(self, field: str) -> Place:
        """The place of an object that stands in the file, or is made as the file says."""
        return Place(f"{self.file}: line {self.line_of(field)}: {field}")

    @cached_property
    def _root(self) -> Any:
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return yaml.compose(self._content, loader)

    def line_of(self, field: str) -> int:
        """The line of a field, or of the nearest thing around it that is there."""
        node, line = self._root, 1
        for match in _STEP.finditer(field):
            found = _inner(node, match[1], match[2])
            if found is None:
                break
            node, line = found
        return line


def _inner(node: Any, key: str | None, index: str | None) -> tuple[Any, int] | None:
    if key is not None and isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == key:
                return value, name.start_mark.line + 1
    if index is not None and isinstance(node, yaml.SequenceNode) and int(index) < len(node.value):
        value = node.value[int(index)]
        return value, value.start_mark.line + 1
    return None
