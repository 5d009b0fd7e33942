"""Results on standard output: json, yaml, or tables that read the same in a pipe."""

import sys
from typing import TYPE_CHECKING, Any

from mooring.cli.options import Format

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
"""Columns where there is no terminal to ask; a terminal may be wider or narrower."""


def print_data(value: Any, form: Format) -> None:
    """Print a value as json or yaml, keys in the order of its fields."""
    import msgspec

    if form is Format.JSON:
        encoded = msgspec.json.format(msgspec.json.encode(value), indent=2)
        sys.stdout.write(encoded.decode() + "\n")
        return
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    yaml.dump(msgspec.to_builtins(value), sys.stdout, Dumper=dumper, sort_keys=False, width=2**20, allow_unicode=True)


def make_console() -> "Console":
    """A console for tables: coloured at a terminal, plain and of fixed width elsewhere."""
    from rich.console import Console

    is_terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout,
        width=None if is_terminal else WIDTH,
        force_terminal=is_terminal,
        highlight=False,
        markup=False,
        emoji=False,
    )
