"""What `mooring shadow report` shows: how often a shadow agreed with the present scheduler, and where it differed."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from mooring.observe.shadow_log import (
    ComparedAdmission,
    ComparedPod,
    ComparedPreemption,
    OtherDecision,
    Outcome,
    ShadowLine,
    Side,
    Started,
)

MOST_EXAMPLES = 20


class Delays(msgspec.Struct, rename="camel"):
    """Seconds of several pods."""

    pods: int
    median: float
    p99: float
    longest: float


class Reason(msgspec.Struct, rename="camel"):
    """Why pods got another node than ours."""

    plugin: str
    pods: int
    what: str
    """`score`: the plugin's score is in favour of our node; `filter`: it refuses the other node."""


class Difference(msgspec.Struct, rename="camel"):
    """One pod on which the schedulers differ."""

    pod: str
    outcome: Outcome
    node: str
    bound: str
    why: str


class SideCounts(msgspec.Struct, rename="camel"):
    """How often both schedulers did something, or one of them alone did or would have done."""

    both: int = 0
    ours: int = 0
    theirs: int = 0


class ShadowReport(msgspec.Struct, rename="camel"):
    """All that a log of a shadow says."""

    schedulers: list[str]
    server: str
    seconds: float
    """From the first line to the last."""
    pods: int
    """Pods that were compared."""
    outcomes: dict[str, int]
    decided: int
    """Pods that we decided on before they were bound."""
    decided_agreement: float | None
    """The part of those with the same node, or with one that scored equally."""
    hindsight: dict[str, int]
    """Pods that were bound before we decided, by how their node compares with the one that we would choose."""
    agreement: float | None
    """The part of all compared pods with the same node or one that scores equally, hindsight included."""
    same_state_agreement: float | None
    """The same, where differences count as agreement that earlier decisions explain: what is left is how far the two
    schedulers differ on the same state of the cluster."""
    drift: int
    """Pods on another node that is as good as the best once unconfirmed decisions of ours are left out."""
    reasons: list[Reason]
    median_difference: float | None
    """Of the scores, over pods on another node that passes our filters."""
    deciding: Delays | None
    ours: Delays | None
    theirs: Delays | None
    preemptions: SideCounts
    admissions: SideCounts
    other_flavors: int
    """Workloads that both admitted, with other flavors."""
    other_decisions: dict[str, int]
    examples: list[Difference]
    preempted_examples: list[str]
    admitted_examples: list[str]


def make_shadow_report(lines: Iterable[ShadowLine], most_examples: int = MOST_EXAMPLES) -> ShadowReport:
    """Sum up a log. The last line about a pod counts: a decision may be confirmed after it was dropped."""
    read = list(lines)
    by_pod = {(line.pod, line.uid): line for line in read if isinstance(line, ComparedPod)}
    pods = list(by_pod.values())
    starts = [line for line in read if isinstance(line, Started)]
    outcomes = Counter(line.outcome.value for line in pods)
    decided = [line for line in pods if line.outcome in (Outcome.SAME, Outcome.TIE, Outcome.OTHER)]
    judged = [line for line in pods if line.hindsight and line.outcome is Outcome.BEFORE_US]
    agreed = sum(line.outcome is not Outcome.OTHER for line in decided)
    agreed_in_hindsight = sum(line.hindsight in (Outcome.SAME, Outcome.TIE) for line in judged)
    others = [line for line in pods if line.outcome is Outcome.OTHER]
    drift = sum(line.is_drift for line in others)
    differing = [line for line in pods if _differs(line)]
    differences = sorted(line.difference for line in others if line.difference is not None)
    compared = [line for line in pods if line.outcome is not Outcome.UNCONFIRMED]
    preemptions = [line for line in read if isinstance(line, ComparedPreemption)]
    admissions = [line for line in read if isinstance(line, ComparedAdmission)]
    return ShadowReport(
        schedulers=starts[-1].schedulers if starts else [],
        server=starts[-1].server if starts else "",
        seconds=round(read[-1].time - read[0].time, 3) if read else 0.0,
        pods=len(pods),
        outcomes={outcome.value: outcomes[outcome.value] for outcome in Outcome},
        decided=len(decided),
        decided_agreement=_part(agreed, len(decided)),
        hindsight=dict(sorted(Counter(line.hindsight for line in judged).items())),
        agreement=_part(agreed + agreed_in_hindsight, len(compared)),
        same_state_agreement=_part(agreed + agreed_in_hindsight + drift, len(compared)),
        drift=drift,
        reasons=_reasons(differing),
        median_difference=None if not differences else float(differences[len(differences) // 2]),
        deciding=_delays([line.deciding_seconds for line in pods]),
        ours=_delays([line.ours_seconds for line in pods]),
        theirs=_delays([line.theirs_seconds for line in pods]),
        preemptions=_sides([line.side for line in preemptions]),
        admissions=_sides([line.side for line in admissions]),
        other_flavors=sum(bool(line.other_flavors) and line.side is Side.BOTH for line in admissions),
        other_decisions=dict(Counter(line.decision for line in read if isinstance(line, OtherDecision))),
        examples=[
            Difference(line.pod, line.outcome, line.node, line.bound, why(line)) for line in differing[:most_examples]
        ],
        preempted_examples=[_describe_preemption(line) for line in preemptions if line.side is not Side.BOTH][
            :most_examples
        ],
        admitted_examples=[_describe_admission(line) for line in admissions if line.side is not Side.BOTH][
            :most_examples
        ],
    )


def describe_pod(line: ComparedPod) -> str:
    """One comparison in a sentence, for a log."""
    match line.outcome:
        case Outcome.SAME:
            return f"pod {line.pod}: both chose {line.bound}"
        case Outcome.TIE:
            return f"pod {line.pod}: {line.bound} scores as {line.node} does"
        case Outcome.UNCONFIRMED:
            return f"pod {line.pod}: Mooring chose {line.node}, and {line.message}"
    said = f"pod {line.pod} was bound to {line.bound}"
    ours = f"; Mooring would choose {line.node}" if line.node and line.node != line.bound else ""
    reason = why(line)
    return f"{said}{ours}: {reason}" if reason else f"{said}{ours}"


def why(line: ComparedPod) -> str:
    """Why our decision is another, in a few words."""
    parts = []
    if line.outcome is Outcome.BEFORE_US:
        parts.append(f"bound before Mooring decided ({line.hindsight or 'not judged'})")
    elif line.outcome is Outcome.PREEMPTION:
        parts.append(f"Mooring was about to evict pods on {line.node}")
    elif line.message:
        parts.append(line.message)
    if line.refused_by:
        parts.append(f"refused by {'; '.join(line.refused_by)}")
    elif line.difference:
        plugins = ", ".join(f"{name} {part:+d}" for name, part in _by_size(line.plugins))
        parts.append(f"{line.difference} points less ({plugins})")
    if line.is_drift:
        parts.append("explained by earlier decisions that differ")
    return "; ".join(parts)


def _differs(line: ComparedPod) -> bool:
    if line.outcome is Outcome.BEFORE_US:
        return line.hindsight == Outcome.OTHER
    return line.outcome not in (Outcome.SAME, Outcome.TIE)


def _by_size(plugins: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(plugins.items(), key=lambda item: (-abs(item[1]), item[0]))


def _reasons(differing: Sequence[ComparedPod]) -> list[Reason]:
    """The plugins that speak for our nodes, those of most pods first."""
    counts: Counter[tuple[str, str]] = Counter()
    for line in differing:
        counts.update((name, "score") for name, part in line.plugins.items() if part > 0)
        counts.update((each.partition(":")[0], "filter") for each in line.refused_by)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [Reason(plugin, pods, what) for (plugin, what), pods in ordered]


def _delays(given: Iterable[float | None]) -> Delays | None:
    seconds = sorted(each for each in given if each is not None)
    if not seconds:
        return None
    count = len(seconds)
    p99 = seconds[min(count - 1, int(count * 0.99))]
    return Delays(count, round(seconds[count // 2], 6), round(p99, 6), round(seconds[-1], 6))


def _sides(sides: Sequence[Side]) -> SideCounts:
    return SideCounts(sides.count(Side.BOTH), sides.count(Side.OURS), sides.count(Side.THEIRS))


def _part(count: int, total: int) -> float | None:
    return round(count / total, 4) if total else None


def _describe_preemption(line: ComparedPreemption) -> str:
    if line.side is Side.OURS:
        return f"{line.victim} on {line.node}: Mooring would evict it for {line.preemptor}"
    return f"{line.victim} on {line.node}: evicted by the present scheduler, not by Mooring"


def _describe_admission(line: ComparedAdmission) -> str:
    if line.side is Side.OURS:
        return f"{line.workload} in {line.queue}: Mooring would admit it: {line.message}"
    kept = f": {line.message}" if line.message else ""
    return f"{line.workload} in {line.queue}: admitted, and Mooring would not have admitted it yet{kept}"
