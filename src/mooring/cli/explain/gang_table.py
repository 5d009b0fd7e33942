"""What a gang waits for, for people."""

from rich.console import Console
from rich.text import Text

from mooring.actions.gangs.explain import GangExplanation
from mooring.actions.gangs.explain_groups import GroupRoom
from mooring.cli.tables import count, make_table, print_table
from mooring.plugins.node_resources_fit import describe_amount

MOST_NODES = 8
MOST_AHEAD = 5


def print_gang(console: Console, gang: GangExplanation, *, every: bool) -> None:
    console.print()
    console.print("GANG", style="bold")
    text = Text(f"{gang.name}: needs {gang.minimum}, has {count(gang.members, 'member')}, {gang.running:,} running")
    if gang.wants:
        text.append(f"; wants {gang.wants}")
    console.print(text, soft_wrap=True)
    if gang.groups:
        table = make_table("ROLE", "EACH ASKS FOR", ">WAITING", ">NEEDED", ">FIT NOW", "ROOM")
        for group in gang.groups:
            asks = ", ".join(f"{describe_amount(name, n)} {name}" for name, n in group.requests.items() if n) or "-"
            numbers = (f"{number:,}" for number in (group.waiting, group.needed, group.fitting))
            table.add_row(group.role or "-", asks, *numbers, _nodes(group, every=every))
        print_table(console, table)
        for group in gang.groups:
            _print_levels(console, group)
    if gang.ahead:
        console.print()
        console.print("AHEAD OF IT", style="bold")
        for ahead in gang.ahead if every else gang.ahead[:MOST_AHEAD]:
            kept = ", for which room is kept" if ahead.has_reservation else ""
            why = f": {ahead.message}" if ahead.message else ""
            console.print(f"gang {ahead.name} ({count(ahead.members, 'member')}){kept}{why}", soft_wrap=True)
        if not every and len(gang.ahead) > MOST_AHEAD:
            console.print(f"... and {count(len(gang.ahead) - MOST_AHEAD, 'more gang')}", style="dim")


def _nodes(group: GroupRoom, *, every: bool) -> str:
    if not group.nodes:
        return "nowhere"
    shown = group.nodes if every else group.nodes[:MOST_NODES]
    named = ", ".join(f"{name} {room}" for name, room in shown)
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
        table.add_row(level.title, f"{level.domains:,}", level.domain or "-", f"{level.holds:,}", needed)
    print_table(console, table)
