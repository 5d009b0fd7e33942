"""`mooring shadow report`: how often a shadow agreed with the present scheduler, and where it differed."""

from pathlib import Path
from typing import Annotated

import typer

from mooring.cli.options import Format, Output
from mooring.cli.output import make_console, print_data

shadow = typer.Typer(
    name="shadow",
    help="What `mooring run --shadow` found out.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@shadow.callback()
def _shadow() -> None:
    """What `mooring run --shadow` found out."""


@shadow.command(short_help="Agreement, differences with their reasons, and delays.")
def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `mooring run --shadow --shadow-log FILE` wrote.")],
    output: Output = Format.TABLE,
    examples: Annotated[int, typer.Option(min=0, metavar="N", help="How many differences of each kind to list.")] = 20,
) -> None:
    """Show how the decisions of a shadow compare with what the present scheduler did.

    Pods are counted by outcome: the same node, another one that scored equally, another one, bound before Mooring
    decided, bound although Mooring found no node, and not bound yet. Differences come with the plugins that cause them.

    \b
    Example:
      mooring run --shadow --shadow-log shadow.jsonl
      mooring shadow report shadow.jsonl
      mooring shadow report shadow.jsonl -o json
    """
    from mooring.cli.shadow.table import print_report
    from mooring.observe.shadow_log import read_shadow_log
    from mooring.report.shadow import make_shadow_report

    found = make_shadow_report(read_shadow_log(file), examples)
    if output is Format.TABLE:
        print_report(make_console(), found)
    else:
        print_data(found, output, "ShadowReport")
