"""What `mooring explain` found, as json and yaml print it: every node, every plugin."""

from collections import Counter
from typing import Any

from mooring.actions.gangs.explain import GangExplanation
from mooring.engine.evaluate import PASSED
from mooring.engine.explain import Explanation, contest
from mooring.engine.verdict import Verdict
from mooring.report.finding import Finding

Json = dict[str, Any]


def to_data(finding: Finding) -> Json:
    pod = finding.pod
    data: Json = {
        "pod": pod.metadata.name,
        "namespace": pod.metadata.namespace,
        "state": finding.state,
        "node": finding.node,
        "message": finding.message,
        "asOf": finding.as_of,
        "schedulerName": pod.spec.scheduler_name,
        "priority": pod.spec.priority or 0,
    }
    if finding.preemption:
        data["preemption"] = finding.preemption
    if finding.evicted:
        data["evicted"] = list(finding.evicted)
    if finding.gang_place:
        data["gangPlace"] = finding.gang_place
    if finding.gang is not None:
        data["gang"] = gang_data(finding.gang)
    explanation = finding.explanation
    if explanation is None:
        return data
    evaluation = explanation.evaluation
    data["requests"] = dict(evaluation.shape.requests)
    data["nodesInAll"] = len(evaluation.rows)
    data["feasible"] = len(evaluation.feasible)
    data["refused"] = _verdict(evaluation.refused) if evaluation.refused else None
    data["refusals"] = [
        {"plugin": plugin, "reason": reason, "nodes": nodes, "alone": alone}
        for (plugin, reason), (nodes, alone) in count_refusals(explanation).items()
    ]
    data["remedies"] = [
        {"plugin": remedy.plugin, "change": remedy.change, "opens": len(remedy.nodes), "nodes": list(remedy.nodes)}
        for remedy in (explanation.remedies if finding.wants_a_node else ())
    ]
    data["choice"] = _choice(finding, explanation)
    data["weights"] = {
        plugin.name: weight for plugin, weight in evaluation.profile.scores if plugin.name in evaluation.scores
    }
    data["nodes"] = nodes_data(explanation)
    return data


def gang_data(gang: GangExplanation) -> Json:
    """The gang that a pod waits with."""
    return {
        "name": gang.name,
        "minimum": gang.minimum,
        "members": gang.members,
        "running": gang.running,
        "message": gang.message,
        "wants": gang.wants,
        "groups": [
            {
                "role": group.role,
                "requests": group.requests,
                "waiting": group.waiting,
                "needed": group.needed,
                "fitting": group.fitting,
                "nodes": [{"node": name, "room": room} for name, room in group.nodes],
                "levels": [
                    {"level": level.level, "title": level.title, "domains": level.domains, "largest": level.domain}
                    | {"holds": level.holds, "needed": level.needed}
                    for level in group.levels
                ],
            }
            for group in gang.groups
        ],
        "ahead": [
            {
                "gang": ahead.name,
                "members": ahead.members,
                "message": ahead.message,
                "hasReservation": ahead.has_reservation,
            }
            for ahead in gang.ahead
        ],
    }


def count_refusals(explanation: Explanation) -> dict[tuple[str, str], tuple[int, int]]:
    """(plugin, reason) -> on how many nodes it is given, and on how many of these nothing else is in the way."""
    if explanation.evaluation.refused is not None:
        return {}
    nodes: Counter[tuple[str, str]] = Counter()
    alone: Counter[tuple[str, str]] = Counter()
    for position, refusals in enumerate(explanation.refusal_counts.tolist()):
        if not refusals:
            continue
        verdicts = explanation.verdicts(position)
        given = [(verdict.plugin, reason) for verdict in verdicts for reason in verdict.reasons]
        nodes.update(given)
        if len(given) == 1:
            alone.update(given)
    return {key: (count, alone[key]) for key, count in nodes.most_common()}


def nodes_data(explanation: Explanation) -> list[Json]:
    """Every node, the best first: who refuses it and why, who does not, scores before and after weighing."""
    evaluation = explanation.evaluation
    if evaluation.refused is not None:
        return []
    place = {int(row): index for index, row in enumerate(evaluation.feasible.tolist())}
    weights = {plugin.name: weight for plugin, weight in evaluation.profile.scores}
    found = []
    for position in explanation.ranked():
        row = int(evaluation.rows[position])
        node: Json = {"node": evaluation.cluster.nodes.name(row)}
        node["feasible"] = bool(evaluation.failed_by[position] == PASSED)
        node["verdicts"] = [_verdict(verdict) for verdict in explanation.verdicts(position)]
        node["passed"] = explanation.passed_by(position)
        if row in place:
            index = place[row]
            node["scores"] = {
                name: {
                    "score": int(weighted[index]) // weights[name],
                    "weight": weights[name],
                    "weighted": int(weighted[index]),
                }
                for name, weighted in evaluation.scores.items()
            }
            node["total"] = int(evaluation.totals[index])
        found.append(node)
    return found


def _verdict(verdict: Verdict) -> Json:
    return {"plugin": verdict.plugin, "reasons": list(verdict.reasons), "unresolvable": verdict.unresolvable}


def _choice(finding: Finding, explanation: Explanation) -> Json | None:
    evaluation = explanation.evaluation
    if finding.row not in evaluation.feasible.tolist():
        return None
    outcome = contest(evaluation, finding.row)
    names = [evaluation.cluster.nodes.name(row) for row in evaluation.feasible.tolist()]
    totals = evaluation.totals.tolist()
    runner_up = None
    if outcome.runner_up is not None:
        runner_up = {"node": names[outcome.runner_up], "total": totals[outcome.runner_up]}
    return {
        "node": finding.node,
        "total": totals[outcome.winner],
        "runnerUp": runner_up,
        "lead": outcome.lead,
        "leadByPlugin": outcome.by_plugin,
        "equalTotals": outcome.equals,
    }
