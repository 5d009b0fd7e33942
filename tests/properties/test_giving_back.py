"""Whatever the queues: once those have given back who would have to, the workload fits, and with any one less it does
not. Asking changes nothing.
"""

from hypothesis import given
from test_queueing import Story, stories

from mooring.actions.admit.concessions import Outlook, find_outlook
from mooring.actions.admit.cycle.cycle import Admission
from mooring.actions.admit.preemption.targets import Preemptor, has_room
from mooring.actions.admit.quota.workload_info import PendingWorkload


def waiting(admission: Admission) -> list[PendingWorkload]:
    return [pending for line in admission.pending for pending in line.waiting()]


def fits_without(admission: Admission, pending: PendingWorkload, found: Outlook, spared: int) -> bool:
    """Whether there is room on some flavors once all but one of those named have gone; -1 spares nobody."""
    ledger = admission.ledger
    with ledger.what_if():
        for index, concession in enumerate(found.concessions):
            if index != spared:
                ledger.remove(concession.admitted)
        queue = admission.structure.queues[pending.queue_name]
        return has_room(ledger, Preemptor(pending, queue, found.usage, frozenset()), may_borrow=True)


@given(stories())
def test_what_would_have_to_be_given_back_is_enough_and_not_too_much(story: Story) -> None:
    admission = story.admission()
    for _ in story.play(admission):
        pass

    for pending in waiting(admission):
        before = admission.structure.tree.usage.copy()
        found = find_outlook(admission, pending)
        assert (admission.structure.tree.usage == before).all()
        if found.hopeless:
            assert not found.concessions
            continue
        assert fits_without(admission, pending, found, -1)
        assert found.has_quota == (not found.concessions)
        if not any(concession.forbidden_by for concession in found.concessions):
            continue  # it is what a cycle would do, and that may take more, so that nothing is borrowed
        for spared in range(len(found.concessions)):
            assert not fits_without(admission, pending, found, spared)


@given(stories())
def test_asking_changes_no_decision(story: Story) -> None:
    asked, silent = story.admission(), story.admission()

    for report, other in zip(story.play(asked), story.play(silent), strict=True):
        assert report == other
        for pending in waiting(asked):
            find_outlook(asked, pending)
