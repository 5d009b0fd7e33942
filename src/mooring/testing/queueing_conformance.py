"""Answer recorded scenarios of queueing in their own form, cycle by cycle.

A scenario is a set of manifests; its answer tells what every cycle decided and what is left at the end. Between cycles
every victim's eviction finishes at once, nothing else happens. See tests/golden-queueing/README.md.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from mooring.actions.admit.cycle.cycle import DEFAULT_STRATEGIES, Admission, CycleReport
from mooring.actions.admit.quota.structure import Structure
from mooring.actions.admit.quota.workload_info import AdmittedWorkload, PendingWorkload, parse_time
from mooring.config.queueing import BALANCED_PLACEMENT
from mooring.model.api.kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from mooring.model.decisions import PodSetFlavors
from mooring.model.places import Place
from mooring.model.validation.kueue import validate_cohort_tree, validate_queueing
from mooring.model.values.requests import CPU
from mooring.state.undo import UndoLog

MOST_CYCLES = 20

Json = dict[str, Any]


def is_queueing(scenario: Json) -> bool:
    """Tell a scenario of queueing from one of placing pods."""
    return "clusterQueues" in scenario


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario with the public core, in the form of its `expect`."""
    return run_scenario(scenario, build_admission(scenario))


def reasons(report: CycleReport) -> Json:
    """By workload tried, the reason of its QuotaReserved condition."""
    return dict(report.outcomes)


def run_scenario(
    scenario: Json,
    admission: Admission,
    outcomes: Callable[[CycleReport], Json] = reasons,
    *,
    begins_with_flush: bool = False,
) -> Json:
    """Run the cycles of a scenario whose manifests are taken in.

    With a flush at the beginning, those tried first are tried once more: nodes came while they were under way.
    """
    start = parse_time(scenario["now"])
    reports: list[Json] = []
    seen = {_queue_state(admission)}
    stopped = "maxCycles"
    while len(reports) < MOST_CYCLES:
        if not admission.pending.has_heads:
            stopped = "noHeads"
            break
        report = admission.run_cycle(start + len(reports) + 1)
        if report.preempted:
            admission.finish_evictions([preempted.workload for preempted in report.preempted])
        if begins_with_flush and not reports:
            admission.pending.retry(admission.structure.queues.values())
            seen.clear()
        reports.append(_describe_cycle(admission, report, outcomes(report)))
        if report.admitted or report.preempted:
            seen.clear()
        state = _queue_state(admission)
        if state in seen:
            stopped = "idle"
            break
        seen.add(state)
    return {"id": scenario.get("id", ""), "cycles": reports, "stopped": stopped, **_describe_end(admission, scenario)}


def build_admission(scenario: Json) -> Admission:
    """Read a scenario's manifests, checking each, and take in its workloads."""
    place = Place(scenario.get("id", "<scenario>"))
    cohorts = _read(scenario, "cohorts", Cohort, place)
    validate_cohort_tree((cohort, place) for cohort in cohorts)
    structure = Structure(
        _read(scenario, "clusterQueues", ClusterQueue, place),
        cohorts,
        _read(scenario, "resourceFlavors", ResourceFlavor, place),
        log=UndoLog(),
    )
    namespaces = [found["metadata"] for found in scenario.get("namespaces") or ()]
    gates = scenario.get("featureGates") or {}
    admission = Admission(
        structure,
        balances_placement=bool(gates.get(BALANCED_PLACEMENT)),
        local_queues=_read(scenario, "localQueues", LocalQueue, place),
        namespace_labels={found["name"]: found.get("labels") or {} for found in namespaces},
        fair_sharing=bool(scenario.get("fairSharing")),
        strategies=scenario.get("fairSharingPreemptionStrategies") or DEFAULT_STRATEGIES,
    )
    for workload in _read(scenario, "workloads", Workload, place):
        admission.add(workload)
    return admission


def _read(scenario: Json, key: str, type_: Any, place: Place) -> list[Any]:
    found = [msgspec.convert(document, type_) for document in scenario.get(key) or ()]
    for item in found:
        validate_queueing(item, place)
    return found


def _queue_state(admission: Admission) -> Any:
    """All that the next cycle depends on besides the ledger."""
    return tuple(
        (
            line.queue.name,
            tuple((found.key, _scan_state(found, admission.cycle)) for found in line.in_order()),
            tuple(sorted(line.parked)),
        )
        for line in admission.pending
    )


def _scan_state(pending: PendingWorkload, cycle: int) -> Any:
    """Where the search for flavors goes on; a finished one starts anew, and ages beyond two cycles are all alike."""
    position = pending.position
    if position is None or not position.is_pending:
        return None
    return tuple(tuple(sorted(tried.items())) for tried in position.tried), min(cycle - position.cycle, 2)


def _describe_cycle(admission: Admission, report: CycleReport, outcomes: Json) -> Json:
    tree = admission.structure.tree
    return {
        "cycle": report.cycle,
        "heads": report.heads,
        "outcomes": outcomes,
        "admitted": sorted(
            (_describe_admitted(found.workload, found.queue, found.pod_sets) for found in report.admitted),
            key=lambda found: str(found["workload"]),
        ),
        "preempted": sorted(
            (
                {
                    "workload": found.workload,
                    "clusterQueue": found.queue,
                    "reason": found.reason,
                    "preemptor": found.preemptor,
                }
                for found in report.preempted
            ),
            key=lambda found: found["workload"],
        ),
        "borrowing": sorted(
            queue.name
            for queue in admission.structure.queues.values()
            if queue.has_cohort and any(tree.exceeds(queue.node, column) for column in tree.declared[queue.node])
        ),
    }


def _describe_admitted(workload: str, queue: str, pod_sets: Iterable[PodSetFlavors]) -> Json:
    return {"workload": workload, "clusterQueue": queue, "podSets": [_describe_pod_set(found) for found in pod_sets]}


def _describe_pod_set(found: PodSetFlavors) -> Json:
    described: Json = {"name": found.name, "count": found.count, "flavors": dict(found.flavors)}
    if found.topology is not None:
        domains = [{"values": list(domain.values), "count": domain.count} for domain in found.topology.domains]
        described["topologyAssignment"] = {"levels": list(found.topology.levels), "domains": domains}
    return described


def _describe_end(admission: Admission, scenario: Json) -> Json:
    structure = admission.structure
    names = structure.queue_of_node
    admitted_workloads: list[AdmittedWorkload] = sorted(
        admission.ledger.admitted_workloads(), key=lambda admitted: admitted.pending.key
    )
    end: Json = {
        "admitted": [
            _describe_admitted(admitted.pending.key, names[admitted.node].name, admitted.pod_sets)
            for admitted in admitted_workloads
        ],
        "pending": {
            line.queue.name: {
                "active": [found.key for found in line.in_order()],
                "inadmissible": sorted(line.parked),
            }
            for line in admission.pending
        },
        "usage": {name: _describe_usage(admission, name) for name in structure.queues},
    }
    if scenario.get("fairSharing"):
        end["weightedShare"] = {name: _describe_share(admission, name) for name in structure.queues}
    return end


def _describe_usage(admission: Admission, queue: str) -> Json:
    tree, node = admission.structure.tree, admission.structure.queues[queue].node
    usage: Json = {}
    for column in tree.declared[node]:
        flavor, resource = tree.columns[column]
        usage.setdefault(flavor, {})[resource] = format_amount(resource, tree.usage_of(node, column))
    return usage


def _describe_share(admission: Admission, queue: str) -> float:
    share = admission.share(queue)
    return -1 if share.is_weightless else round(share.value, 6)


def format_amount(resource: str, amount: int) -> str:
    """A canonical quantity: millis of CPU, binary units of memory, plain numbers.

    >>> format_amount("cpu", 1500), format_amount("memory", 3 << 30), format_amount("nvidia.com/gpu", 2)
    ('1500m', '3Gi', '2')
    """
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource in ("memory", "ephemeral-storage") and amount:
        for suffix, shift in (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)):
            if amount % (1 << shift) == 0:
                return f"{amount >> shift}{suffix}"
    return str(amount)


def differences(expected: Json, answer: Json | None) -> Iterator[tuple[str, Any, Any]]:
    """The topics on which an answer differs, with what was expected and what was answered.

    Where the recorded run never came to rest, only its first deciding cycle is compared.
    """
    if answer is None:
        yield "answer", "expected one", "none given"
        return
    want, have = _story(expected), _story(answer)
    if expected.get("stopped") == "maxCycles":
        if want[:1] != have[:1]:
            yield "first cycle", want[:1], have[:1]
        return
    if want != have:
        pairs = enumerate(zip(want, have, strict=False))
        index = next((index for index, (first, second) in pairs if first != second), min(len(want), len(have)))
        yield f"deciding cycle {index + 1}", want[index : index + 1], have[index : index + 1]
    for topic, view in (("admitted at the end", _final), ("waiting at the end", _waiting)):
        if view(expected) != view(answer):
            yield topic, view(expected), view(answer)


def _story(answer: Json) -> list[Any]:
    cycles = [
        (_admitted(found.get("admitted")), _preempted(found.get("preempted"))) for found in answer.get("cycles") or ()
    ]
    return [cycle for cycle in cycles if cycle[0] or cycle[1]]


def _admitted(entries: Iterable[Json] | None) -> list[Any]:
    return sorted(
        (
            found["workload"],
            found["clusterQueue"],
            tuple(
                (pods["name"], pods["count"], tuple(sorted(pods["flavors"].items())), _domains(pods))
                for pods in found["podSets"]
            ),
        )
        for found in entries or ()
    )


def _domains(pods: Json) -> Any:
    """Where the pods were assigned to go, in order; None if nowhere in particular."""
    found = pods.get("topologyAssignment")
    if not found:
        return None
    return tuple(found["levels"]), tuple((tuple(domain["values"]), domain["count"]) for domain in found["domains"])


def _preempted(entries: Iterable[Json] | None) -> list[Any]:
    return sorted(
        (found["workload"], found["clusterQueue"], found["reason"], found["preemptor"]) for found in entries or ()
    )


def _final(answer: Json) -> Any:
    return _admitted(answer.get("admitted"))


def _waiting(answer: Json) -> Any:
    lines = {
        queue: sorted([*(line.get("active") or ()), *(line.get("inadmissible") or ())])
        for queue, line in (answer.get("pending") or {}).items()
    }
    return {queue: line for queue, line in lines.items() if line}
