"""Admission checks: states that somebody else sets, and that must all be ready before a workload may start."""

from collections.abc import Iterable
from typing import NamedTuple

from mooring.actions.admit.quota.workload_info import parse_time
from mooring.model.api.kueue_workload import CHECK_READY, CHECK_REJECTED, CHECK_RETRY, AdmissionCheckState
from mooring.model.api.pods import Toleration
from mooring.state.workloads import WorkloadRecord


class CheckResult(NamedTuple):
    """How the checks of a workload stand."""

    pending: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    retry_at: float | None = None
    """When to try again, if a check asks for that."""


def look_at_checks(workload: WorkloadRecord, required: Iterable[str], now: float) -> CheckResult:
    """Sum up the states of the checks that a workload has to pass."""
    states = check_states(workload)
    pending, rejected = [], []
    retry_at: float | None = None
    for name in required:
        found = states.get(name)
        if found is None or found.state not in (CHECK_READY, CHECK_RETRY, CHECK_REJECTED):
            pending.append(name)
        elif found.state == CHECK_REJECTED:
            rejected.append(name)
        elif found.state == CHECK_RETRY:
            since = parse_time(found.last_transition_time) if found.last_transition_time else now
            retry_at = max(retry_at or now, since + (found.requeue_after_seconds or 0))
    return CheckResult(tuple(pending), tuple(rejected), retry_at)


def check_states(workload: WorkloadRecord) -> dict[str, AdmissionCheckState]:
    """The states by name, but for those from before the workload's last eviction."""
    if workload.outdated_checks is workload.queued:
        return {}
    return {found.name: found for found in workload.workload.status.admission_checks or ()}


def checks_terms(workload: WorkloadRecord, pod_set: str) -> tuple[dict[str, str], list[Toleration]]:
    """What the checks add to the pods of a set: node labels to select, and tolerations."""
    selector: dict[str, str] = {}
    tolerations: list[Toleration] = []
    for state in check_states(workload).values():
        for update in state.pod_set_updates or ():
            if update.name == pod_set:
                selector |= update.node_selector or {}
                tolerations += update.tolerations or []
    return selector, tolerations
