"""The reference of the commands, from the definitions that the command line is built from."""

import inspect
from typing import Any

import typer
from md_tables import code, plain, table

from mooring.cli.main import app

INTRODUCTION = """# Reference: commands

This page is generated from the command line of Mooring. [Commands](../commands.md) explains how to use them.

"""


def commands() -> dict[str, Any]:
    """Every command by its name."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def page() -> str:
    """Return the page."""
    return INTRODUCTION + "\n".join(_section(name, command) for name, command in commands().items())


def options(command: Any) -> list[tuple[str, str]]:
    """Return the options and arguments of a command as its `--help` shows them, each with its meaning."""
    context = typer.Context(command)
    records = [parameter.get_help_record(context) for parameter in command.params if not _is_hidden(parameter)]
    return [record for record in records if record is not None]


def _section(name: str, command: Any) -> str:
    text, _, examples = inspect.cleandoc(command.help or "").partition("\b\n")
    parts = [f"## mooring {name}\n", plain(text.strip()) + "\n"]
    if examples:
        parts.append(f"```text\n{examples.strip()}\n```\n")
    rows = [(code(option), plain(meaning)) for option, meaning in options(command)]
    return "\n".join([*parts, table(("option", "meaning"), rows)])


def _is_hidden(parameter: Any) -> bool:
    return bool(getattr(parameter, "hidden", False))
