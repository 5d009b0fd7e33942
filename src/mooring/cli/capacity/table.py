"""What to buy and what could go, for people."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from mooring.cli.tables import count, make_table, print_table
from mooring.report.capacity import Bought, CapacityResult, Kept, Move

NOT_TRIED = "it is nominated to a node, or asks for a label that only a provider sets"
MOST_PODS = 3
"""Pods of one node that are named before the rest is only counted."""


def print_capacity(console: Console, result: CapacityResult) -> None:
    console.print(_summary(result), soft_wrap=True)
    if result.buy:
        _print_bought(console, result.buy)
    if result.fits:
        _print_fits(console, result.fits)
    unplaced = [(each.pod, "; ".join(each.reasons)) for each in result.unplaced]
    _print_lines(console, "NO NODE CAN BE BOUGHT FOR", unplaced)
    _print_lines(console, "NOT TRIED", [(pod, NOT_TRIED) for pod in result.ignored])
    if result.moves:
        _print_moves(console, result.moves)
    if result.kept:
        _print_kept(console, result.kept)
    _print_lines(console, "EXPIRED", [(node, "it has outlived expireAfter, and goes") for node in result.expired])


def _summary(result: CapacityResult) -> Text:
    text = Text(f"buy {count(len(result.buy), 'node')} at {_price(result.cost_per_hour)}", style="bold")
    if result.unplaced:
        text.append(f"; no node for {count(len(result.unplaced), 'pod')}", style="bold yellow")
    if result.moves:
        saved = max(move.saves_per_hour for move in result.moves)
        text.append(f"; up to {_price(saved)} can be saved now", style="bold green")
    return text


def _price(amount: float) -> str:
    return f"{amount:.4f} an hour"


def _named(pods: Sequence[str]) -> str:
    more = f" and {len(pods) - MOST_PODS:,} more" if len(pods) > MOST_PODS else ""
    return ", ".join(pods[:MOST_PODS]) + more


def _print_bought(console: Console, bought: Sequence[Bought]) -> None:
    console.print()
    console.print("TO BUY", style="bold")
    table = make_table("NODEPOOL", "INSTANCE TYPE", "ZONE", "CAPACITY TYPE", ">PRICE", ">TYPES", "PODS")
    for each in bought:
        table.add_row(
            each.node_pool,
            each.instance_type,
            each.zone,
            each.capacity_type,
            f"{each.price_per_hour:.4f}",
            f"{each.instance_types:,}",
            _named(each.pods),
        )
    print_table(console, table)


def _print_fits(console: Console, fits: dict[str, list[str]]) -> None:
    console.print()
    console.print("ROOM THERE IS, OR IS COMING", style="bold")
    table = make_table("NODE", "PODS")
    for node, pods in fits.items():
        table.add_row(node, _named(pods))
    print_table(console, table)


def _print_moves(console: Console, moves: Sequence[Move]) -> None:
    console.print()
    console.print("COULD GO", style="bold")
    table = make_table("REASON", "DECISION", "NODES", ">SAVES", "REPLACEMENT")
    for move in moves:
        new = move.replacement
        replacement = "-" if new is None else f"{new.instance_type} {new.zone} {new.capacity_type}"
        table.add_row(move.method, move.decision, _named(move.nodes), f"{move.saves_per_hour:.4f}", replacement)
    print_table(console, table)


def _print_kept(console: Console, kept: Sequence[Kept]) -> None:
    console.print()
    console.print("STAY", style="bold")
    table = make_table("NODE", ">PRICE", "=WHY")
    for each in kept:
        price = "-" if each.price_per_hour is None else f"{each.price_per_hour:.4f}"
        table.add_row(each.node, price, each.reason)
    print_table(console, table)


def _print_lines(console: Console, heading: str, lines: Sequence[tuple[str, str]]) -> None:
    if not lines:
        return
    console.print()
    console.print(heading, style="bold")
    for name, reason in lines:
        console.print(Text(name, style="bold yellow").append(f": {reason}", style="default not bold"), soft_wrap=True)
