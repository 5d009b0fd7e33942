"""The plan of rebalancing for people: a line a pod that moves, a line a strategy, a line a reason to stay."""

from collections import Counter

from rich.console import Console
from rich.text import Text

from mooring.cli.tables import count, make_table, print_table
from mooring.report.rebalance import RebalanceResult, RebalanceSummary

MOST_STEPS = 40
"""Pods that a table lists before it refers to json."""


def print_rebalance(console: Console, result: RebalanceResult) -> None:
    console.print(_summary(result.summary), soft_wrap=True)
    if result.steps:
        console.print()
        _print_steps(console, result)
    if result.strategies:
        console.print()
        _print_strategies(console, result)
    if result.stays:
        console.print()
        console.print("STAY", style="bold")
        _print_stays(console, result)


def _summary(found: RebalanceSummary) -> Text:
    if found.compatible:
        return Text(f"{count(found.pods, 'pod')} would be evicted by the descheduler", style="bold")
    verb = "moves" if found.pods == 1 else "move"
    text = Text(f"{count(found.pods, 'pod')} {verb}" if found.pods else "no pod moves", style="bold green")
    text.append(f", {found.stays:,} {'stays' if found.stays == 1 else 'stay'}", style="default not bold")
    if found.pods:
        text.append(f"; gain {found.gain:.1f}, cost {found.cost:.1f}", style="default not bold")
    if found.emptied:
        text.append(f"; empty then: {', '.join(found.emptied)}", style="default not bold")
    if found.placed_first:
        text.append(f"; {count(found.placed_first, 'waiting pod')} placed first", style="default not bold")
    return text


def _print_steps(console: Console, result: RebalanceResult) -> None:
    if result.summary.compatible:
        table = make_table("NAMESPACE", "POD", "FROM", "STRATEGY", "PROFILE")
        for step in result.steps[:MOST_STEPS]:
            table.add_row(step.namespace, step.pod, step.node, step.strategy, step.profile)
    else:
        table = make_table(">MOVE", "NAMESPACE", "POD", "FROM", "TO", ">GAIN", ">COST", "=REASON")
        for step in result.steps[:MOST_STEPS]:
            worth = (f"{step.gain:.1f}", f"{step.cost:.1f}")
            table.add_row(
                str(step.move), step.namespace, step.pod, step.node, step.target or "anywhere", *worth, step.reason
            )
    print_table(console, table)
    if len(result.steps) > MOST_STEPS:
        more = count(len(result.steps) - MOST_STEPS, "more pod")
        console.print(f"... and {more}; -o json lists them all", style="dim")


def _print_strategies(console: Console, result: RebalanceResult) -> None:
    weighed = not result.summary.compatible
    table = make_table("STRATEGY", ">PODS", *((">STAY", ">GAIN", ">COST") if weighed else ()), "=NODES")
    for found in result.strategies:
        nodes = ", ".join(f"{len(names)} {name}" for name, names in found.nodes.items())
        worth = (f"{found.stays:,}", f"{found.gain:.1f}", f"{found.cost:.1f}") if weighed else ()
        table.add_row(found.strategy, f"{found.pods:,}", *worth, nodes or "-")
    print_table(console, table)


def _print_stays(console: Console, result: RebalanceResult) -> None:
    """A line for each strategy and reason, not broken up: somebody may look for it."""
    counted = Counter((stay.strategy, stay.reason) for stay in result.stays)
    first = {(stay.strategy, stay.reason): f"{stay.namespace}/{stay.pod}" for stay in reversed(result.stays)}
    for (strategy, reason), number in list(counted.items())[:MOST_STEPS]:
        others = f" and {count(number - 1, 'other')}" if number > 1 else ""
        line = Text(f"{first[strategy, reason]}{others}", style="bold yellow")
        line.append(f": {strategy}: {reason}", style="default not bold")
        console.print(line, soft_wrap=True)
