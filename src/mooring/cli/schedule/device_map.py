"""A map of claimed devices: a line a pool, a box a device."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from mooring.cli.tables import count
from mooring.report.devices import DevicePool, DeviceUse, NodeDevices

MOST_NODES = 8
"""Nodes that are drawn before the map refers to --wide."""
FREE, TAKEN, PARTLY, DRAWN, TAINTED = "░", "█", "▒", "·", "!"


def print_device_maps(console: Console, nodes: Sequence[NodeDevices], *, wide: bool) -> None:
    if not nodes:
        return
    console.print()
    console.print(Text("DEVICES", style="bold"), Text(f"{TAKEN} taken {PARTLY} partly {FREE} free", style="dim"))
    for node in nodes if wide else nodes[:MOST_NODES]:
        for pool in node.pools:
            cells = "".join(_cell(device) for device in pool.devices)
            console.print(f"{node.node}  {pool.driver}  {cells}", soft_wrap=True, highlight=False)
            for line in _lines(pool):
                console.print(f"    {line}", soft_wrap=True, highlight=False, style="dim")
    if len(nodes) > MOST_NODES and not wide:
        more = count(len(nodes) - MOST_NODES, "more node")
        console.print(f"... and {more}; --wide or -o json lists all", style="dim")


def _cell(device: DeviceUse) -> str:
    if device.holders:
        return PARTLY if device.holders[0].amounts else TAKEN
    if device.taints:
        return TAINTED
    return DRAWN if device.drawn_on else FREE


def _lines(pool: DevicePool) -> list[str]:
    return [
        f"{device.name}: {'; '.join(_holders(device))}" + (f" ({', '.join(device.taints)})" if device.taints else "")
        for device in pool.devices
        if device.holders or device.taints
    ]


def _holders(device: DeviceUse) -> list[str]:
    made = []
    for holder in device.holders:
        amounts = ", ".join(f"{amount} {name}" for name, amount in holder.amounts.items())
        who = ", ".join(holder.pods) or f"claim {holder.claim}"
        details = ", ".join(filter(None, (amounts, holder.sharing)))
        made.append(f"{who} ({details})" if details else who)
    return made or ["nobody"]
