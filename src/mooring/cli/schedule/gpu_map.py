"""The map of GPUs for people: a line a card."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from mooring.cli.tables import count, make_table, print_table
from mooring.report.gpus import Gpu, GpuShare, NodeGpus

MOST_NODES = 8
"""Nodes that the map shows before it refers to --wide."""
SLICES = 8


def print_gpu_maps(console: Console, maps: Sequence[NodeGpus], *, wide: bool) -> None:
    if not maps:
        return
    console.print()
    table = make_table("NODE", ">GPU", "MODEL", "TAKEN", "WHO")
    for found in maps if wide else maps[:MOST_NODES]:
        for at, gpu in enumerate(found.gpus):
            name = f"{found.node} ({found.sharing})" if not at else ""
            table.add_row(name, f"{gpu.index}", gpu.model, _taken(found, gpu), _who(gpu))
    print_table(console, table)
    if not wide and len(maps) > MOST_NODES:
        more = count(len(maps) - MOST_NODES, "more node")
        console.print(f"... and {more} with shared GPUs; --wide or -o json shows all", style="dim")


def _taken(node: NodeGpus, gpu: Gpu) -> Text:
    if not gpu.is_healthy:
        return Text("unhealthy", style="red")
    if node.sharing == "mig":
        return Text(_slices(gpu))
    if node.sharing in ("time-slicing", "mps"):
        return Text(f"{len(gpu.shares)}/{gpu.replicas}")
    cores = sum(share.cores_percent for share in gpu.shares)
    memory = sum(share.memory_mib for share in gpu.shares)
    text = f"{cores:3.0f}% cores" if cores or not gpu.memory_mib else ""
    if gpu.memory_mib:
        text += f"{', ' if text else ''}{memory:,}/{gpu.memory_mib:,} MiB"
    return Text(text)


def _slices(gpu: Gpu) -> str:
    """The card's slices: a letter for each instance, a dot for what is free."""
    drawn = ["·"] * SLICES
    for at, share in enumerate(sorted(gpu.shares, key=lambda share: share.start)):
        if share.start < 0:
            return "whole"
        for number in range(share.start, min(share.start + _width(share), SLICES)):
            drawn[number] = chr(ord("a") + at)
    return "".join(drawn)


def _width(share: GpuShare) -> int:
    """How many slices of memory an instance takes; those of 3g take one more than of compute."""
    compute = int(share.profile.partition("g")[0] or 1)
    return {3: 4, 7: 8}.get(compute, compute)


def _who(gpu: Gpu) -> str:
    return ", ".join(_share(share) for share in sorted(gpu.shares, key=lambda share: share.start)) or "-"


def _share(share: GpuShare) -> str:
    name = share.pod if share.namespace == "default" else f"{share.namespace}/{share.pod}"
    if share.profile:
        return f"{name} {share.profile}"
    parts = [f"{share.cores_percent:g}%"] if share.cores_percent else []
    parts += [f"{share.memory_mib:,} MiB"] if share.memory_mib else []
    return " ".join([name, *parts])
