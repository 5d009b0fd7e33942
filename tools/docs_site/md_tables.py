"""Tables for generated pages."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format rows as a Markdown table."""
    lines = [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Format a text as inline code; nothing stays nothing."""
    return f"`{text}`" if text else ""


def plain(text: str) -> str:
    """Escape a text that is not Markdown, so that angle brackets and underscores are shown as they are."""
    for character in "\\*_<[":
        text = text.replace(character, f"\\{character}")
    return text


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()) for cell in cells) + " |"
