"""What a command says when it cannot do what it was asked to: one line and an exit code."""

from pathlib import Path
from typing import NamedTuple

import typer

import mooring
from mooring.errors import InputError, MooringError, PluginError


class Failure(NamedTuple):
    message: str
    exit_code: int


def describe_failure(error: Exception) -> Failure | None:
    """Put an exception into one line; None for a fault of our own, which deserves its traceback."""
    match error:
        case InputError():
            return Failure(_one_line(str(error)), 2)
        case PluginError() if _is_shipped(error):
            return None
        case PluginError():
            return Failure(_one_line(str(error)), 2)
        case MooringError():
            return Failure(_one_line(str(error)), 1)
        case typer.TyperException() if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return Failure("", 0)
        case typer.TyperException():
            return Failure(f"{_one_line(error.format_message()).rstrip('.')} (see mooring --help)", error.exit_code)
        case OSError() if error.filename is not None:
            return Failure(f"{error.filename}: {(error.strerror or str(error)).lower()}", 1)
        case MemoryError():
            return Failure("out of memory", 1)
    return None


def _is_shipped(error: PluginError) -> bool:
    """Whether it is one of our own plugins that is at fault."""
    return Path(error.file).is_relative_to(Path(mooring.__file__).parent)


def _one_line(text: str) -> str:
    return " ".join(text.split())
