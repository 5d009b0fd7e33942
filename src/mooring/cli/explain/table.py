"""What `mooring explain` found, for people: the answer, what would help, then the nodes."""

import re

from msgspec import UNSET
from rich.console import Console
from rich.text import Text

from mooring.cli.tables import count, make_table, pool_policy, print_table
from mooring.report.amounts import requests_text
from mooring.report.explain.data import Choice, GangStatus, GroupRoom, NodeAnswer, PodExplanation, PoolStanding

MOST_NODES = 12
MOST_REMEDIES = 10
MOST_NAMED = 4
MOST_ROOMY = 8
"""Nodes with room for a gang that are named."""
MOST_AHEAD = 5


def print_explanation(console: Console, found: PodExplanation, *, every: bool) -> None:
    console.print(_headline(found), soft_wrap=True)
    if found.preemption:
        console.print(found.preemption, soft_wrap=True, highlight=False)
    if found.hint:
        console.print(found.hint, style="cyan", soft_wrap=True, highlight=False)
    if found.as_of:
        console.print(f"shown {found.as_of}", style="dim", soft_wrap=True)
    if found.gang is not None:
        _print_gang(console, found.gang, every=every)
    if found.pools:
        _print_pools(console, found)
    if not found.as_of or found.refused is not None:
        return
    if found.node:
        _print_choice(console, found)
    _print_refusals(console, found)
    if found.wants_node:
        _print_remedies(console, found)
    elif found.feasible and found.state == "waiting" and (found.is_capped or found.gang is None):
        console.print("it is not for want of a node that it waits")
    if found.feasible:
        _print_scores(console, found, every=every)
    _print_verdicts(console, found, every=every)


def _headline(found: PodExplanation) -> Text:
    text = Text(f"pod {found.namespace}/{found.pod} ", style="bold")
    words = {
        "placed": (f"goes to {found.node}", "green"),
        "running": (f"runs on {found.node}", "green"),
        "waiting": ("waits", "yellow"),
        "gated": ("is behind a gate", "yellow"),
    }
    said, style = words.get(found.state, (f"is {found.state}", "yellow"))
    text.append(said, style=style)
    return text.append(f": {found.message}", style="default not bold") if found.message else text


# Its node pools.


def _print_pools(console: Console, found: PodExplanation) -> None:
    console.print()
    console.print("NODE POOLS", style="bold")
    table = make_table("POOL", "POLICY", "=TO THIS POD")
    for pool in found.pools:
        policy = pool_policy(pool.policy, pool.reserved_percent, moves_back=pool.moves_back)
        table.add_row(pool.pool, policy, _standing(pool, found))
    print_table(console, table)


def _standing(pool: PoolStanding, found: PodExplanation) -> str:
    if pool.standing == "own":
        if not found.node:
            return "its own; it waits for room there"
        return "its own, where it is" if pool.is_there else "its own too; it is in another one"
    if pool.standing == "spilled":
        back = "; it goes back when there is room" if pool.moves_back else ""
        return f"its own, from which it spilled over to {found.node}{back}"
    if pool.standing == "not allowed":
        return "not allowed: " + ("dedicated to others" if pool.policy == "Dedicated" else "it has a dedicated pool")
    here = "it is here: " if pool.is_there else ""
    most = f"allowed, in {100 - pool.reserved_percent}% of each node, which others share"
    return here + (most if pool.reserved_percent else "allowed, after its own pools and nodes of nobody")


# Its gang.


def _print_gang(console: Console, gang: GangStatus, *, every: bool) -> None:
    console.print()
    console.print("GANG", style="bold")
    text = Text(f"{gang.name}: needs {gang.minimum}, has {count(gang.members, 'member')}, {gang.running:,} running")
    if gang.wants:
        text.append(f"; wants {gang.wants}")
    console.print(text, soft_wrap=True)
    if gang.groups:
        table = make_table("ROLE", "EACH ASKS FOR", ">WAITING", ">NEEDED", ">FIT NOW", "ROOM")
        for group in gang.groups:
            numbers = (f"{number:,}" for number in (group.waiting, group.needed, group.fitting))
            table.add_row(group.role or "-", requests_text(group.requests), *numbers, _room(group, every=every))
        print_table(console, table)
        for group in gang.groups:
            _print_levels(console, group)
    _print_help(console, gang, every=every)
    if gang.ahead:
        console.print()
        console.print("AHEAD OF IT", style="bold")
        for ahead in gang.ahead if every else gang.ahead[:MOST_AHEAD]:
            kept = ", for which room is kept" if ahead.has_reservation else ""
            why = f": {ahead.message}" if ahead.message else ""
            console.print(f"gang {ahead.gang} ({count(ahead.members, 'member')}){kept}{why}", soft_wrap=True)
        if not every and len(gang.ahead) > MOST_AHEAD:
            console.print(f"... and {count(len(gang.ahead) - MOST_AHEAD, 'more gang')}", style="dim")


def _print_help(console: Console, gang: GangStatus, *, every: bool) -> None:
    """How much it lacks, and who would have to go."""
    if gang.never_fits:
        console.print(f"it can never fit, even on an empty cluster: {gang.never_fits}", style="red", soft_wrap=True)
        return
    if gang.lacks:
        missing = sum(group.needed - group.fitting for group in gang.groups)
        console.print(f"no room for {count(missing, 'member')}: {requests_text(gang.lacks)} in all", soft_wrap=True)
    if gang.starts_without:
        shown = gang.starts_without if every else gang.starts_without[:MOST_ROOMY]
        named = ", ".join(f"{leaver.pod}{f' (until {leaver.end})' if leaver.end else ''}" for leaver in shown)
        more = len(gang.starts_without) - len(shown)
        rest = f" and {more:,} more" if more else ""
        console.print(f"it would start without {named}{rest}", style="cyan", soft_wrap=True)


def _room(group: GroupRoom, *, every: bool) -> str:
    if not group.nodes:
        return "nowhere"
    shown = group.nodes if every else group.nodes[:MOST_ROOMY]
    named = ", ".join(f"{found.node} {found.room}" for found in shown)
    return named if len(shown) == len(group.nodes) else f"{named}, ... ({count(len(group.nodes), 'node')})"


def _print_levels(console: Console, group: GroupRoom) -> None:
    if not group.levels:
        return
    console.print()
    of_role = f" FOR {group.role}" if group.role else ""
    console.print(f"TOPOLOGY{of_role}", style="bold")
    table = make_table("LEVEL", ">DOMAINS", "LARGEST", ">HOLDS", ">NEEDED")
    for level in group.levels:
        needed = "-" if level.needed is None else f"{level.needed:,}"
        table.add_row(level.title, f"{level.domains:,}", level.largest or "-", f"{level.holds:,}", needed)
    print_table(console, table)


# Why this node.


def _print_choice(console: Console, found: PodExplanation) -> None:
    """Who came second, and which plugins made the difference."""
    console.print()
    console.print("WHY THIS NODE", style="bold")
    if found.gang_place:
        console.print(f"the place of its gang decides: {found.gang_place}", soft_wrap=True)
    if found.choice is None:
        when = "until those were evicted" if found.evicted else "as things stood then"
        console.print(f"{found.node} would not take it {when}", soft_wrap=True)
    elif found.choice.runner_up is None:
        console.print(f"it is the only one of {count(found.nodes_in_all, 'node')} that will do")
    else:
        _print_runner_up(console, found.choice, is_placed_by_gang=bool(found.gang_place))
    for line in found.choice.alignment if found.choice else ():
        console.print(f"the kubelet gives {line}", soft_wrap=True)


def _print_runner_up(console: Console, choice: Choice, *, is_placed_by_gang: bool) -> None:
    second = choice.runner_up
    assert second is not None
    line = f"{choice.node} has {choice.total} points; the runner-up is {second.node} with {second.total}"
    console.print(line, soft_wrap=True)
    if choice.equal_totals and not is_placed_by_gang:
        others = count(choice.equal_totals, "other node")
        verb = "has" if choice.equal_totals == 1 else "have"
        console.print(f"{others} {verb} as many: the tie is broken by the seed", soft_wrap=True)
    elif choice.lead < 0 and not is_placed_by_gang:
        console.print("the profile scores only some of the nodes, and the runner-up was not among them")
    for name, difference in sorted(choice.lead_by_plugin.items(), key=lambda item: -item[1]):
        console.print(f"  {name} {difference:+d}", style="green" if difference > 0 else "red")


# What is in the way, and what would help.


def _print_refusals(console: Console, found: PodExplanation) -> None:
    console.print()
    console.print(f"{found.feasible:,} of {count(found.nodes_in_all, 'node')} will do", style="bold")
    if not found.refusals:
        return
    table = make_table(">NODES", ">ONLY THIS", "PLUGIN", "=REASON")
    for refusal in found.refusals:
        alone = f"{refusal.alone:,}" if refusal.alone else "-"
        table.add_row(f"{refusal.nodes:,}", alone, refusal.plugin, refusal.reason)
    print_table(console, table)


def _print_remedies(console: Console, found: PodExplanation) -> None:
    console.print()
    console.print("WHAT WOULD MAKE IT FIT", style="bold")
    if not found.remedies:
        refused_by_several = sum(len(node.verdicts) > 1 for node in found.nodes)
        several = (
            f": {count(refused_by_several, 'node')} refuse for several reasons at once" if refused_by_several else ""
        )
        console.print(f"no single change{several}")
        return
    for remedy in found.remedies[:MOST_REMEDIES]:
        named = ", ".join(remedy.nodes[:MOST_NAMED]) + (", ..." if len(remedy.nodes) > MOST_NAMED else "")
        line = Text(f"  {remedy.change}", style="cyan").append(f": opens {count(remedy.opens, 'node')}", "default")
        console.print(line.append(f" ({named})", style="dim"), soft_wrap=True)
    if len(found.remedies) > MOST_REMEDIES:
        console.print(f"  ... and {count(len(found.remedies) - MOST_REMEDIES, 'more change')}", style="dim")


# Node by node.


def _print_scores(console: Console, found: PodExplanation, *, every: bool) -> None:
    """Feasible nodes by total, with each plugin's score times its weight."""
    best = [node for node in found.nodes if node.scores is not UNSET]
    shown = best if every else best[:MOST_NODES]
    console.print()
    console.print(f"SCORES{_of(len(shown), len(best))}: after weighing, the best first", style="bold")
    headers = [f">{_broken(name)}\nx{weight}" for name, weight in found.weights.items()]
    table = make_table("NODE", ">TOTAL", *headers, low_headers=True)
    for node in shown:
        table.add_row(node.node, str(node.total), *(_points(node, name) for name in found.weights))
    print_table(console, table)


def _points(node: NodeAnswer, plugin: str) -> str:
    return "" if node.scores is UNSET else str(node.scores[plugin].weighted)


def _print_verdicts(console: Console, found: PodExplanation, *, every: bool) -> None:
    """Nodes that refuse, those nearest to fitting first, with everything that is in the way."""
    refusing = [node for node in found.nodes if node.verdicts]
    if not refusing:
        return
    shown = refusing if every else refusing[:MOST_NODES]
    console.print()
    console.print(f"REFUSALS{_of(len(shown), len(refusing))}: the nearest to fitting first", style="bold")
    table = make_table("NODE", "PLUGIN", "=REASON")
    for node in shown:
        name = node.node
        for verdict in node.verdicts:
            table.add_row(name, verdict.plugin, ", ".join(verdict.reasons))
            name = ""
    print_table(console, table)


def _of(shown: int, there: int) -> str:
    return "" if shown == there else f" ({shown:,} of {there:,} nodes; --all shows every one)"


def _broken(name: str) -> str:
    """A plugin's name over several lines, so that many columns fit: NodeResources / Balanced / Allocation."""
    lines = [""]
    for word in re.findall(r"[A-Z][a-z0-9]*|[^A-Z]+", name):
        if lines[-1] and len(lines[-1]) + len(word) > 13:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)
