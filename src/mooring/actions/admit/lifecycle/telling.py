"""Telling the pods that wait why they do, once, and again when the reason changes."""

from collections.abc import Iterable

from mooring.actions.admit.lifecycle.conditions import NO_WORDS, Words
from mooring.actions.admit.lifecycle.pods import WorkloadPods
from mooring.actions.admit.lifecycle.stages import Stage, WorkloadRecord
from mooring.model.decisions import Decision, Wait

WHO = ("Admit",)
"""Who refuses: this action."""
PARTLY_ADMITTED = "PartiallyAdmitted"


def tell(workloads: Iterable[WorkloadRecord], pods: WorkloadPods) -> list[Decision]:
    """What is to be said to the pods of these workloads that was not said before."""
    waits: list[Decision] = []
    for workload in workloads:
        if workload.stage is Stage.DONE:
            continue
        words = _words(workload, pods)
        if words == workload.told:
            continue
        workload.told = words
        if words.message:
            held = pods.held(workload) if workload.stage is Stage.ADMITTED else pods.waiting(workload)
            waits += [Wait(record.key, words.message, WHO, reason=words.reason) for record in held]
    return waits


def _words(workload: WorkloadRecord, pods: WorkloadPods) -> Words:
    if workload.stage is not Stage.ADMITTED:
        return workload.words
    wanted = {found.name: found.count for found in workload.workload.spec.pod_sets}
    fewer = [given for given in workload.pod_sets if given.count < wanted.get(given.name, 0)]
    if not fewer or not pods.held(workload):
        return NO_WORDS
    said = ", ".join(f"{given.count} of {wanted[given.name]} pods of pod set {given.name}" for given in fewer)
    return Words(PARTLY_ADMITTED, f"The workload is admitted with {said}; the others start as those finish")
