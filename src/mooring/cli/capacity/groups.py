"""Node groups: what the Cluster Autoscaler would do, for people."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from mooring.cli.progress import ProgressBar
from mooring.cli.tables import count, make_table, print_table
from mooring.report.node_groups import NodeGroupsResult

if TYPE_CHECKING:
    from mooring.drivers.offline.reading import Loaded

MOST_PODS = 3


def plan(loaded: "Loaded", file: Path, flags: list[str], progress: ProgressBar) -> NodeGroupsResult:
    """One loop of the autoscaler on what was read."""
    from mooring.config.autoscaler_flags import parse_autoscaler_flags
    from mooring.config.node_groups import parse_node_groups
    from mooring.config.reading import load_documents
    from mooring.drivers.offline.autoscaler import plan_node_groups
    from mooring.report.node_groups import make_node_groups_result

    groups = parse_node_groups(load_documents(file), str(file))
    read = parse_autoscaler_flags(flags, "--autoscaler-flag")
    progress.phase("planning node groups")
    now = loaded.begin().now
    made = plan_node_groups(loaded.assembly, loaded.manifests, groups, read, now=now, source=str(file))
    return make_node_groups_result(made.scale_up, made.scale_down)


def print_groups(console: Console, result: NodeGroupsResult) -> None:
    console.print(_summary(result), soft_wrap=True)
    if result.grow:
        console.print()
        console.print("TO GROW", style="bold")
        table = make_table("GROUP", ">FROM", ">TO")
        for each in result.grow:
            table.add_row(each.group, str(each.from_size), str(each.to_size))
        print_table(console, table)
        console.print(f"for {_named(result.pods)}", soft_wrap=True)
    if result.unhelped:
        console.print()
        console.print("NO GROUP CAN HELP", style="bold")
        for equal in result.unhelped:
            said = "; ".join(f"{group}: {', '.join(texts)}" for group, texts in equal.reasons.items())
            console.print(f"{_named(equal.pods)}: {said}", soft_wrap=True)
    if result.unneeded:
        console.print()
        console.print("NOT NEEDED", style="bold")
        deleted = {*result.delete_empty, *result.delete_drained}
        for node in result.unneeded:
            console.print(f"{node}: {'it goes now' if node in deleted else 'it goes if that stays so'}")
    if result.kept:
        console.print()
        console.print("STAY", style="bold")
        table = make_table("NODE", "WHY", "POD")
        for kept in result.kept:
            table.add_row(kept.node, kept.reason, kept.pod or "-")
        print_table(console, table)


def _summary(result: NodeGroupsResult) -> Text:
    added = sum(each.to_size - each.from_size for each in result.grow)
    text = Text(f"{result.result}: {count(added, 'node')} for {count(len(result.pods), 'pod')}", style="bold")
    without = sum(len(each.pods) for each in result.unhelped)
    if without:
        text.append(f"; no group for {count(without, 'pod')}", style="bold yellow")
    if result.unneeded:
        text.append(f"; {count(len(result.unneeded), 'node')} not needed", style="bold green")
    return text


def _named(pods: list[str]) -> str:
    more = f" and {len(pods) - MOST_PODS:,} more" if len(pods) > MOST_PODS else ""
    return ", ".join(pods[:MOST_PODS]) + more
