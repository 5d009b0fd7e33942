"""What a command says when it cannot do what it was asked to: one line and an exit code."""

import traceback
from typing import NamedTuple

import typer

from mooring.errors import InputError, MooringError

PLUGIN_MODULE = "mooring_plugin_"
"""How the modules of users' plugin files are called."""


class Failure(NamedTuple):
    message: str
    exit_code: int


def describe_failure(error: Exception) -> Failure | None:
    """Put an exception into one line; None for a fault of our own, which deserves its traceback."""
    plugin = _in_plugin_file(error)
    match error:
        case InputError():
            return Failure(_one_line(str(error)), 2)
        case MooringError():
            return Failure(_one_line(str(error)), 1)
        case typer.TyperException() if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return Failure("", 0)
        case typer.TyperException():
            return Failure(f"{_one_line(error.format_message()).rstrip('.')} (see mooring --help)", error.exit_code)
        case _ if plugin is not None:
            found = _one_line(f"{type(error).__name__}: {error}")
            where = f"{plugin.filename}: line {plugin.lineno}: {plugin.name}"
            return Failure(f"{where}: expected an answer for every node, found {found}", 2)
        case OSError() if error.filename is not None:
            return Failure(f"{error.filename}: {(error.strerror or str(error)).lower()}", 1)
        case MemoryError():
            return Failure("out of memory", 1)
    return None


def _in_plugin_file(error: Exception) -> traceback.FrameSummary | None:
    """The innermost line of a user's plugin that an exception came through."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__", "")).startswith(PLUGIN_MODULE):
            found = traceback.FrameSummary(frame.f_code.co_filename, line, frame.f_code.co_qualname)
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())
