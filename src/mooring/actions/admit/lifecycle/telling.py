"""Telling the pods that wait why they do, once, and again when the reason changes."""

from collections.abc import Iterable

from mooring.actions.admit.lifecycle.conditions import NO_WORDS, Words
from mooring.actions.admit.lifecycle.pods import PodsOfWork
from mooring.actions.admit.lifecycle.stages import Stage, Work
from mooring.model.decisions import Decision, Wait

WHO = ("Admit",)
"""Who refuses: this action."""
PARTLY_ADMITTED = "PartiallyAdmitted"


def tell(works: Iterable[Work], pods: PodsOfWork) -> list[Decision]:
    """What is to be said to the pods of these works that was not said before."""
    waits: list[Decision] = []
    for work in works:
        if work.stage is Stage.DONE:
            continue
        words = _words(work, pods)
        if words == work.told:
            continue
        work.told = words
        if words.message:
            held = pods.held(work) if work.stage is Stage.ADMITTED else pods.waiting(work)
            waits += [Wait(record.key, words.message, WHO, reason=words.reason) for record in held]
    return waits


def _words(work: Work, pods: PodsOfWork) -> Words:
    if work.stage is not Stage.ADMITTED:
        return work.words
    wanted = {found.name: found.count for found in work.workload.spec.pod_sets}
    fewer = [given for given in work.pod_sets if given.count < wanted.get(given.name, 0)]
    if not fewer or not pods.held(work):
        return NO_WORDS
    said = ", ".join(f"{given.count} of {wanted[given.name]} pods of pod set {given.name}" for given in fewer)
    return Words(PARTLY_ADMITTED, f"The workload is admitted with {said}; the others start as those finish")
