"""A finding about one pod put into typed data, one function a section: every node, every plugin."""

from collections import Counter

from mooring.engine.evaluate import PASSED, Evaluation
from mooring.engine.explain import Explanation, contest
from mooring.engine.verdict import Verdict
from mooring.model.numa.kubelet import Admitted
from mooring.model.numa.machine import cpu_set, members
from mooring.report.explain.data import (
    Choice,
    NodeAnswer,
    NodeVerdict,
    PluginScore,
    PodExplanation,
    RefusalCount,
    Remedy,
    RunnerUp,
)
from mooring.report.explain.finding import Finding
from mooring.report.explain.pools import pool_standings
from mooring.state.numa import ask_of_shape

ROOM = "NodeResourcesFit"
"""Whose remedies make room."""


def describe(finding: Finding) -> PodExplanation:
    pod, explanation = finding.pod, finding.explanation
    evaluation = None if explanation is None else explanation.evaluation
    return PodExplanation(
        pod=pod.metadata.name,
        namespace=pod.metadata.namespace,
        state=finding.state,
        node=finding.node,
        message=finding.message,
        as_of=finding.as_of,
        scheduler_name=pod.spec.scheduler_name,
        priority=pod.spec.priority or 0,
        requests={} if evaluation is None else dict(evaluation.shape.requests),
        nodes_in_all=0 if evaluation is None else len(evaluation.rows),
        feasible=0 if evaluation is None else len(evaluation.feasible),
        refused=None if evaluation is None or evaluation.refused is None else _verdict(evaluation.refused),
        refusals=[] if explanation is None else count_refusals(explanation),
        remedies=_remedies(finding, explanation) if explanation is not None and finding.wants_node else [],
        choice=None if explanation is None else _choice(finding, explanation),
        weights={} if explanation is None else _weights(explanation),
        nodes=[] if explanation is None else _nodes(explanation),
        hint=finding.hint,
        preemption=finding.preemption,
        evicted=list(finding.evicted),
        gang_place=finding.gang_place,
        gang=finding.gang,
        is_capped=finding.is_capped,
        wants_node=finding.wants_node,
        pools=[] if evaluation is None else pool_standings(evaluation, finding.row),
    )


def count_refusals(explanation: Explanation) -> list[RefusalCount]:
    """Each plugin and reason, the one of most nodes first."""
    if explanation.evaluation.refused is not None:
        return []
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
    return [
        RefusalCount(plugin, reason, count, alone[plugin, reason]) for (plugin, reason), count in nodes.most_common()
    ]


def _remedies(finding: Finding, explanation: Explanation) -> list[Remedy]:
    """The single changes that open nodes; of a gang, room for one member is of no use, and left out."""
    is_one_of_many = finding.gang is not None and sum(group.needed for group in finding.gang.groups) > 1
    return [
        Remedy(remedy.plugin, remedy.change, len(remedy.nodes), list(remedy.nodes))
        for remedy in explanation.remedies
        if not (is_one_of_many and remedy.plugin == ROOM)
    ]


def _choice(finding: Finding, explanation: Explanation) -> Choice | None:
    evaluation = explanation.evaluation
    if finding.row not in evaluation.feasible.tolist():
        return None
    outcome = contest(evaluation, finding.row)
    names = [evaluation.cluster.nodes.name(row) for row in evaluation.feasible.tolist()]
    totals = evaluation.totals.tolist()
    second = outcome.runner_up
    return Choice(
        node=finding.node,
        total=totals[outcome.winner],
        runner_up=None if second is None else RunnerUp(names[second], totals[second]),
        lead=outcome.lead,
        lead_by_plugin=outcome.by_plugin,
        equal_totals=outcome.equals,
        alignment=_alignment(finding, evaluation),
    )


def _alignment(finding: Finding, evaluation: Evaluation) -> list[str]:
    """What the kubelet gives the pod: what it has if it is there already, else what it would get."""
    numa = evaluation.cluster.numa
    state = numa.on_row.get(finding.row)
    answer = numa.share_of(finding.pod.key) or (state and state.answer(ask_of_shape(evaluation.shape)))
    if not isinstance(answer, Admitted):
        return []
    lines = []
    for share in answer.containers:
        parts = [] if share.affinity is None else [f"NUMA {', '.join(map(str, members(share.affinity)))}"]
        parts += [f"CPUs {cpu_set(share.cpus)}"] if share.cpus else []
        parts += [" ".join(answer.devices.named(name, taken)) for name, taken in share.devices.items() if taken]
        if parts:
            lines.append(f"container {share.name}: {'; '.join(parts)}")
    return lines


def _weights(explanation: Explanation) -> dict[str, int]:
    """Of the plugins that gave points."""
    evaluation = explanation.evaluation
    return {plugin.name: weight for plugin, weight in evaluation.profile.scores if plugin.name in evaluation.scores}


def _nodes(explanation: Explanation) -> list[NodeAnswer]:
    """Every node, the best first: who refuses it and why, who does not, scores before and after weighing."""
    evaluation = explanation.evaluation
    if evaluation.refused is not None:
        return []
    place = {row: index for index, row in enumerate(evaluation.feasible.tolist())}
    weights = _weights(explanation)
    found = []
    for position in explanation.ranked():
        row = int(evaluation.rows[position])
        answer = NodeAnswer(
            node=evaluation.cluster.nodes.name(row),
            feasible=bool(evaluation.failed_by[position] == PASSED),
            verdicts=[_verdict(verdict) for verdict in explanation.verdicts(position)],
            passed=explanation.passed_by(position),
        )
        if row in place:
            index = place[row]
            weighed = {name: int(scores[index]) for name, scores in evaluation.scores.items()}
            answer.scores = {
                name: PluginScore(points // weights[name], weights[name], points) for name, points in weighed.items()
            }
            answer.total = int(evaluation.totals[index])
        found.append(answer)
    return found


def _verdict(verdict: Verdict) -> NodeVerdict:
    return NodeVerdict(verdict.plugin, list(verdict.reasons), verdict.unresolvable)
