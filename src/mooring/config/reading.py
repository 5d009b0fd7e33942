"""Files of ours that are no manifests, as parsed documents."""

from pathlib import Path
from typing import Any

from mooring.errors import ConfigError
from mooring.model.yaml_text import YamlProblem, read_yaml


def load_documents(path: Path) -> list[Any]:
    """Read a file of ours that is no manifest; a key that is there twice is a mistake."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(str(path), "", expected="a readable file", found=str(error.strerror)) from error
    return read_settings_text(content, str(path))


def read_settings_text(content: bytes | str, source: str) -> list[Any]:
    """The documents of a text of ours that is no manifest."""
    try:
        found = list(read_yaml(content))
    except YamlProblem as problem:
        raise ConfigError(source, problem.where, expected="YAML", found=problem.found) from problem
    for document in found:
        if document.duplicates:
            raise ConfigError(source, document.duplicates[0], expected="each key once", found="it twice")
    return [document.value for document in found]
