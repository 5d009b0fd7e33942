"""Answer recorded scenarios of topology-aware scheduling in their own form, cycle by cycle.

They are scenarios of queueing with nodes, pods and topologies beside the queues: their answers also tell which domains
each pod set was assigned, and what was said of those that wait. See tests/golden-tas/README.md.
"""

import re
from collections.abc import Iterator
from typing import Any

from mooring.actions.admit.cycle.cycle import Admission, CycleReport
from mooring.actions.admit.topology.survey import TopologySurvey
from mooring.model.loading.manifests import build_manifests
from mooring.state.cluster import Cluster
from mooring.state.loading import populate
from mooring.testing import queueing_conformance

Json = dict[str, Any]
Attempt = tuple[str, str | None]


def is_topology(scenario: Json) -> bool:
    """Tell a scenario of topology-aware scheduling from the others."""
    return "topologies" in scenario


def answer_scenario(scenario: Json) -> Json:
    """Decide one scenario with the public core, in the form of its `expect`."""
    admission = queueing_conformance.build_admission(scenario)
    _survey(scenario, admission)
    return queueing_conformance.run_scenario(scenario, admission, _describe_outcomes, begins_with_flush=True)


def _describe_outcomes(report: CycleReport) -> Json:
    said = {str(workload): condition.message for workload, condition in report.conditions.items()}
    return {
        workload: {"reason": reason, "message": said.get(workload, "")} for workload, reason in report.outcomes.items()
    }


def _survey(scenario: Json, admission: Admission) -> None:
    cluster = Cluster()
    documents = [document for key in ("topologies", "nodes", "pods") for document in scenario.get(key) or ()]
    populate(cluster, build_manifests(documents, source=scenario["id"]))
    TopologySurvey(cluster, admission.structure.flavors, admission.topology, lambda _: False).look()


def differences(expected: Json, answer: Json | None) -> Iterator[tuple[str, Any, Any]]:
    """The topics on which an answer differs: decisions, domains, and why those wait that do."""
    yield from queueing_conformance.differences(expected, answer)
    if answer is None or expected.get("stopped") == "maxCycles":
        return
    want, have = _attempts(expected), _attempts(answer)
    for workload in _waiting(expected):
        if workload not in want:
            continue
        last = (have.get(workload) or [("", None)])[-1]
        if not any(reason in ("", last[0]) and message == last[1] for reason, message in want[workload]):
            yield f"reason of {workload}", want[workload][-1], last


def _waiting(answer: Json) -> Iterator[str]:
    for line in (answer.get("pending") or {}).values():
        yield from (*(line.get("active") or ()), *(line.get("inadmissible") or ()))


def _attempts(answer: Json) -> dict[str, list[Attempt]]:
    """By workload, what was said of its attempts since something was last decided, or of the last one before.

    Only what is said of the topology is compared word for word; of a group Kueue names either pod set.
    """
    found: dict[str, list[Attempt]] = {}
    for cycle in answer.get("cycles") or ():
        has_decided = bool(cycle.get("admitted") or cycle.get("preempted"))
        if has_decided:
            found = {workload: attempts[-1:] for workload, attempts in found.items()}
        for workload, outcome in (cycle.get("outcomes") or {}).items():
            message = re.sub(r"pod set [^:]+:", "pod set *:", outcome.get("message") or "")
            attempt = (outcome.get("reason") or "", message if "topology" in message else None)
            found[workload] = [*([] if has_decided else found.get(workload, ())), attempt]
    return found
