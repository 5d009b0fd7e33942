"""`mooring explain --log`: what a decision log says of a pod or a workload, line by line."""

from pathlib import Path
from typing import Any

from mooring.cli.options import Format
from mooring.cli.output import make_console, print_data
from mooring.errors import InputError
from mooring.model.api.meta import timestamp_text
from mooring.observe.decision_log import read_log


def print_history(path: Path, about: str, output: Format) -> None:
    lines = list(read_log(path, about))
    if not lines:
        raise InputError(f"{path}: expected decisions about {about}, found none")
    if output is not Format.TABLE:
        print_data(lines, output)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="")
    for column in ("TIME", "WHAT", "WHO", "NODE", "WHY"):
        table.add_column(column, overflow="fold")
    for line in lines:
        who = str(line.get("pod") or line.get("workload") or "")
        table.add_row(timestamp_text(line["time"]), line["kind"], who, str(line.get("node", "")), _why(line))
    make_console().print(table)


def _why(line: dict[str, Any]) -> str:
    return str(line.get("message") or line.get("reason") or "")
