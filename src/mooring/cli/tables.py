"""Tables without lines, in kubectl's manner: upper-case headers, columns held apart by spaces."""

from rich.console import Console
from rich.table import Table


def make_table(*headers: str, low_headers: bool = False) -> Table:
    """A table with these columns; `>` before a header aligns its column to the right.

    Headers of several lines look better when they stand on their columns (`low_headers`), long cells when they do not.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in headers:
        is_right = header.startswith(">")
        name = header.removeprefix(">")
        table.add_column(
            name,
            justify="right" if is_right else "left",
            overflow="fold",
            vertical="bottom" if low_headers else "top",
        )
    return table


def print_table(console: Console, table: Table) -> None:
    """Print a table, without the blanks that fill its last column."""
    with console.capture() as captured:
        console.print(table)
    console.file.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def count(number: int, noun: str) -> str:
    """`1 pod`, `40 pods`, `12,000 pods`"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
