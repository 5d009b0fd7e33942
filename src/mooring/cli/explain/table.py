"""What `mooring explain` found, for people: the answer, what would help, then the nodes."""

import re

from rich.console import Console
from rich.text import Text

from mooring.cli.explain.gang_table import print_gang
from mooring.cli.tables import count, make_table, print_table
from mooring.engine.explain import Explanation, contest
from mooring.report.explanations import count_refusals
from mooring.report.finding import Finding

MOST_NODES = 12
MOST_REMEDIES = 10
MOST_NAMED = 4


def print_finding(console: Console, finding: Finding, *, every: bool) -> None:
    console.print(_headline(finding), soft_wrap=True)
    if finding.preemption:
        console.print(finding.preemption, soft_wrap=True, highlight=False)
    if finding.as_of:
        console.print(f"shown {finding.as_of}", style="dim", soft_wrap=True)
    if finding.gang is not None:
        print_gang(console, finding.gang, every=every)
    explanation = finding.explanation
    if explanation is None or explanation.evaluation.refused is not None:
        return
    if finding.row >= 0:
        _print_choice(console, finding, explanation)
    _print_refusals(console, explanation)
    if finding.wants_a_node:
        _print_remedies(console, explanation)
    elif finding.state == "waiting" and (finding.is_capped or finding.gang is None):
        console.print("it is not for want of a node that it waits")
    if len(explanation.evaluation.feasible):
        _print_scores(console, explanation, every=every)
    _print_verdicts(console, explanation, every=every)


def _headline(finding: Finding) -> Text:
    text = Text(f"pod {finding.pod.key} ", style="bold")
    words = {
        "placed": (f"goes to {finding.node}", "green"),
        "running": (f"runs on {finding.node}", "green"),
        "waiting": ("waits", "yellow"),
        "gated": ("is behind a gate", "yellow"),
    }
    said, style = words.get(finding.state, (f"is {finding.state}", "yellow"))
    text.append(said, style=style)
    return text.append(f": {finding.message}", style="default not bold") if finding.message else text


def _print_choice(console: Console, finding: Finding, explanation: Explanation) -> None:
    """Who came second, and which plugins made the difference."""
    evaluation = explanation.evaluation
    console.print()
    console.print("WHY THIS NODE", style="bold")
    if finding.gang_place:
        console.print(f"the place of its gang decides: {finding.gang_place}", soft_wrap=True)
    if finding.row not in evaluation.feasible.tolist():
        when = "until those were evicted" if finding.evicted else "as things stood then"
        console.print(f"{finding.node} would not take it {when}", soft_wrap=True)
        return
    outcome = contest(evaluation, finding.row)
    total = int(evaluation.totals[outcome.winner])
    if outcome.runner_up is None:
        console.print(f"it is the only one of {count(len(evaluation.rows), 'node')} that will do")
        return
    second = evaluation.cluster.nodes.name(int(evaluation.feasible[outcome.runner_up]))
    second_total = int(evaluation.totals[outcome.runner_up])
    console.print(f"{finding.node} has {total} points; the runner-up is {second} with {second_total}", soft_wrap=True)
    if outcome.equals and not finding.gang_place:
        others = count(outcome.equals, "other node")
        verb = "has" if outcome.equals == 1 else "have"
        console.print(f"{others} {verb} as many: the tie is broken by the seed", soft_wrap=True)
    elif outcome.lead < 0 and not finding.gang_place:
        console.print("the profile scores only some of the nodes, and the runner-up was not among them")
    ranked = sorted(outcome.by_plugin.items(), key=lambda item: -item[1])
    for name, difference in ranked:
        console.print(f"  {name} {difference:+d}", style="green" if difference > 0 else "red")


def _print_refusals(console: Console, explanation: Explanation) -> None:
    evaluation = explanation.evaluation
    feasible, all_nodes = len(evaluation.feasible), len(evaluation.rows)
    console.print()
    console.print(f"{feasible:,} of {count(all_nodes, 'node')} will do", style="bold")
    refusals = count_refusals(explanation)
    if not refusals:
        return
    table = make_table(">NODES", ">ONLY THIS", "PLUGIN", "REASON")
    for (plugin, reason), (nodes, alone) in refusals.items():
        table.add_row(f"{nodes:,}", f"{alone:,}" if alone else "-", plugin, reason)
    print_table(console, table)


def _print_remedies(console: Console, explanation: Explanation) -> None:
    console.print()
    console.print("WHAT WOULD MAKE IT FIT", style="bold")
    if not explanation.remedies:
        refused_by_several = int((explanation.refusal_counts > 1).sum())
        console.print(f"no single change: {count(refused_by_several, 'node')} refuse for several reasons at once")
        return
    for remedy in explanation.remedies[:MOST_REMEDIES]:
        named = ", ".join(remedy.nodes[:MOST_NAMED]) + (", ..." if len(remedy.nodes) > MOST_NAMED else "")
        line = Text(f"  {remedy.change}", style="cyan").append(f": opens {count(len(remedy.nodes), 'node')}", "default")
        console.print(line.append(f" ({named})", style="dim"), soft_wrap=True)
    if len(explanation.remedies) > MOST_REMEDIES:
        console.print(f"  ... and {count(len(explanation.remedies) - MOST_REMEDIES, 'more change')}", style="dim")


def _print_scores(console: Console, explanation: Explanation, *, every: bool) -> None:
    """Feasible nodes by total, with each plugin's score times its weight."""
    evaluation = explanation.evaluation
    weights = {plugin.name: weight for plugin, weight in evaluation.profile.scores}
    place = {row: index for index, row in enumerate(evaluation.feasible.tolist())}
    best = [p for p in explanation.ranked() if int(evaluation.rows[p]) in place]
    shown = best if every else best[:MOST_NODES]
    console.print()
    console.print(f"SCORES{_of(len(shown), len(best))}: after weighing, the best first", style="bold")
    headers = [f">{_broken(name)}\nx{weights[name]}" for name in evaluation.scores]
    table = make_table("NODE", ">TOTAL", *headers, low_headers=True)
    for position in shown:
        row = int(evaluation.rows[position])
        index = place[row]
        points = [str(scores[index]) for scores in evaluation.scores.values()]
        table.add_row(evaluation.cluster.nodes.name(row), str(evaluation.totals[index]), *points)
    print_table(console, table)


def _print_verdicts(console: Console, explanation: Explanation, *, every: bool) -> None:
    """Nodes that refuse, those nearest to fitting first, with everything that is in the way."""
    counts = explanation.refusal_counts
    refusing = [position for position in explanation.ranked() if counts[position]]
    if not refusing:
        return
    shown = refusing if every else refusing[:MOST_NODES]
    console.print()
    console.print(f"REFUSALS{_of(len(shown), len(refusing))}: the nearest to fitting first", style="bold")
    table = make_table("NODE", "PLUGIN", "REASON")
    for position in shown:
        name = explanation.evaluation.cluster.nodes.name(int(explanation.evaluation.rows[position]))
        for verdict in explanation.verdicts(position):
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
