"""Results on standard output: json, yaml, or tables that read the same in a pipe."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mooring.cli.options import Format

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
"""Columns where there is no terminal to ask; a terminal may be wider or narrower."""


VERSION = "mooring.dev/v1"
"""Of what commands print: fields may be added to it; one that goes or changes makes another version."""


def print_data(value: Any, form: Format, kind: str = "") -> None:
    """Print a value as json or yaml, keys in the order of its fields; with its version, if it has a kind."""
    import msgspec

    if kind:
        value = {"apiVersion": VERSION, "kind": kind, **msgspec.to_builtins(value)}
    if form is Format.JSON:
        encoded = msgspec.json.format(msgspec.json.encode(value), indent=2)
        sys.stdout.write(encoded.decode() + "\n")
        return
    sys.stdout.writelines(yaml_lines(msgspec.to_builtins(value)))


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


def warn(warnings: Sequence[str], *, quiet: bool) -> None:
    """Say on standard error what is odd about the manifests, a line each."""
    for warning in () if quiet else warnings:
        print(f"warning: {' '.join(warning.split())}", file=sys.stderr)


def remark_ignored(ignored: Mapping[str, int], configured: Iterable[str] = (), *, quiet: bool) -> None:
    """Mention the kinds that scheduling does not read, and whether that matters; configuration in lines of its own.

    `configured` are lines about what was configured and changes nothing.
    """
    if quiet:
        return
    from mooring.config.settings import CONFIGURATION_KINDS
    from mooring.model.loading.unread import remarks

    configuration = sorted(kind for kind in ignored if {kind, kind.partition(".")[0]} & CONFIGURATION_KINDS)
    lines = list(remarks({kind: count for kind, count in ignored.items() if kind not in configuration}))
    for kind in configuration:
        name = kind if kind in CONFIGURATION_KINDS else kind.partition(".")[0]
        lines.append(f"{name} is configuration, not applied here: give its file with --config")
    for line in (*lines, *configured):
        print(f"\x1b[2m{line}\x1b[0m" if sys.stderr.isatty() else line, file=sys.stderr)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_RESERVED = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))


def yaml_lines(value: Any, indent: str = "") -> Iterator[str]:
    """A mapping or a list as lines of YAML, many times faster than a general emitter; other text is quoted as JSON."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _entry(f"{indent}{_scalar(key)}:", item, indent)
    else:
        for item in value:
            if isinstance(item, dict) and item:
                first, *rest = yaml_lines(item, indent + "  ")
                yield f"{indent}- {first[len(indent) + 2 :]}"
                yield from rest
            else:
                yield from _entry(f"{indent}-", item, indent)


def _entry(start: str, item: Any, indent: str) -> Iterator[str]:
    if isinstance(item, dict | list | tuple) and item:
        yield f"{start}\n"
        # Lists stand under their key without indentation, as kubectl writes them.
        yield from yaml_lines(item, indent + "  " if isinstance(item, dict) or start.endswith("-") else indent)
    else:
        yield f"{start} {_scalar(item)}\n"


def _scalar(item: Any) -> str:
    if isinstance(item, str) and _PLAIN.fullmatch(item) and item.lower() not in _RESERVED:
        return item
    if isinstance(item, tuple):
        return "[]"
    return json.dumps(item, ensure_ascii=False)
